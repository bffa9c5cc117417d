"""Panels side by side at the width of a page: same limits, labels at the outer edges only, one legend above.

Paper: the layout of figs. 1 to 5. Needs Matplotlib. Widths are those of a printed column and page, so text keeps its
size; the legend stands outside of the panels, where it can cover no curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lit_bump.figures.curve_style import COLUMN_WIDTH, PRINT_DPI, PRINT_FONT_SIZE, TEXT_WIDTH, finish_axes

MOST_COLUMNS = 3
_SMALLEST_TITLE = 5.0  # points


def panel_grid(n_panels: int, *, columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels in rows: one panel as wide as a column, more as wide as the page.

    Args:
        n_panels: at least 1.
        columns: panels in a row; up to 3 where None.

    Returns:
        The figure, whose layout is found when it is drawn, and the panels, row by row.

    Raises:
        ValueError: if there is no panel or no column.

    """
    if n_panels < 1 or (columns is not None and columns < 1):
        raise ValueError(f"there are {n_panels} panels in {columns} columns: there is nothing to draw")
    columns = columns or {4: 2}.get(n_panels, min(n_panels, MOST_COLUMNS))
    rows = -(-n_panels // columns)
    width = COLUMN_WIDTH if columns == 1 else TEXT_WIDTH
    height = min(max(0.72 * width / columns, 1.2), 2.1)
    figure = Figure((width, rows * height + 0.55), dpi=PRINT_DPI, facecolor="white")
    figure.set_layout_engine("constrained", h_pad=0.02, w_pad=0.03)
    axes: list[Axes] = list(chain.from_iterable(figure.subplots(rows, columns, squeeze=False)))
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[n_panels:]:
        panel.set_visible(False)
    return figure, axes[:n_panels]


def finish_panels(
    axes: Sequence[Axes], titles: Iterable[str], etas: Sequence[float], ratios: Sequence[float], *, label: str
) -> None:
    """Give all panels the same limits, a title each, and labels at the left and lower edges.

    Args:
        axes: the panels, curves drawn.
        titles: one a panel.
        etas: all perturbation sizes in the figure.
        ratios: all ratios that must be visible.
        label: of the axis of ratios.

    """
    for panel, title in zip(axes, titles, strict=True):
        finish_axes(panel, etas, ratios, title, font_size=PRINT_FONT_SIZE)
        panel.tick_params(length=2.5, pad=2)
        grid = panel.get_subplotspec()
        assert grid is not None  # made by panel_grid
        n_columns, place = grid.get_gridspec().ncols, grid.num1
        if place + n_columns < len(axes):  # another panel stands below
            panel.set_xlabel("")
            panel.tick_params(labelbottom=False)
        is_leftmost = place % n_columns == 0
        panel.set_ylabel(label if is_leftmost else "", fontsize=PRINT_FONT_SIZE)
        panel.tick_params(labelleft=is_leftmost)


def legend_above(figure: Figure, curves: Sequence[Artist], notes: Sequence[Artist] = ()) -> None:
    """Put one legend above all panels, in as few rows as the width allows, read row by row.

    Args:
        figure: the figure.
        curves: handles with labels.
        notes: handles of what all curves have; they begin a row of their own where one row is too short for all.

    """
    renderer, handles = _renderer(figure), [*curves, *notes]
    fewer = len(curves) if notes and len(curves) > 1 else len(handles) - 1
    for columns in (len(handles), *range(fewer, 0, -1)):
        by_row = [handle for first in range(columns) for handle in handles[first::columns]]  # it is filled by column
        legend = figure.legend(
            handles=by_row,
            loc="outside upper left",
            ncols=columns,
            fontsize=PRINT_FONT_SIZE - 1,
            frameon=False,
            borderaxespad=0.1,
            columnspacing=1.2,
            handlelength=1.8,
            handletextpad=0.5,
        )
        if columns == 1 or legend.get_window_extent(renderer).width < 0.99 * figure.bbox.width:
            return
        legend.remove()


def shrink_titles(figure: Figure, axes: Iterable[Axes]) -> None:
    """Make titles that are wider than their panel smaller, as far as they can still be read.

    Args:
        figure: the figure, complete; its layout is found here.
        axes: the panels.

    """
    figure.draw_without_rendering()
    renderer = _renderer(figure)
    for panel in axes:
        title = panel._left_title  # type: ignore[attr-defined]  # the only handle on a title at the left
        share = panel.get_window_extent(renderer).width / max(title.get_window_extent(renderer).width, 1.0)
        if share < 1.0:
            title.set_fontsize(max(0.98 * share * title.get_fontsize(), _SMALLEST_TITLE))


def _renderer(figure: Figure) -> RendererBase:
    canvas: Any = FigureCanvasAgg(figure)
    renderer: RendererBase = canvas.get_renderer()
    return renderer
