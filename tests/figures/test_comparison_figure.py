"""Laws of the comparison: sizes of images are made comparable, and controls look like controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from lit_bump.figures.comparison_figure import Curve, comparison_figure
from lit_bump.measure import Profile
from tests.figures.drawn_profiles import drawn_profile

SMALL, LARGE = (3, 32, 32), (3, 224, 224)


def scaled(profile: Profile, factor: float) -> Profile:
    """Return a profile on a ladder of another size."""
    etas = profile.etas * factor
    return replace(profile, etas=etas, protocol=replace(profile.protocol, etas=tuple(etas.tolist())))


def curves_of(axes: Axes) -> dict[str, np.ndarray]:
    """Return the drawn curves by line style."""
    return {
        str(line.get_linestyle()): np.array(line.get_xydata()) for line in axes.lines if np.size(line.get_xdata()) == 17
    }


def test_images_of_two_sizes_overlay_by_amplitude_a_pixel() -> None:
    profile = drawn_profile(5.0)
    both = {"small": Curve(profile, SMALL, "a"), "large": Curve(scaled(profile, 7.0), LARGE, "a", is_control=True)}
    (axes,) = comparison_figure(both).axes[:1]
    drawn = curves_of(axes)
    np.testing.assert_allclose(drawn["-"], drawn["--"], rtol=1e-12)
    np.testing.assert_allclose(drawn["-"][:, 0], profile.etas / np.sqrt(3 * 32 * 32), rtol=1e-12)
    assert "amplitude a pixel" in axes.get_xlabel()
    assert {axis.get_xlabel() for axis in axes.child_axes} == {"η at 32x32 px", "η at 224x224 px"}


def test_images_of_one_size_stay_at_their_eta() -> None:
    profile = drawn_profile(5.0)
    (axes,) = comparison_figure({"one": Curve(profile, SMALL, "a")}).axes[:1]
    np.testing.assert_allclose(curves_of(axes)["-"][:, 0], profile.etas)
    assert axes.get_xlabel() == "perturbation size η"


@pytest.mark.parametrize(("height", "n_peaks"), [(5.0, 1), (0.0, 0)])
def test_only_a_bump_has_its_peak_marked(height: float, n_peaks: int) -> None:
    (axes,) = comparison_figure({"one": Curve(drawn_profile(height), SMALL, "a")}).axes[:1]
    assert sum(line.get_marker() == "^" for line in axes.lines) == n_peaks


def test_a_control_has_the_colour_of_its_group_and_another_line() -> None:
    pair = {
        "net": Curve(drawn_profile(5.0), SMALL, "net"),
        "net (random)": Curve(drawn_profile(), SMALL, "net", is_control=True),
    }
    (axes,) = comparison_figure(pair).axes[:1]
    lines = [line for line in axes.lines if np.size(line.get_xdata()) == 17]
    assert lines[0].get_color() == lines[1].get_color()
    assert [line.get_linestyle() for line in lines] == ["-", "--"]
    assert lines[1].get_markerfacecolor() == "white"


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="no curve"):
        comparison_figure({})


def test_no_two_of_many_curves_look_alike() -> None:
    curves = {}
    for n in range(9):
        curves[f"net {n}"] = Curve(drawn_profile(n + 1.0), SMALL, f"net {n}")
        curves[f"net {n} (random)"] = Curve(drawn_profile(), SMALL, f"net {n}", is_control=True)
    (axes,) = comparison_figure(curves).axes[:1]
    looks = [
        (line.get_color(), line.get_marker(), str(line._dash_pattern), line.get_markerfacecolor())  # type: ignore[attr-defined]
        for line in axes.lines
        if np.size(line.get_xdata()) == 17
    ]
    assert len(set(looks)) == len(looks) == 18
