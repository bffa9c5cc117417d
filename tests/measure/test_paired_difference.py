"""Laws of the difference of two bumps: it is antisymmetric, exact for scaled profiles, and covers where images vary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol
from lit_bump.measure.paired_difference import paired_difference
from tests.profile_cost import made_up_cost

ETAS = np.array(Protocol.quick().etas)


def profile_of(ratio: np.ndarray, etas: np.ndarray = ETAS) -> Profile:
    """Return a profile with given ratios."""
    ones = np.ones_like(ratio)
    return Profile(
        etas=etas, ratio=ratio, response=ones, prediction=ones[:, 0], standard_error=0.01 * ones, noise=0 * ones,
        n_directions=np.full(ratio.shape, 32),
        **made_up_cost(ratio.shape), reason=np.isnan(ratio).astype(np.int8),
        protocol=replace(Protocol.quick(), etas=tuple(etas)), encoder_digest="made up",
        image_digests=tuple(map(str, range(len(ratio)))), noise_method="none",
    )  # fmt: skip


def peaked(heights: np.ndarray, place: float = 0.3, etas: np.ndarray = ETAS) -> Profile:
    """Return profiles whose logarithm is a parabola about the peak."""
    shape = np.exp(-(((np.log10(etas) - place) / 0.4) ** 2))
    return profile_of(np.exp(np.log(heights)[:, None] * shape), etas)


def test_a_profile_does_not_differ_from_itself() -> None:
    profile = peaked(np.linspace(3, 30, 12))
    found = paired_difference(profile, profile)
    assert (found.log_height, found.log10_eta) == (0, 0)
    assert found.log_height_interval == found.log10_eta_interval == (0, 0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(0.5, 3.0))
def test_it_is_antisymmetric_and_exact_for_a_common_factor(seed: int, factor: float) -> None:
    heights = np.exp(np.random.default_rng(seed).uniform(1, 4, 9))
    first = peaked(heights)
    second = profile_of(factor * first.ratio)
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert there.log_height == pytest.approx(np.log(factor))
    assert there.log_height_interval == pytest.approx((np.log(factor), np.log(factor)))
    assert back.log_height == pytest.approx(-there.log_height)
    assert there.log10_eta == pytest.approx(0, abs=1e-9)


def test_place_is_compared_across_ladders() -> None:
    heights = np.full(5, 10.0)
    longer = np.concatenate([ETAS, ETAS[-1] * 10 ** (0.25 * np.arange(1, 5))])
    found = paired_difference(peaked(heights, 0.1), peaked(heights, 1.3, longer))
    assert found.log10_eta == pytest.approx(1.2, abs=2e-3)
    assert "times as far out (5 images)" in str(found)


def test_pairing_tells_apart_what_the_spread_of_images_hides() -> None:
    rng = np.random.default_rng(0)
    heights = np.exp(rng.normal(2.5, 1.0, 32))  # images differ by a factor of e
    first, second = peaked(heights), peaked(heights * np.exp(0.2 + 0.05 * rng.standard_normal(32)))
    low, high = paired_difference(first, second).log_height_interval
    assert 0 < low < 0.2 < high
    (lowest, highest), (other_lowest, other_highest) = first.bump().height_interval, second.bump().height_interval
    assert lowest < other_lowest < highest < other_highest  # their own intervals overlap


@pytest.mark.slow
def test_interval_covers() -> None:
    # The median difference of log heights over many images is 0.3: nine in ten intervals should hold it.
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        heights = np.exp(rng.normal(2.5, 0.5, 24))
        second = peaked(heights * np.exp(rng.normal(0.3, 0.3, 24)))
        low, high = paired_difference(peaked(heights), second, seed=seed).log_height_interval
        covered += low <= 0.3 <= high
    assert 0.84 <= covered / 200 <= 0.97


def test_no_interior_maximum_leaves_the_place_unknown() -> None:
    heights = np.full(5, 10.0)
    found = paired_difference(peaked(heights), peaked(heights, 3.0))
    assert np.isnan(found.log10_eta)
    assert np.isnan(found.log10_eta_interval).all()
    assert "far out" not in str(found)


def test_undefined_profiles_give_nan() -> None:
    first = peaked(np.full(4, 5.0))
    found = paired_difference(first, profile_of(np.full_like(first.ratio, np.nan)))
    assert np.isnan([found.log_height, *found.log_height_interval]).all()


def test_other_images_and_single_ones_are_refused() -> None:
    profile = peaked(np.full(3, 5.0))
    with pytest.raises(LitBumpError, match="of other images: measure both encoders on the same probe set"):
        paired_difference(profile, replace(profile, image_digests=("a", "b", "c")))
    single = peaked(np.full(1, 5.0))
    with pytest.raises(LitBumpError, match="of a single image"):
        paired_difference(single, single)
