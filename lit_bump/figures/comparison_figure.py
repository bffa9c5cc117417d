"""Medians of several encoders in one panel: trained ones solid, random ones dashed, sizes of images made comparable.

Paper: figs. 1a, 1b. Needs Matplotlib. Images of several sizes share the amplitude a pixel, eta / sqrt(d): the same
visible noise. The L2 size of each is on an axis above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lit_bump.figures.curve_style import MARKERS, OKABE_ITO, PRINT_FONT_SIZE
from lit_bump.figures.median_band import Band, median_band
from lit_bump.figures.panel_grid import finish_panels, legend_above, panel_grid
from lit_bump.measure.bump import CONFIDENCE
from lit_bump.measure.profile import Profile


@dataclass(frozen=True)
class Curve:
    """Hold a profile and how it is told from the others.

    Args:
        profile: whose median is drawn.
        input_size: channels, height and width of its images.
        group: curves of one group have one colour, such as a network and its random copy.
        is_control: drawn dashed with hollow marks, as random networks are.

    """

    profile: Profile
    input_size: Sequence[int]
    group: str
    is_control: bool = False


def comparison_figure(curves: Mapping[str, Curve], *, band: Band = "none", per_pixel: bool | None = None) -> Figure:
    """Draw medians in one panel; the peak of each bump is marked by a stem to the axis.

    Args:
        curves: by label, in the order of the legend.
        band: what to shade about each median.
        per_pixel: whether the lower axis is the amplitude a pixel; where the images differ in size if None.

    Returns:
        A figure as wide as a page, known to no window and no global list.

    Raises:
        ValueError: if there is no curve.

    """
    if not curves:
        raise ValueError("there is no curve to draw")
    sizes = list(dict.fromkeys(math.prod(curve.input_size) for curve in curves.values()))
    per_pixel = len(sizes) > 1 if per_pixel is None else per_pixel
    figure, (axes,) = panel_grid(1, columns=1)
    figure.set_size_inches(6.0, 3.8)
    groups = list(dict.fromkeys(curve.group for curve in curves.values()))
    places, ratios, lines = [], [], []
    for label, curve in curves.items():
        scale = 1 / math.sqrt(math.prod(curve.input_size)) if per_pixel else 1.0
        look = _look(groups.index(curve.group), curve)
        x, median = curve.profile.etas * scale, curve.profile.median()
        if band != "none":
            low, high = median_band(curve.profile, band)
            axes.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0, zorder=2)
            ratios += [low, high]
        axes.plot(x, median, **look, linewidth=1.5, markersize=3.2, zorder=3)
        bump = curve.profile.bump()
        if bump.verdict == "bump":
            foot: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 4}
            axes.plot([bump.eta * scale], [0.0], marker="^", color=look["color"], markersize=5, **foot)
        places.append(x)
        ratios.append(median)
        lines.append(Line2D([], [], **look, linewidth=1.5, markersize=3.5, label=label))
    finish_panels(
        [axes], [""], np.concatenate(places).tolist(), np.concatenate(ratios).tolist(), label="median ratio r"
    )
    _name_axes(axes, curves, per_pixel=per_pixel)
    notes: list[Artist] = []
    if any(curve.profile.bump().verdict == "bump" for curve in curves.values()):
        notes.append(Line2D([], [], color="0.45", marker="^", linestyle="none", markersize=5, label="peak of a bump"))
    if band != "none":
        what = "quartiles" if band == "quartiles" else f"{100 * CONFIDENCE:.0f} % interval of the median"
        notes.append(Patch(color="0.45", alpha=0.3, linewidth=0, label=what))
    legend_above(figure, lines, notes)
    return figure


def _look(place: int, curve: Curve) -> dict[str, Any]:
    turn, place = divmod(place, len(OKABE_ITO))
    solid: tuple[Any, ...] = ("-", "-.", (0, (5, 1, 1, 1, 1, 1)))
    dashed: tuple[Any, ...] = ("--", (0, (2, 1.5)), (0, (6, 2, 2, 2)))
    style = (dashed if curve.is_control else solid)[turn % 3]
    face = "white" if curve.is_control else OKABE_ITO[place]
    return {"color": OKABE_ITO[place], "marker": MARKERS[place], "linestyle": style, "markerfacecolor": face}


def _name_axes(axes: Axes, curves: Mapping[str, Curve], *, per_pixel: bool) -> None:
    """Say what the lower axis is, and put the other measure of the same perturbation above."""
    by_size = {tuple(curve.input_size): math.sqrt(math.prod(curve.input_size)) for curve in curves.values()}
    if per_pixel:
        axes.set_xlabel("amplitude a pixel, η / √d", fontsize=PRINT_FONT_SIZE)
    for number, (size, root) in enumerate(sorted(by_size.items())[:3]):  # a fourth would stand too high
        factor = root if per_pixel else 1 / root
        above = axes.secondary_xaxis(1.0 + 0.2 * number, functions=_scaled(factor))
        above.xaxis.set_major_locator(LogLocator())
        above.xaxis.set_minor_locator(NullLocator())
        above.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
        above.tick_params(labelsize=PRINT_FONT_SIZE - 1, length=2.5, pad=2)
        words = f"η at {size[-2]}x{size[-1]} px" if per_pixel else "amplitude a pixel, η / √d"
        above.set_xlabel(words, fontsize=PRINT_FONT_SIZE - 1)
        if not per_pixel:
            break


def _scaled(factor: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return lambda x: x * factor, lambda x: x / factor
