"""How the peak moves outward, and why: profiles by training budget, and the local prediction of each.

Paper: fig. 2a (adversarial training moves the peak 10 to 30 times outward, mainly because the local prediction falls
about 2000 times). Needs Matplotlib. Factors are to the first profile; the prediction is the median over images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from lit_bump.figures.curve_style import PRINT_FONT_SIZE, TIMES, curve_look
from lit_bump.figures.panel_grid import finish_panels, legend_above, panel_grid, shrink_titles
from lit_bump.measure.profile import Profile

FloatArray = np.ndarray
_RUG: dict[str, Any] = {"alpha": 0.5, "markersize": 4, "markeredgewidth": 0.7}
_PEAK: dict[str, Any] = {"marker": "*", "markersize": 9, "markeredgecolor": "white", "markeredgewidth": 0.6}


def outward_figure(profiles: Mapping[str, Profile]) -> Figure:
    """Draw median profiles by training budget at the left, and the median local prediction of each at the right.

    A star marks the peak of every profile whose verdict is that it has one; the legend gives its place, and how many
    times further out it is than that of the first.

    Args:
        profiles: by label, from the smallest budget to the largest; all of the same images.

    Returns:
        A figure 6.8 inches wide, known to no window and no global list.

    Raises:
        ValueError: if there is no profile.

    """
    if not profiles:
        raise ValueError("there is no profile: there is nothing to draw")
    figure, (left, right) = panel_grid(2, columns=2)
    first_peak = next(iter(profiles.values())).bump().eta
    handles: list[Artist] = []
    for place, (label, profile) in enumerate(profiles.items()):
        look, bump = curve_look(place), profile.bump()
        left.plot(profile.etas, profile.median(), **look, markersize=2.5, linewidth=1.5, zorder=3)
        text = {"bump": f"peak at η {bump.eta:.2g}", "rising": "still rising", "none": "no peak"}.get(bump.verdict, "")
        if bump.verdict == "bump":
            left.vlines(bump.eta, 0, bump.height, color=look["color"], linewidth=0.8, linestyle=":", zorder=2)
            left.plot(bump.eta, bump.height, color=look["color"], zorder=5, **_PEAK)
            text += "" if place == 0 or not np.isfinite(first_peak) else f" ({_times(bump.eta / first_peak)})"
        handles.append(Line2D([], [], **look, markersize=3.5, label=f"{label}: {text}" if text else label))
    etas = np.concatenate([profile.etas for profile in profiles.values()])
    ratios = np.concatenate([profile.median() for profile in profiles.values()])
    finish_panels([left], ["response profile"], etas.tolist(), ratios.tolist(), label="median ratio r")
    _draw_predictions(right, profiles)
    legend_above(figure, handles)
    shrink_titles(figure, [left, right])
    return figure


def _draw_predictions(axes: Axes, profiles: Mapping[str, Profile]) -> None:
    """Draw the images' predictions as small dots, the quartiles as a bar, the median as a mark with its factor."""
    first: float | None = None
    for place, profile in enumerate(profiles.values()):
        look, values = curve_look(place), _positive(profile.prediction)
        if values.size:
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            first = median if first is None else first
            level = np.full(values.size, place)
            axes.plot(values, level, "|", color=look["color"], **_RUG, transform=_shifted(axes, -6), zorder=2)
            axes.plot([low, high], [place, place], color=look["color"], linewidth=2.5, zorder=3)
            face: dict[str, Any] = {"markeredgecolor": "white", "markersize": 6, "linestyle": "none", "zorder": 4}
            axes.plot(median, place, color=look["color"], marker=look["marker"], **face)
            text = f"{median:.2g}" + (f" ({_times(median / first)})" if place else "")
            above = _shifted(axes, 5)
            axes.text(median, place, text, transform=above, fontsize=PRINT_FONT_SIZE - 1, ha="center", va="bottom")
    axes.set_xscale("log")
    axes.margins(x=0.17)
    axes.set_ylim(len(profiles) - 0.6, -0.75)  # the first on top
    axes.set_yticks(range(len(profiles)), labels=list(profiles))
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 100 else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=PRINT_FONT_SIZE - 1, length=2.5, pad=2)
    axes.set_xlabel("median, quartiles and single images", fontsize=PRINT_FONT_SIZE)
    title = f"local prediction tr G / d (relative to {next(iter(profiles))})"
    axes.set_title(title if len(profiles) > 1 else "local prediction tr G / d", fontsize=PRINT_FONT_SIZE, loc="left")


def _shifted(axes: Axes, points: int) -> Transform:
    """Return the data's transform, moved up by some points."""
    return axes.transData + ScaledTranslation(0, points / 72, axes.figure.dpi_scale_trans)


def _positive(values: Float[FloatArray, " image"]) -> Float[FloatArray, " kept"]:
    return np.asarray(values[np.isfinite(values) & (values > 0)])


def _times(factor: float) -> str:
    """Return a factor as people write it: times 12 for a growth, 1/2,000 for a fall."""
    return f"{TIMES}{_rounded(factor)}" if factor >= 1 else f"1/{_rounded(1 / factor)}"


def _rounded(factor: float) -> str:
    """Return a factor with two digits."""
    digits = float(f"{factor:.2g}")
    return f"{digits:,.0f}" if digits >= 10 else f"{digits:.1f}"
