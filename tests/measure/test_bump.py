"""The one definition of the bump, on curves whose answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lit_bump.measure.bump import Bump, curve_shapes, describe_bump, median_interval, median_over_images

ETAS = np.logspace(-2.85, 1.15, 17)
LOG = np.log10(ETAS)


def _described(curve: np.ndarray, n_images: int = 9, spread: float = 0.0, seed: int = 0) -> Bump:
    """Return the bump of images around a curve."""
    factors = np.exp(spread * np.random.default_rng(seed).standard_normal((n_images, curve.size)))
    return describe_bump(ETAS, curve * factors, np.zeros((n_images, curve.size)))


def _gaussian(height: float, centre: float, width: float) -> np.ndarray:
    """Return a curve whose logarithm is a parabola around the peak, 1 far away."""
    return np.asarray(np.maximum(1.0, height * 10 ** (-np.square((LOG - centre) / width))))


@pytest.mark.parametrize("centre", [-0.6, -0.07, 0.3])
def test_a_peak_between_rungs_is_found_exactly_on_a_log_parabola(centre: float) -> None:
    bump = _described(_gaussian(10.0, centre, 0.8))
    assert bump.verdict == "bump"
    assert bump.log10_eta == pytest.approx(centre, abs=1e-9)
    assert bump.eta == pytest.approx(10**centre)
    assert bump.height == pytest.approx(_gaussian(10.0, centre, 0.8).max())
    assert bump.reason == ""
    assert bump.height_interval == pytest.approx((bump.height, bump.height))
    assert bump.log10_eta_interval == pytest.approx((centre, centre))


def test_width_onset_and_decay_of_a_tent() -> None:
    rise, fall = 1.0, -2.0  # slopes of log r against log eta
    centre = LOG[10]
    curve = 10.0 ** np.where(centre > LOG, 1 + rise * (LOG - centre), 1 + fall * (LOG - centre))
    curve = np.maximum(curve, 10.0 ** (1 + rise * (LOG[2] - centre)))
    curve = np.where(np.arange(17) <= 6, 1.0, curve)  # exactly 1 at rung 6 and before
    bump = _described(curve)
    assert bump.verdict == "bump"
    assert bump.height == pytest.approx(10.0)
    half = np.log10(1 + 9 / 2)
    left, right = centre - (1 - half) / rise, centre + (1 - half) / -fall
    assert bump.width_decades == pytest.approx(right - left, abs=1e-9)
    assert bump.onset_eta == pytest.approx(10 ** (LOG[6] + np.log10(1.1) / rise), rel=1e-9)
    kept = np.arange(17) >= 10
    assert bump.decay == pytest.approx(np.polyfit(LOG[kept], np.log10(curve[kept]), 1)[0])
    assert bump.decay < 0


def test_width_is_undefined_where_the_ladder_ends_above_half_height() -> None:
    curve = np.ones(17)
    curve[12:] = [3.0, 9.0, 10.0, 8.0, 7.0]
    bump = _described(curve)
    assert bump.verdict == "bump"
    assert np.isnan(bump.width_decades)
    assert np.isnan(bump.width_interval).all()
    assert np.isfinite(bump.log10_eta)


def test_a_curve_that_still_rises_is_rising() -> None:
    bump = _described(np.maximum(1.0, 10 ** (LOG - 0.2)))
    assert bump.verdict == "rising"
    assert bump.height > 5
    assert np.isnan([bump.eta, bump.log10_eta, bump.width_decades, bump.decay]).all()
    assert np.isfinite(bump.onset_eta)
    assert "ladder ends before the decay" in str(bump)


def test_a_fall_of_less_than_ten_percent_is_still_rising() -> None:
    curve = np.ones(17)
    curve[13:] = [3.0, 4.0, 4.0, 3.8]
    assert _described(curve).verdict == "rising"
    curve[-1] = 3.5
    assert _described(curve).verdict == "bump"


def test_a_plateau_is_none() -> None:
    bump = _described(np.ones(17))
    assert (bump.verdict, bump.height) == ("none", 1.0)
    assert np.isnan(bump.onset_eta)


def test_a_falling_curve_is_none() -> None:
    assert _described(np.minimum(1.0, 10 ** (0.3 - LOG))).verdict == "none"


@pytest.mark.parametrize("seed", range(10))
def test_noise_around_one_is_none(seed: int) -> None:
    assert _described(np.ones(17), n_images=8, spread=0.05, seed=seed).verdict == "none"
    flat = np.ones((1, 17)) + 0.05 * np.random.default_rng(seed).standard_normal((1, 17))
    assert describe_bump(ETAS, flat, np.full((1, 17), 0.05)).verdict == "none"


def test_a_height_within_its_error_of_the_plateau_is_none() -> None:
    curve = np.ones((1, 17))
    curve[0, 9] = 1.3
    assert describe_bump(ETAS, curve, np.zeros((1, 17))).verdict == "bump"
    error = np.zeros((1, 17))
    error[0, 9] = 0.3
    assert describe_bump(ETAS, curve, error).verdict == "none"


def test_a_peak_on_the_first_rung_is_undefined() -> None:
    bump = _described(10 ** (-LOG))
    assert bump.verdict == "undefined"
    assert np.isnan(bump.height)
    assert "begins beyond the plateau" in str(bump)


def _without_the_first_rungs(*kept: float) -> Bump:
    curve = np.array([np.nan] * (17 - len(kept)) + list(kept))
    return _described(curve)


@pytest.mark.parametrize("kept", [(0.9, 0.5, 0.3, 0.1), (0.5, 0.9, 0.3, 0.1), (1.5, 1.55, 0.5, 0.1), (2.0, 1.0, 0.5)])
def test_a_plateau_that_noise_hides_is_undefined(kept: tuple[float, ...]) -> None:
    bump = _without_the_first_rungs(*kept)
    assert bump.verdict == "undefined"
    assert np.isnan([bump.height, *bump.height_interval]).all()
    assert "the ladder begins beyond the plateau" in str(bump)


def test_a_plateau_seen_after_discarded_rungs_is_none_and_a_rise_seen_is_a_bump() -> None:
    assert _without_the_first_rungs(0.95, 0.5, 0.3, 0.1).verdict == "none"
    assert _without_the_first_rungs(1.05, 1.0, 0.5, 0.1).verdict == "none"
    assert _without_the_first_rungs(1.5, 3.0, 9.0, 2.0).verdict == "bump"


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_fewer_than_three_rungs_are_undefined(kept: int) -> None:
    ratio = np.full((4, 17), np.nan)
    ratio[:, :kept] = 1.0
    bump = describe_bump(ETAS, ratio, ratio)
    assert bump.verdict == "undefined"
    assert f"{kept} of 17 rungs" in bump.reason
    assert np.isnan([bump.height, bump.eta, *bump.height_interval]).all()


def test_rungs_kept_by_fewer_than_half_of_the_images_are_not_used() -> None:
    ratio = np.tile(_gaussian(10.0, 0.0, 0.8), (5, 1))
    ratio[:3, 0] = np.nan
    ratio[3:, 0] = 1e6  # what two images of five claim
    bump = describe_bump(ETAS, ratio, np.zeros_like(ratio))
    assert bump.verdict == "bump"
    assert bump.log10_eta == pytest.approx(0.0, abs=1e-9)
    ratio[2, 0] = 1e6  # three of five
    assert describe_bump(ETAS, ratio, np.zeros_like(ratio)).verdict == "undefined"


def test_a_gap_in_the_ladder_is_bridged() -> None:
    ratio = np.tile(_gaussian(10.0, LOG[11], 0.9), (3, 1))
    ratio[:, [2, 9]] = np.nan
    bump = describe_bump(ETAS, ratio, np.zeros_like(ratio))
    assert bump.verdict == "bump"
    assert bump.log10_eta == pytest.approx(LOG[11], abs=1e-9)


def test_intervals_hold_the_estimate_and_shrink_with_images() -> None:
    truth = _gaussian(10.0, 0.1, 0.8)
    few, many = _described(truth, 8, 0.3), _described(truth, 200, 0.3)
    for bump in (few, many):
        assert bump.verdict == "bump"
        assert bump.height_interval[0] <= bump.height <= bump.height_interval[1]
        assert bump.log10_eta_interval[0] <= bump.log10_eta <= bump.log10_eta_interval[1]
        assert bump.width_interval[0] <= bump.width_decades <= bump.width_interval[1]
        assert bump.onset_interval[0] <= bump.onset_eta <= bump.onset_interval[1]
    for name in ("height_interval", "log10_eta_interval", "width_interval"):
        (few_low, few_high), (low, high) = getattr(few, name), getattr(many, name)
        assert high - low < few_high - few_low


def test_intervals_of_one_image_come_from_its_standard_error() -> None:
    curve = _gaussian(10.0, 0.0, 0.8)[None]
    bump = describe_bump(ETAS, curve, 0.05 * curve)
    low, high = bump.height_interval
    assert 9.0 < low < 10.0 < high < 12.0


@pytest.mark.parametrize(
    ("curve", "verdict", "text"),
    [
        (_gaussian(10.0, 0.0, 0.8), "bump", "bump: max r 9.65 at eta 1 (no interval: the standard errors of the one"),
        (np.maximum(1.0, 10 ** (LOG - 0.2)), "rising", "rising: max r 8.91 (the largest ratio is at or near the last"),
        (np.ones(17), "none", "none: max r 1 (the largest ratio is not above 1.1; no interval: "),
    ],
)
def test_one_image_of_unknown_errors_is_judged_by_its_curve_without_intervals(
    curve: np.ndarray, verdict: str, text: str
) -> None:
    for errors in (np.full((1, 17), np.nan), np.where(np.arange(17) == 8, np.nan, 0.0)[None]):
        bump = describe_bump(ETAS, curve[None], errors)
        assert bump.verdict == verdict
        assert np.isnan([*bump.height_interval, *bump.log10_eta_interval]).all()
        assert np.isnan([*bump.width_interval, *bump.onset_interval]).all()
        assert str(bump).startswith(text)
        assert "no interval" in bump.reason
        assert "nan" not in str(bump)


def test_the_answer_is_repeatable_and_leaves_the_global_stream() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    first, second = (_described(_gaussian(5.0, 0.0, 0.8), 8, 0.2) for _ in range(2))
    assert str(first) == str(second)
    assert first.height_interval == second.height_interval
    assert (before == np.random.get_state()[1]).all()  # type: ignore[index]  # noqa: NPY002


def test_rescaling_eta_shifts_the_place_alone() -> None:
    ratio = np.tile(_gaussian(10.0, 0.1, 0.8), (3, 1))
    one, other = (describe_bump(scale * ETAS, ratio, np.zeros_like(ratio)) for scale in (1.0, 100.0))
    assert other.log10_eta == pytest.approx(one.log10_eta + 2)
    assert other.onset_eta == pytest.approx(100 * one.onset_eta)
    assert (other.height, other.width_decades) == pytest.approx((one.height, one.width_decades))


def test_one_line_says_verdict_height_and_place() -> None:
    text = str(_described(_gaussian(10.0, 0.0, 0.8)))
    assert text.startswith("bump: max r ")
    assert "at eta 1 [1, 1]" in text
    assert "\n" not in text
    assert _described(np.ones(17)).to_dict()["verdict"] == "none"


def test_median_ignores_the_discarded() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 8):
        ratio = rng.random((n, 7))
        np.testing.assert_array_equal(median_over_images(ratio), np.median(ratio, axis=0))
        ratio[rng.random(ratio.shape) < 0.4] = np.nan
        kept = [column[np.isfinite(column)] for column in ratio.T]
        expected = [np.median(column) if column.size else np.nan for column in kept]
        np.testing.assert_allclose(median_over_images(ratio), expected)


def _population(rng: np.random.Generator, n_images: int) -> np.ndarray:
    """Return profiles of images whose bumps differ in height, place and width."""
    height, width = np.exp(rng.normal(1.2, 0.6, n_images))[:, None], rng.uniform(0.3, 0.5, n_images)[:, None]
    return np.asarray(1.0 + height * np.exp(-0.5 * np.square((LOG - rng.normal(0.0, 0.15, (n_images, 1))) / width)))


@pytest.mark.parametrize("standard_error", [0.03, 0.2])
def test_intervals_hold_the_median_of_the_population_over_images_and_directions(standard_error: float) -> None:
    """Images are drawn from a population, and each is known up to the error of its own directions."""
    rng = np.random.default_rng(0)
    truth = np.median(_population(rng, 100_000), axis=0)
    height, place = (float(curve_shapes(LOG, truth[None])[name][0]) for name in ("height", "place"))
    held = []
    for seed in range(150):
        ratio = _population(rng, 32)
        ratio *= 1.0 + standard_error * rng.standard_normal(ratio.shape)
        bump = describe_bump(ETAS, ratio, standard_error * ratio, seed=seed)
        low, high = median_interval(ratio, standard_error * ratio, seed=seed)
        pairs = ((bump.height_interval, height), (bump.log10_eta_interval, place))
        held.append([np.mean((low <= truth) & (truth <= high)), *(a <= value <= b for (a, b), value in pairs)])
    share = np.mean(held, axis=0)
    assert (share > 0.83).all()  # 150 draws know a share to 0.025
    assert (share[:2] < 0.96).all()  # that of the place is wider than it need be: about 0.95
