"""What all figures of profiles share: sizes, colours, axes, limits, the line at r = 1, the marks of discarded rungs.

Paper: fig. 1 (eta across, r upwards). Needs Matplotlib and NumPy. Both axes are logarithmic, and the limits never close
in on less than [0.5, 2]: noise on a flat profile must not look like a bump.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

FloatArray = np.ndarray
BoolArray = np.ndarray
SIZE = (5.0, 3.0)  # inches; with 120 dpi it fills a TensorBoard card, where text of 11 pt is still read with ease
DPI = 120
FONT_SIZE = 11
COLUMN_WIDTH, TEXT_WIDTH = 3.3, 6.8  # inches, of a page with two columns: for figures that go into a text
PRINT_FONT_SIZE = 8  # points, at those widths
PRINT_DPI = 200  # text of 7 points is then 19 pixels high
NEWEST = "black"
# Okabe and Ito's colours, which people with any colour vision tell apart; without the yellow, too pale for a line.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
TIMES = "\N{MULTIPLICATION SIGN}"  # named, because it looks like an x
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
REFERENCE: dict[str, Any] = {"color": "0.55", "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 1}
_FLOOR = (0.5, 2.0)  # the limits of r hold at least this
_CEILING = (1e-2, 1e4)  # and no more than this, so that one wild rung does not flatten everything else


def new_axes(*, right: float = 0.97) -> tuple[Figure, Axes]:
    """Return a figure with one panel at fixed margins (constrained layout costs a third more time).

    Args:
        right: right edge of the panel, as a share of the width; smaller leaves room for a colour bar.

    Returns:
        The figure and its panel.

    """
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    axes = figure.add_axes((0.125, 0.175, right - 0.125, 0.71))
    axes.set_facecolor("white")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def curve_look(place: int) -> dict[str, Any]:
    """Return colour, marker and line style of a curve, so that no two look alike, in grey neither.

    Args:
        place: of the curve among those of the figure, from 0.

    Returns:
        Keywords for ``Axes.plot``.

    Example:
        >>> curve_look(0) == curve_look(len(OKABE_ITO))
        False

    """
    turn, place = divmod(place, len(OKABE_ITO))
    return {"color": OKABE_ITO[place], "marker": MARKERS[place], "linestyle": ("-", "--", ":", "-.")[turn % 4]}


def finish_axes(
    axes: Axes, etas: Iterable[float], ratios: Iterable[float], title: str, *, font_size: int = FONT_SIZE
) -> None:
    """Set scales, limits, labels and the line at r = 1.

    Args:
        axes: the panel, curves drawn.
        etas: all perturbation sizes in it.
        ratios: all ratios that must be visible; NaN is passed over.
        title: what the panel shows.
        font_size: of labels and title; that of the ticks is one less.

    """
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = np.array(list(etas), dtype=np.float64)
    if sizes.size:
        margin = (sizes.max() / sizes.min()) ** 0.02 if sizes.max() > sizes.min() else 2.0
        axes.set_xlim(sizes.min() / margin, sizes.max() * margin)
    axes.set_ylim(*ratio_limits(ratios))
    axes.axhline(1.0, **REFERENCE)
    axes.set_xlabel("perturbation size η", fontsize=font_size)  # plain text: TeX notation costs half of the drawing
    axes.set_ylabel("ratio r", fontsize=font_size)
    axes.set_title(title, fontsize=font_size, loc="left")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if _decades(axes) < 2.5 else (1.0,)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=font_size - 1)


def ratio_limits(ratios: Iterable[float]) -> tuple[float, float]:
    """Return limits of the axis of r that hold the ratios and at least [0.5, 2].

    Args:
        ratios: any numbers; NaN, infinities and what is not positive are passed over.

    Returns:
        Lower and upper limit.

    Example:
        >>> ratio_limits([1.0, 1.01, float("nan")])
        (0.5, 2.0)

    """
    values = np.array(list(ratios), dtype=np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return _FLOOR
    low, high = min(_FLOOR[0], float(values.min()) / 1.15), max(_FLOOR[1], float(values.max()) * 1.15)
    return max(low, _CEILING[0]), min(high, _CEILING[1])


def mark_discarded(axes: Axes, etas: Float[FloatArray, " rung"], discarded: Bool[BoolArray, " rung"]) -> None:
    """Put a cross at the foot of the panel for every rung at which no image is kept, and say what it means.

    Args:
        axes: the panel.
        etas: the ladder.
        discarded: which rungs.

    """
    if discarded.any():
        place = axes.get_xaxis_transform()  # x in data, y as a share of the height
        feet = np.full(int(discarded.sum()), 0.035)
        axes.plot(etas[discarded], feet, "x", color="0.35", markersize=5, transform=place, clip_on=False, zorder=4)
        note: dict[str, Any] = {"fontsize": FONT_SIZE - 3, "color": "0.35", "ha": "left", "va": "bottom"}
        axes.text(0.01, 0.075, "x: no image kept", transform=axes.transAxes, **note)


def _decades(axes: Axes) -> float:
    low, high = axes.get_ylim()
    return float(np.log10(high / low))
