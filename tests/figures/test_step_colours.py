"""Colours of steps: a scale from 0 to the last one, and round numbers with room between them."""

from __future__ import annotations

import pytest
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from lit_bump.figures.step_colours import COLOURS, finish_step_bar, step_place, step_scale


def test_the_scale_runs_from_step_0_to_the_last() -> None:
    scale = step_scale(39_100)
    assert scale(step_place(0)) == 0
    assert scale(step_place(39_100)) == 1
    assert step_scale(0)(step_place(0)) == 0  # no division by zero


@pytest.mark.parametrize(
    ("last", "labels"),
    [(5, ["0", "1"]), (400, ["0", "1", "10", "100"]), (39_100, ["0", "10", "100", "1k", "10k"])],
)
def test_round_steps_stand_beside_the_bar(last: int, labels: list[str]) -> None:
    figure = Figure()
    bar = figure.colorbar(ScalarMappable(step_scale(last), COLOURS), cax=figure.add_axes((0.5, 0.1, 0.1, 0.8)))
    finish_step_bar(bar, last, 8)
    assert [text.get_text() for text in bar.ax.get_yticklabels()] == labels
