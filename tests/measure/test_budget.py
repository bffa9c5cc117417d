"""A budget of seconds: precision is given up, said, and nothing else changes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, measure_profile
from tests.measure.tiny_encoders import NETS, few, random_images, seeded

PROTOCOL = Protocol(etas=(0.1, 1.0, 6.0), estimator="controlled", target_se=0.02, n_pairs=256)
EQUAL = ("ratio", "standard_error", "n_directions", "n_coarse", "prediction", "noise", "n_jvps", "n_vjps", "n_forwards")


def _measured(budget: float | None, protocol: Protocol = PROTOCOL) -> Profile:
    net = seeded(NETS["gelu"])
    return measure_profile(lambda images: net(4 * images), random_images(2), protocol, budget_seconds=budget)


def test_without_a_budget_nothing_is_given_up() -> None:
    assert _measured(None).gave_up == ""


def test_a_large_budget_changes_nothing() -> None:
    free, held = _measured(None), _measured(1e6)
    assert held.gave_up == ""
    for name in EQUAL:
        np.testing.assert_array_equal(getattr(held, name), getattr(free, name))


def test_a_budget_that_is_spent_leaves_the_pilot_and_says_so() -> None:
    free, held = _measured(None), _measured(1e-6)
    assert free.n_directions.max() > 16
    assert (held.n_directions == 2 * PROTOCOL.n_pilot).all()
    assert np.isfinite(held.ratio).all()
    assert (held.standard_error[:, -1] > free.standard_error[:, -1]).all()
    for words in ("for a budget of 1e-06 s", "the least number of pairs in place of 2 %"):
        assert words in held.gave_up


def test_a_budget_in_between_gives_up_a_part() -> None:
    net = seeded(NETS["gelu"])

    def slow(images: Tensor) -> Tensor:
        time.sleep(5e-4 * len(images))
        features: Tensor = net(4 * images)
        return features

    protocol = replace(PROTOCOL, target_se=0.004, n_pairs=4096, precision="float32")
    began = time.perf_counter()
    profile = measure_profile(slow, random_images(1), protocol, chunk=16, budget_seconds=1.0)
    assert time.perf_counter() - began < 3.0
    assert 2 * protocol.n_pilot < profile.n_directions.max() < 2 * protocol.n_pairs
    assert "in place of 0.4 %" in profile.gave_up


def test_a_protocol_of_fixed_pairs_is_measured_in_full_and_says_that_it_took_longer() -> None:
    free, held = _measured(None, few()), _measured(1e-6, few())
    assert "a protocol of fixed pairs took" in held.gave_up
    assert _measured(1e6, few()).gave_up == ""
    for name in EQUAL:
        np.testing.assert_array_equal(getattr(held, name), getattr(free, name))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_budget_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(LitBumpError, match="budget_seconds is"):
        _measured(seconds)
