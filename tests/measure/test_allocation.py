"""Plans of pairs: what they never do, what they always reach, and the cheapest mix of two precisions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_bump.measure.allocation import COARSE_COST, MOST_GROWTH, SLACK, STEP, coarse_pays, planned_pairs
from lit_bump.measure.control_variate import RatioEstimate

MOST = 2048


def _estimate(
    n_pairs: int = 8, n_fine: int | None = None, spread: float = 0.3, correction: float = 0.0, prediction: float = 0.0
) -> RatioEstimate:
    """Return an estimate of a ratio of 1 whose parts and whole agree."""
    n_fine = n_pairs if n_fine is None else n_fine
    parts = RatioEstimate(1.0, 0.0, n_pairs, n_fine, spread, correction, prediction)
    return replace(parts, standard_error=math.sqrt(parts.pairs_variance + prediction))


@st.composite
def estimates(draw: st.DrawFn) -> RatioEstimate:
    n_pairs = STEP * draw(st.integers(1, MOST // STEP))
    correction = draw(st.sampled_from([0.0, 0.0, 0.001, 0.1, 2.0]))
    n_fine = STEP * draw(st.integers(1, n_pairs // STEP)) if correction else n_pairs
    return _estimate(
        n_pairs, n_fine, draw(st.floats(0.0, 10.0)), correction, draw(st.sampled_from([0.0, 1e-6, 1e-3, 1.0]))
    )


targets = st.floats(1e-3, 0.9)


@given(estimate=estimates(), target=targets)
def test_a_plan_takes_nothing_away_and_not_too_much_more(estimate: RatioEstimate, target: float) -> None:
    plan = planned_pairs(estimate, target, MOST)
    assert estimate.n_pairs <= plan.n_pairs <= min(MOST, MOST_GROWTH * estimate.n_pairs)
    assert estimate.n_fine <= plan.n_fine <= plan.n_pairs
    assert plan.n_pairs % STEP == plan.n_fine % STEP == 0


@given(estimate=estimates(), target=targets, most=st.integers(1, 64))
def test_a_plan_stays_below_the_most(estimate: RatioEstimate, target: float, most: int) -> None:
    assert planned_pairs(estimate, target, most).n_pairs <= max(most, estimate.n_pairs)


@given(estimate=estimates(), target=targets)
def test_nothing_is_added_once_the_target_is_met(estimate: RatioEstimate, target: float) -> None:
    met = target * (1 + 1e-9) >= estimate.standard_error
    plan = planned_pairs(estimate, max(target, estimate.standard_error * (1 + 1e-9)), MOST)
    assert plan == (estimate.n_pairs, estimate.n_fine)
    helps = estimate.pairs_variance >= estimate.prediction_variance / 4
    if not met and helps and estimate.n_pairs < MOST:
        assert planned_pairs(estimate, target, MOST).n_pairs > estimate.n_pairs


@given(estimate=estimates(), one=targets, other=targets)
def test_a_smaller_target_takes_no_fewer_pairs(estimate: RatioEstimate, one: float, other: float) -> None:
    small, large = (planned_pairs(estimate, target, MOST) for target in sorted((one, other)))
    assert small.n_pairs >= large.n_pairs
    assert small.n_fine >= large.n_fine


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_nothing_is_added_where_the_error_is_unknown(error: float) -> None:
    assert planned_pairs(replace(_estimate(), standard_error=error), 0.01, MOST) == (8, 8)
    assert planned_pairs(RatioEstimate.undefined(8, 8), 0.01, MOST) == (8, 8)


def test_nothing_is_added_where_the_prediction_has_all_of_the_error() -> None:
    assert planned_pairs(_estimate(spread=0.01, prediction=0.01), 0.01, MOST) == (8, 8)


@given(spread=st.floats(0.05, 2.0), target=st.floats(0.01, 0.2))
def test_repeated_plans_reach_the_target_at_once_or_the_most(spread: float, target: float) -> None:
    estimate = _estimate(spread=spread)
    for _ in range(12):
        estimate = _estimate(planned_pairs(estimate, target, 10**6).n_pairs, spread=spread)
    assert estimate.standard_error <= target
    needed = SLACK * (spread / target) ** 2
    assert estimate.n_pairs <= max(8, needed + STEP)


@pytest.mark.parametrize("correction", [0.25, 0.3, 0.35, 0.45])
def test_the_mix_of_precisions_is_the_cheapest(correction: float) -> None:
    target = 0.066
    allowed = target**2 / SLACK
    plan = planned_pairs(_estimate(200, 40, 1.0, correction), target, MOST)
    n, p = np.meshgrid(np.arange(200, 700), np.arange(4, 300), indexing="ij")
    cost = np.where((1.0 / n + correction**2 / p <= allowed) & (p <= n), COARSE_COST * n + p, np.inf)
    assert 1.0 / plan.n_pairs + correction**2 / plan.n_fine <= allowed
    rounding = STEP * (COARSE_COST + 1)
    assert COARSE_COST * plan.n_pairs + plan.n_fine <= cost.min() + rounding


def test_low_precision_pays_where_its_correction_is_small_and_many_pairs_are_wanted() -> None:
    fine = _estimate(spread=0.5)
    assert coarse_pays(fine, _estimate(spread=0.5, correction=0.01), 0.01)
    assert not coarse_pays(fine, _estimate(spread=0.5, correction=0.5), 0.01)
    assert not coarse_pays(fine, _estimate(spread=0.5, correction=0.01), 0.17)  # hardly more pairs than the pilot
    unknown = replace(fine, standard_error=math.nan)
    assert not coarse_pays(unknown, fine, 0.01)
    assert not coarse_pays(fine, unknown, 0.01)
