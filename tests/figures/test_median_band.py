"""Bands about a median: quartiles of the images, and the interval that the bump's description gives, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lit_bump.figures.median_band import median_band
from tests.figures.drawn_profiles import drawn_profile


def test_quartiles_are_those_of_the_images() -> None:
    profile = drawn_profile(9.0, n_images=9, n_lost=2)
    np.testing.assert_array_equal(median_band(profile, "quartiles"), profile.quantiles([0.25, 0.75]))


def test_the_interval_holds_the_median_and_is_the_bumps_at_the_peak() -> None:
    profile = drawn_profile(9.0, n_images=32)
    low, high = median_band(profile, "confidence")
    assert (low <= profile.median()).all()
    assert (profile.median() <= high).all()
    peak = int(np.argmax(profile.median()))
    np.testing.assert_allclose((low[peak], high[peak]), profile.bump().height_interval)


def test_the_interval_narrows_with_images() -> None:
    few, many = (median_band(drawn_profile(9.0, n_images=n), "confidence") for n in (8, 512))
    assert np.ptp(many, axis=0).max() < 0.4 * np.ptp(few, axis=0).max()


def test_one_image_has_the_interval_of_its_standard_errors() -> None:
    profile = replace(drawn_profile(9.0, n_images=1), standard_error=np.full((1, 17), 0.1))
    low, high = median_band(profile, "confidence")
    np.testing.assert_allclose(high - low, 2 * 0.16449, rtol=1e-3)
    assert np.isnan(median_band(profile, "quartiles")).all()


@pytest.mark.parametrize("band", ["none", "quartiles", "confidence"])
def test_rungs_without_an_image_have_no_band(band: str) -> None:
    edges = np.array(median_band(drawn_profile(9.0, n_lost=3), band))  # type: ignore[arg-type]
    assert np.isnan(edges[:, :3]).all()
    assert np.isnan(edges[:, 3:]).all() == (band == "none")
