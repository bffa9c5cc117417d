"""Formations side by side: one scale of colours for all, the initialisation and the last step told apart."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from lit_bump.figures import formation_panels
from lit_bump.measure import Formation
from tests.figures.drawn_profiles import drawn_formation
from tests.figures.printed_text import assert_readable, legend_labels


def curves(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if len(np.asarray(line.get_xdata())) == 17]


def test_every_step_is_a_curve_with_the_same_axes_in_all_panels() -> None:
    formations = {"ResNet-18": drawn_formation(0.0, 1.0, 9.0), "VGG-16": drawn_formation(0.0, 2.0, 12.0, 30.0)}
    figure = formation_panels(formations)
    left, right, _bar = figure.axes
    for axes, formation in zip((left, right), formations.values(), strict=True):
        np.testing.assert_array_equal([line.get_ydata() for line in curves(axes)], formation.medians())
    assert (left.get_xlim(), left.get_ylim()) == (right.get_xlim(), right.get_ylim())
    assert [left.get_title(loc="left"), right.get_title(loc="left")] == list(formations)


def test_a_colour_means_one_step_in_all_panels() -> None:
    short, long = (drawn_formation(*range(n)) for n in (4, 9))
    left, right, _bar = formation_panels({"short": short, "long": long}).axes
    colours = [[to_rgba(line.get_color()) for line in curves(axes)] for axes in (left, right)]
    assert colours[0][1:3] == colours[1][1:3]
    assert len(set(colours[1])) == 9


def test_initialisation_is_dashed_and_the_last_step_black_and_bold() -> None:
    figure = formation_panels({"net": drawn_formation(0.0, 1.0, 9.0)})
    first, middle, last = curves(figure.axes[0])
    assert [line.get_linestyle() for line in (first, middle, last)] == ["--", "-", "-"]
    assert to_rgba(last.get_color()) == to_rgba("black")
    assert last.get_linewidth() > middle.get_linewidth()
    assert legend_labels(figure) == ["initialisation (step 0)", "last step"]


def test_one_step_needs_neither_colour_bar_nor_initialisation() -> None:
    figure = formation_panels({"net": drawn_formation(3.0)})
    assert len(figure.axes) == 1
    assert legend_labels(figure) == ["last step"]


@pytest.mark.parametrize("n", [1, 3, 4])
def test_text_can_be_read(n: int) -> None:
    panels = {f"network {i}": drawn_formation(*np.geomspace(0.1, 30, 17), n_lost=2) for i in range(n)}
    assert_readable(formation_panels(panels))


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="'net' holds no step"):
        formation_panels({"net": Formation((), ())})
    with pytest.raises(ValueError, match="nothing to draw"):
        formation_panels({})
