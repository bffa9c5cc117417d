"""Panels at the width of a page: labels at outer edges, a legend in reading order, titles no wider than panels."""

from __future__ import annotations

import pytest
from matplotlib.lines import Line2D

from lit_bump.figures.panel_grid import finish_panels, legend_above, panel_grid, shrink_titles
from tests.figures.printed_text import assert_readable, legend_labels, legends


@pytest.mark.parametrize(("n", "shape"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3)), (7, (3, 3))])
def test_panels_fill_rows(n: int, shape: tuple[int, int]) -> None:
    figure, axes = panel_grid(n)
    grid = axes[0].get_subplotspec()
    assert grid is not None
    assert len(axes) == n == sum(panel.get_visible() for panel in figure.axes)
    assert (grid.get_gridspec().nrows, grid.get_gridspec().ncols) == shape


def test_labels_stand_at_the_outer_edges() -> None:
    _, axes = panel_grid(5)
    finish_panels(axes, "abcde", [0.1, 1.0], [1.0], label="r")
    assert [panel.get_ylabel() for panel in axes] == ["r", "", "", "r", ""]
    assert [bool(panel.get_xlabel()) for panel in axes] == [False, False, True, True, True]


def test_a_legend_too_wide_for_a_row_is_read_row_by_row() -> None:
    figure, axes = panel_grid(1)
    finish_panels(axes, "a", [0.1, 1.0], [1.0], label="r")
    curves, notes = ([Line2D([], [], label=f"{kind} {i}") for i in range(n)] for kind, n in (("curve", 3), ("note", 2)))
    legend_above(figure, curves, notes)
    assert_readable(figure)
    (legend,) = legends(figure)
    boxes = {text.get_text(): text.get_window_extent() for text in legend.get_texts()}
    in_order = sorted(boxes, key=lambda name: (-round(boxes[name].y0), boxes[name].x0))
    assert in_order == ["curve 0", "curve 1", "curve 2", "note 0", "note 1"]


def test_a_legend_that_fits_is_one_row() -> None:
    figure, axes = panel_grid(2)
    finish_panels(axes, "ab", [0.1, 1.0], [1.0], label="r")
    legend_above(figure, [Line2D([], [], label=name) for name in "xyz"])
    assert legend_labels(figure) == ["x", "y", "z"]
    assert legends(figure)[0]._ncols == 3  # type: ignore[attr-defined]


def test_titles_shrink_to_their_panel() -> None:
    figure, axes = panel_grid(3)
    finish_panels(axes, ["short", "ResNet-18 of width 8, permuted labels", "other"], [0.1, 1.0], [1.0], label="r")
    shrink_titles(figure, axes)
    sizes = [panel._left_title.get_fontsize() for panel in axes]  # type: ignore[attr-defined]
    assert sizes[0] == sizes[2] > sizes[1] > 5
    assert_readable(figure)


@pytest.mark.parametrize(("n", "columns"), [(0, None), (1, 0)])
def test_no_panel_is_refused(n: int, columns: int | None) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        panel_grid(n, columns=columns)
