"""The controlled ratio and its error against obvious implementations: a mean, a delete-one jackknife, Student's t."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lit_bump.measure.control_variate import RatioEstimate, controlled_ratio, student_quantile
from lit_bump.measure.prediction import LocalPrediction
from tests.reference import delta_method_error

ETA = 0.5
Draw = tuple[np.ndarray, np.ndarray, LocalPrediction, np.ndarray]


def _prediction(squares: np.ndarray, control: np.ndarray, captured: float) -> LocalPrediction:
    return LocalPrediction(captured, squares, squares - control[: squares.size], None, squares.size, 0)


def _drawn(n: int, m: int, n_corrected: int = 0, seed: int = 0) -> Draw:
    """Return D, the correction, the prediction and the control: D follows S loosely, the control is most of S."""
    rng = np.random.default_rng(seed)
    most = max(n, m)
    captured = 4.0
    control = rng.gamma(16.0, captured / 16.0, most)
    squares = control + rng.gamma(8.0, 0.05, most)
    displacement = ETA**2 * (1.5 * squares + rng.gamma(16.0, 0.1, most))[:n]
    correction = ETA**2 * 0.1 * rng.standard_normal(n_corrected)
    return displacement, correction, _prediction(squares[:m], control, captured), control


def _obvious_ratio(
    displacement: np.ndarray, correction: np.ndarray, prediction: LocalPrediction, x: np.ndarray
) -> float:
    """Return the estimate by its formula; ``x`` is the control of the pairs and its known mean, last."""
    control, mean = x[:-1], x[-1]
    slope = np.cov(displacement, control)[0, 1] / control.var(ddof=1)
    corrected = displacement.mean() + slope * (mean - control.mean()) + (correction.mean() if correction.size else 0.0)
    return float(corrected / (ETA**2 * prediction.value))


def _jackknife(
    displacement: np.ndarray, correction: np.ndarray, prediction: LocalPrediction, control: np.ndarray
) -> float:
    """Return the standard error from leaving out every pair, wherever it is used."""
    n, m = displacement.size, prediction.squares.size
    ratios = []
    for left_out in range(max(n, m)):

        def rest(values: np.ndarray, left_out: int = left_out) -> np.ndarray:
            return np.delete(values, left_out) if left_out < values.size else values

        squares, remainders = rest(prediction.squares), rest(prediction.remainders)
        without = LocalPrediction(prediction.captured, squares, remainders, None, 0, 0)
        known = squares[:n] if n == m else rest(prediction.squares[:n]) if n < m else rest(control[:n])
        mean = without.value if n <= m else without.captured
        x = np.append(known, mean)
        ratios.append(_obvious_ratio(rest(displacement), rest(correction), without, x))
    known = prediction.squares[:n] if n <= m else control[:n]
    mean = prediction.value if n <= m else prediction.captured
    centre = _obvious_ratio(displacement, correction, prediction, np.append(known, mean))
    return float(np.sqrt(np.square(np.array(ratios) - centre).sum()))


@pytest.mark.parametrize(
    ("n", "m", "n_corrected"), [(40, 40, 0), (16, 40, 0), (200, 40, 0), (200, 40, 16), (64, 24, 64)]
)
def test_error_is_that_of_a_jackknife_over_pairs(n: int, m: int, n_corrected: int) -> None:
    for seed in range(5):
        displacement, correction, prediction, control = _drawn(n, m, n_corrected, seed)
        estimate = controlled_ratio(displacement, correction, ETA, prediction, control)
        expected = _jackknife(displacement, correction, prediction, control)
        few = min(size for size in (n, m, n_corrected or n) if size > 1) - 2
        widest = student_quantile(few / 2) / 1.645
        assert 0.93 * expected < estimate.standard_error < 1.05 * widest * expected


@pytest.mark.parametrize(("n", "m"), [(24, 24), (12, 24), (80, 24)])
def test_ratio_is_a_regression_on_the_control(n: int, m: int) -> None:
    displacement, correction, prediction, control = _drawn(n, m)
    known, mean = (prediction.squares[:n], prediction.value) if n <= m else (control, prediction.captured)
    slope, intercept = np.polyfit(known[:n], displacement, 1)
    expected = (intercept + slope * mean) / (ETA**2 * prediction.value)
    estimate = controlled_ratio(displacement, correction, ETA, prediction, control)
    assert estimate.ratio == pytest.approx(expected, rel=1e-9)
    assert (estimate.n_pairs, estimate.n_fine, estimate.is_coarse) == (n, n, False)


@pytest.mark.parametrize(("n", "m"), [(3, 8), (5, 8), (8, 8), (12, 20), (40, 8)])
def test_affine_encoder_has_ratio_one_and_no_error(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    squares = rng.gamma(3.0, size=max(n, m))
    prediction = _prediction(squares[:m], squares, captured=2.9)  # the sketch holds all: no remainder
    estimate = controlled_ratio(ETA**2 * squares[:n], np.zeros(0), ETA, prediction, squares)
    assert estimate.ratio == pytest.approx(1.0, abs=1e-12)
    assert estimate.standard_error == pytest.approx(0.0, abs=1e-12)


def test_affine_encoder_without_a_sketch_has_ratio_one_over_the_products() -> None:
    squares = np.random.default_rng(0).gamma(3.0, size=20)
    prediction = _prediction(squares, np.zeros(20), captured=0.0)
    for n in (3, 8, 20):
        estimate = controlled_ratio(ETA**2 * squares[:n], np.zeros(0), ETA, prediction, np.zeros(n))
        assert estimate.ratio == pytest.approx(1.0, abs=1e-12)
        assert estimate.standard_error == pytest.approx(0.0, abs=1e-9)


def test_without_a_control_the_ratio_is_that_of_two_means() -> None:
    displacement, _, prediction, control = _drawn(200, 64)
    prediction = _prediction(prediction.squares, np.zeros_like(control), captured=0.0)
    estimate = controlled_ratio(displacement, np.zeros(0), ETA, prediction, np.zeros(200))
    assert estimate.ratio == pytest.approx(displacement.mean() / (ETA**2 * prediction.squares.mean()), rel=1e-12)
    expected = delta_method_error(displacement.tolist(), prediction.squares.tolist(), ETA)
    assert expected < estimate.standard_error < 1.05 * expected


@given(
    a=st.floats(1e-6, 1e6), b=st.floats(1e-6, 1e6), n=st.sampled_from([4, 12, 40]), corrected=st.sampled_from([0, 4])
)
def test_ratio_and_error_have_the_units_of_displacement_over_prediction(
    a: float, b: float, n: int, corrected: int
) -> None:
    displacement, correction, prediction, control = _drawn(n, 12, corrected)
    scaled = _prediction(b * prediction.squares, b * control, b * prediction.captured)
    plain = controlled_ratio(displacement, correction, ETA, prediction, control)
    other = controlled_ratio(a * displacement, a * correction, ETA, scaled, b * control)
    if n >= 6 or n > 12:  # below, the slope is that of an affine encoder, which has no free unit
        assert other.ratio == pytest.approx(a / b * plain.ratio, rel=1e-6)
        assert other.standard_error == pytest.approx(a / b * plain.standard_error, rel=1e-6)
    same = controlled_ratio(b * displacement, b * correction, ETA, scaled, b * control)
    assert same.ratio == pytest.approx(plain.ratio, rel=1e-6)
    assert same.standard_error == pytest.approx(plain.standard_error, rel=1e-6)


def test_a_correction_puts_back_the_mean_difference() -> None:
    displacement, _, prediction, control = _drawn(100, 40)
    plain = controlled_ratio(displacement, np.zeros(0), ETA, prediction, control)
    shift = np.full(8, 0.1 * ETA**2 * prediction.value)
    shifted = controlled_ratio(displacement, shift, ETA, prediction, control)
    assert shifted.ratio == pytest.approx(plain.ratio + 0.1, rel=1e-9)
    assert shifted.n_fine == 8
    uncertain = shift * np.array([0.5, 1.5] * 4)
    assert controlled_ratio(displacement, uncertain, ETA, prediction, control).is_coarse


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_displacement_that_is_not_finite_leaves_the_ratio_undefined(bad: float) -> None:
    displacement, correction, prediction, control = _drawn(12, 12)
    displacement[3] = bad
    _undefined(controlled_ratio(displacement, correction, ETA, prediction, control))


@pytest.mark.parametrize("square", [0.0, math.nan, math.inf])
def test_a_prediction_that_is_no_positive_number_leaves_the_ratio_undefined(square: float) -> None:
    prediction = _prediction(np.full(8, square), np.zeros(8), 0.0)
    _undefined(controlled_ratio(np.ones(8), np.zeros(0), ETA, prediction, np.zeros(8)))


def _undefined(estimate: RatioEstimate) -> None:
    assert math.isnan(estimate.ratio)
    assert math.isnan(estimate.standard_error)


@pytest.mark.parametrize(("n", "m"), [(1, 8), (2, 8), (2, 1), (9, 1)])
def test_error_of_too_few_pairs_or_products_is_unknown(n: int, m: int) -> None:
    displacement, correction, prediction, control = _drawn(n, m)
    estimate = controlled_ratio(displacement, correction, ETA, prediction, control)
    assert math.isfinite(estimate.ratio)
    assert math.isnan(estimate.standard_error)


def test_quantile_is_that_of_students_t() -> None:
    freedom = np.array([*range(3, 60), 100, 300, 1000], dtype=float)
    found = [student_quantile(f) for f in freedom]
    np.testing.assert_allclose(found, stats.t.ppf(0.95, freedom), rtol=5e-3)


def test_intervals_of_few_normal_pairs_hold_the_truth_at_least_nine_times_in_ten() -> None:
    """Of few pairs the tails are unknown; the interval is made for those of activation borders, heavier than these."""
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(2000):
        squares = 4.0 + 0.5 * rng.standard_normal(8)
        prediction = _prediction(squares, squares, captured=4.0)
        displacement = ETA**2 * (0.5 * squares + 2.0 + 0.3 * rng.standard_normal(8))
        estimate = controlled_ratio(displacement, np.zeros(0), ETA, prediction, squares)
        hits.append(abs(estimate.ratio - 1.0) < 1.645 * estimate.standard_error)
    assert 0.9 < np.mean(hits) < 0.98
