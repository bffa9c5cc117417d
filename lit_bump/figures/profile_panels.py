"""Profiles in panels side by side: in each the medians of some probe sets or runs, with their images behind them.

Paper: figs. 2b and 2c (conditions side by side), 1a and 3 to 5 (a grid of single images). Needs Matplotlib. All panels
have the same limits, and a label has one colour in all of them, so that panels can be compared by eye.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke

from lit_bump.figures.curve_style import PRINT_FONT_SIZE, curve_look
from lit_bump.figures.kept_counts import draw_kept_counts, has_discarded
from lit_bump.figures.median_band import Band, median_band
from lit_bump.figures.panel_grid import finish_panels, legend_above, panel_grid, shrink_titles
from lit_bump.measure.bump import CONFIDENCE
from lit_bump.measure.profile import Profile

_ABSENT: dict[str, Any] = {"fontsize": PRINT_FONT_SIZE - 1, "color": "0.45", "ha": "center", "va": "center"}
_BEHIND = "0.45"  # the grey in which the legend shows what all curves have
_HALO = [Stroke(linewidth=2.6, foreground="white"), Normal()]  # parts a median from the images behind it


def profile_panels(
    panels: Mapping[str, Mapping[str, Profile]],
    *,
    per_image: bool = True,
    band: Band = "none",
    columns: int | None = None,
) -> Figure:
    """Draw profiles in panels with the same logarithmic axes, a median bold, its images thin.

    A rung without an image is a gap in the curve; a hollow mark has lost some images. How many are kept stands at the
    foot, in the curve's colour.

    Args:
        panels: by title, from left to right; each holds profiles by label, or none where it was not measured.
        per_image: draw each image's profile, too.
        band: what to shade about the median: nothing, the ``quartiles`` of the images, or the median's own 90 %
            ``confidence`` interval.
        columns: panels in a row; up to 3 where None.

    Returns:
        A figure 3.3 inches wide with one column, else 6.8, known to no window and no global list.

    Raises:
        ValueError: if no panel holds a profile.

    """
    drawn = [profile for curves in panels.values() for profile in curves.values()]
    if not drawn:
        raise ValueError("no panel holds a profile: there is nothing to draw")
    looks = {label: curve_look(i) for i, label in enumerate(dict.fromkeys(x for p in panels.values() for x in p))}
    figure, axes = panel_grid(len(panels), columns=columns)
    ratios = [profile.ratio if per_image else profile.median() for profile in drawn]
    for panel, curves in zip(axes, panels.values(), strict=True):
        for label, profile in curves.items():
            if per_image:
                alpha = float(np.clip(6.0 / profile.n_images, 0.12, 0.6))
                colour = looks[label]["color"]
                panel.plot(profile.etas, profile.ratio.T, color=colour, alpha=alpha, linewidth=0.5, zorder=2)
            ratios += _draw_band(panel, profile, band, looks[label]["color"])
        for label, profile in curves.items():  # above all that is behind
            _draw_median(panel, profile, looks[label], halo=per_image and band == "none")
        if not curves:
            panel.text(0.5, 0.5, "not measured", transform=panel.transAxes, **_ABSENT)
    etas = np.concatenate([profile.etas for profile in drawn])
    everything = np.concatenate([values.ravel() for values in ratios])
    of_r = "ratio r" if per_image else "median ratio r"
    finish_panels(axes, panels, etas.tolist(), everything.tolist(), label=of_r)
    lines = [Line2D([], [], **look, linewidth=1.6, markersize=3.5, label=label) for label, look in looks.items()]
    legend_above(figure, lines, _notes(drawn, per_image=per_image, band=band))
    shrink_titles(figure, axes)
    draw_kept_counts(figure, axes, list(panels.values()), {label: look["color"] for label, look in looks.items()})
    return figure


def _draw_band(axes: Axes, profile: Profile, band: Band, colour: str) -> list[np.ndarray]:
    """Shade a band.

    Returns:
        Its edges, which must be visible.

    """
    edges = median_band(profile, band)
    if band != "none":
        axes.fill_between(profile.etas, *edges, color=colour, alpha=0.3, linewidth=0, zorder=2.5)
    return list(edges)


def _draw_median(axes: Axes, profile: Profile, look: Mapping[str, Any], *, halo: bool) -> None:
    curve, kept = profile.median(), profile.n_kept()
    line = {name: value for name, value in look.items() if name != "marker"}
    axes.plot(profile.etas, curve, **line, linewidth=1.6, zorder=3, path_effects=_HALO if halo else None)
    for partial, face in ((False, look["color"]), (True, "white")):
        chosen = (kept > 0) & ((kept < profile.n_images) == partial)
        style: dict[str, Any] = {**look, "linestyle": "none", "markerfacecolor": face, "markeredgewidth": 0.7}
        axes.plot(profile.etas[chosen], curve[chosen], **style, markersize=2.8, zorder=4)


def _notes(drawn: list[Profile], *, per_image: bool, band: Band) -> list[Artist]:
    handles: list[Artist] = []
    numbers = {profile.n_images for profile in drawn}
    each = f"each of {numbers.pop()} images" if len(numbers) == 1 else "each image"
    if per_image:
        handles.append(Line2D([], [], color=_BEHIND, linewidth=0.6, label=f"thin: {each}"))
    if band != "none":
        what = "quartiles" if band == "quartiles" else f"{100 * CONFIDENCE:.0f} % interval of the median"
        handles.append(Patch(color=_BEHIND, alpha=0.3, linewidth=0, label=what))
    if any(map(has_discarded, drawn)):
        style: dict[str, Any] = {"linestyle": "none", "color": _BEHIND, "markerfacecolor": "white"}
        handles.append(Line2D([], [], **style, marker="o", markersize=3.5, label="not all images (numbers: kept)"))
    return handles
