"""The figure of one profile: every image thin, the median bold, the quartiles as a band, lost images counted."""

from __future__ import annotations

import numpy as np

from lit_bump.figures import profile_figure, rgb_array
from tests.figures.drawn_profiles import drawn_profile


def test_every_image_is_a_thin_line_and_the_median_is_bold() -> None:
    profile = drawn_profile(5.0, n_images=6)
    axes = profile_figure(profile).axes[0]
    thin = [line for line in axes.lines if line.get_linewidth() < 0.8]
    bold = [line for line in axes.lines if line.get_linewidth() > 2]
    assert len(thin) == 6
    np.testing.assert_array_equal(bold[0].get_ydata(), profile.median())
    assert len(axes.collections) == 1  # the quartile band
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_the_number_of_kept_images_stands_where_it_is_below_all() -> None:
    axes = profile_figure(drawn_profile(5.0, n_images=6, n_lost=2)).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("5") == 1
    assert "6 images" in texts
    assert [len(np.asarray(line.get_xdata())) for line in axes.lines if line.get_marker() == "x"] == [2]


def test_limits_hold_every_image() -> None:
    profile = drawn_profile(30.0)
    low, high = profile_figure(profile).axes[0].get_ylim()
    assert low <= np.nanmin(profile.ratio)
    assert high >= np.nanmax(profile.ratio)


def test_title_comes_from_the_context_unless_given() -> None:
    profile = drawn_profile(step=1200)
    assert profile_figure(profile).axes[0].get_title(loc="left") == "drawn6, step 1,200"
    assert profile_figure(profile, title="mine").axes[0].get_title(loc="left") == "mine"


def test_a_profile_without_any_kept_rung_can_be_drawn() -> None:
    assert rgb_array(profile_figure(drawn_profile(n_images=1, n_lost=16))).shape == (360, 600, 3)
