"""Panels side by side: same axes, a colour a label, all images behind their median, and nothing over anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lit_bump.figures import profile_panels, rgb_array
from lit_bump.measure import Profile
from tests.figures.drawn_profiles import drawn_profile
from tests.figures.printed_text import assert_readable, legend_labels


def blur_panels(**options: int) -> dict[str, dict[str, Profile]]:
    return {
        f"trained on blur {i}": {f"evaluated on blur {j}": drawn_profile(9.0 + 9 * j - i, **options) for j in range(3)}
        for i in range(3)
    }


def bold(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_linewidth() > 1.5 and line.get_linestyle() == "-"]


def thin(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_linewidth() == 0.5]


def counts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_every_panel_has_the_same_axes_and_a_line_at_one() -> None:
    panels = {"flat": {"a": drawn_profile(0.0)}, "high": {"a": drawn_profile(40.0)}, "other": {"b": drawn_profile(3.0)}}
    axes = profile_panels(panels).axes
    assert [panel.get_title(loc="left") for panel in axes] == ["flat", "high", "other"]
    assert len({(panel.get_xlim(), panel.get_ylim()) for panel in axes}) == 1
    assert all((panel.get_xscale(), panel.get_yscale()) == ("log", "log") for panel in axes)
    assert all(any(list(np.unique(line.get_ydata())) == [1.0] for line in panel.lines) for panel in axes)
    assert axes[0].get_ylim()[1] > np.nanmax(panels["high"]["a"].ratio)


def test_the_bold_line_is_the_median_and_each_image_a_thin_one() -> None:
    profile = drawn_profile(5.0, n_images=7, n_lost=2)
    axes = profile_panels({"": {"a": profile}}).axes[0]
    np.testing.assert_array_equal(bold(axes)[0].get_ydata(), profile.median())
    np.testing.assert_array_equal([line.get_ydata() for line in thin(axes)], profile.ratio)


def test_without_images_there_are_medians_alone() -> None:
    figure = profile_panels({"": {"a": drawn_profile(5.0)}}, per_image=False)
    assert not thin(figure.axes[0])
    assert "image" not in " ".join(legend_labels(figure))
    assert figure.axes[0].get_ylabel() == "median ratio r"


def test_a_label_has_one_colour_in_all_panels_and_every_label_its_own() -> None:
    panels = {
        "one": {"a": drawn_profile(1.0), "b": drawn_profile(2.0)},
        "two": {"b": drawn_profile(3.0), "c": drawn_profile(4.0)},
    }
    one, two = (list(map(Line2D.get_color, bold(axes))) for axes in profile_panels(panels).axes)
    assert one[1] == two[0]
    assert len({*one, *two}) == 3


def test_counts_stand_where_images_are_lost_and_a_cross_where_all_are() -> None:
    figure = profile_panels({"": {"a": drawn_profile(5.0, n_lost=2), "b": drawn_profile(5.0)}})
    assert counts(figure) == ["\N{MULTIPLICATION SIGN}", "\N{MULTIPLICATION SIGN}", "5"]
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]  # type: ignore[arg-type]
    assert [len(line.get_xdata()) for line in hollow] == [1]  # type: ignore[arg-type]
    assert any("numbers: kept" in label for label in legend_labels(figure))
    assert "numbers" not in " ".join(legend_labels(profile_panels({"": {"b": drawn_profile(5.0)}})))


def test_counts_are_below_all_curves() -> None:
    profile = drawn_profile(5.0, n_lost=3)
    profile = replace(profile, ratio=0.1 * profile.ratio)
    axes = profile_panels({"": {"a": profile, "b": profile}}).axes[0]
    low, high = np.log(axes.get_ylim())
    curves = (np.log(np.nanmin(profile.ratio)) - low) / (high - low)
    heights = [text.get_position()[1] for text in axes.texts]
    assert max(heights) < curves
    assert len(set(heights)) == 2  # a line a curve


@pytest.mark.parametrize(("band", "edges"), [("none", 0), ("quartiles", 2), ("confidence", 2)])
def test_a_band_is_drawn_where_asked(band: str, edges: int) -> None:
    panels = {"": {"a": drawn_profile(5.0), "b": drawn_profile(2.0)}}
    assert len(profile_panels(panels, band=band).axes[0].collections) == edges  # type: ignore[arg-type]


def test_a_place_that_was_not_measured_says_so() -> None:
    figure = profile_panels({"here": {"a": drawn_profile()}, "there": {}})
    assert counts(figure) == ["not measured"]


@pytest.mark.parametrize(("n", "columns", "width"), [(1, None, 3.3), (2, None, 6.8), (3, None, 6.8), (10, 5, 6.8)])
def test_widths_are_those_of_a_page(n: int, columns: int | None, width: float) -> None:
    figure = profile_panels({str(i): {"a": drawn_profile()} for i in range(n)}, columns=columns)
    assert figure.get_size_inches()[0] == pytest.approx(width)


@pytest.mark.parametrize("band", ["none", "confidence"])
@pytest.mark.parametrize("n_lost", [0, 3])
def test_text_of_three_panels_can_be_read(band: str, n_lost: int) -> None:
    assert_readable(profile_panels(blur_panels(n_images=32, n_lost=n_lost), band=band))  # type: ignore[arg-type]


def test_text_of_one_column_with_long_labels_can_be_read() -> None:
    curves = {f"evaluated on {name} images": drawn_profile(3.0, n_lost=2) for name in ("clean", "blurred", "noise")}
    assert_readable(profile_panels({"ResNet-18 of width 64, trained on permuted labels": curves}, band="quartiles"))


def test_text_of_a_grid_can_be_read() -> None:
    panels = {f"ConvNeXt-Tiny\nset {i}": {"median": drawn_profile(9.0, n_lost=1, n_images=8)} for i in range(10)}
    assert_readable(profile_panels(panels, columns=5))


def test_a_panel_without_any_kept_rung_can_be_drawn() -> None:
    figure = profile_panels({"": {"a": drawn_profile(n_images=1, n_lost=16)}}, band="confidence")
    assert rgb_array(figure).std() > 0


@pytest.mark.parametrize("panels", [{}, {"empty": {}}])
def test_nothing_to_draw_is_refused(panels: dict[str, dict[str, Profile]]) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        profile_panels(panels)
