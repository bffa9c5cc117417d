"""Loggers get finite numbers alone, monitors every key; the log step is a whole number that grows."""

from __future__ import annotations

import math

import pytest

from lit_bump.callbacks.formation_table import formation_row
from lit_bump.callbacks.profile_scalars import log_step, monitored, scalar_tags, scalars, unknown
from tests.figures.drawn_profiles import drawn_profile


@pytest.mark.parametrize(
    ("height", "n_lost", "n_logged"), [(0.0, 0, 1), (9.0, 0, 3), (9.0, 16, 0)], ids=["flat", "bump", "undefined"]
)
def test_only_finite_numbers_are_logged(height: float, n_lost: int, n_logged: int) -> None:
    row = formation_row(drawn_profile(height, n_lost=n_lost))
    logged, all_ = scalars(row), monitored(row)
    assert len(logged) == n_logged
    assert all(map(math.isfinite, logged.values()))
    assert tuple(all_) == scalar_tags("drawn6") == tuple(unknown("drawn6"))
    assert {tag for tag, value in all_.items() if math.isfinite(value)} == set(logged)


def test_log_steps_keep_steps_apart() -> None:
    steps = [0, 1, 2, 3, 10, 100, 1000, 39_100]
    places = [log_step(step) for step in steps]
    assert places == sorted(set(places))
    assert places[0] == 0
    assert log_step(999) == 3000
