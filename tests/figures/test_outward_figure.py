"""The outward move: peaks are marked where there are any, factors are to the first, and predictions are medians."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from lit_bump.figures import outward_figure
from lit_bump.measure import Profile
from tests.figures.drawn_profiles import drawn_profile
from tests.figures.printed_text import assert_readable, legend_labels


def budget(prediction: float, *, height: float = 9.0, farther: int = 0) -> Profile:
    """Return a profile of some prediction, whose peak is some rungs further out than at eta 4.2."""
    profile = drawn_profile(height, n_images=8)
    ratio = np.pad(profile.ratio, ((0, 0), (max(farther, 0), 0)), constant_values=1.0)[:, : profile.etas.size]
    ratio = np.pad(ratio[:, max(-farther, 0) :], ((0, 0), (0, max(-farther, 0))), mode="edge")
    spread = np.geomspace(0.5, 2.0, 8)
    return replace(profile, ratio=ratio, prediction=prediction * spread)


def stars(axes: Axes) -> list[float]:
    return [float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_marker() == "*"]


def test_peaks_are_marked_and_their_factor_is_to_the_first() -> None:
    figure = outward_figure({"clean": budget(1.0, farther=-3), "L2 0.5": budget(0.1)})
    near, far = stars(figure.axes[0])
    clean, adversarial = legend_labels(figure)
    assert clean == f"clean: peak at η {near:.2g}"
    assert adversarial == f"L2 0.5: peak at η {far:.2g} (\N{MULTIPLICATION SIGN}{far / near:.1f})"
    assert far / near == pytest.approx(10**0.75, rel=0.05)  # three rungs


def test_a_profile_without_a_peak_gets_no_mark() -> None:
    figure = outward_figure({"clean": budget(1.0), "flat": budget(1.0, height=0.0), "far": budget(1.0, farther=2)})
    assert len(stars(figure.axes[0])) == 1
    assert legend_labels(figure)[1:] == ["flat: no peak", "far: still rising"]


def test_the_prediction_is_the_median_over_images_with_its_factor() -> None:
    profiles = {"clean": budget(30.0), "L2 0.5": budget(0.75), "L2 5": budget(0.015), "odd": budget(60.0)}
    right = outward_figure(profiles).axes[1]
    texts = [text.get_text() for text in right.texts]
    assert texts == ["30", "0.75 (1/40)", "0.015 (1/2,000)", "60 (\N{MULTIPLICATION SIGN}2.0)"]
    assert right.get_xscale() == "log"
    assert [label.get_text() for label in right.get_yticklabels()] == list(profiles)
    marks = [float(np.asarray(line.get_xdata())[0]) for line in right.lines if len(np.asarray(line.get_xdata())) == 1]
    np.testing.assert_allclose(marks, [np.median(profile.prediction) for profile in profiles.values()])


def test_images_without_a_prediction_are_passed_over() -> None:
    dead = replace(budget(1.0), prediction=np.array([0.0, np.nan] * 4))
    half = replace(budget(1.0), prediction=np.array([0.0, 2.0] * 4))
    texts = [text.get_text() for text in outward_figure({"dead": dead, "half": half}).axes[1].texts]
    assert texts == ["2 (\N{MULTIPLICATION SIGN}1.0)"]


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_text_can_be_read(n: int) -> None:
    labels = ("clean", *(f"Linf {2**k}/255" for k in range(7)))
    assert_readable(outward_figure({labels[k]: budget(30.0 * 0.3**k, farther=(k - 3) // 2) for k in range(n)}))


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        outward_figure({})
