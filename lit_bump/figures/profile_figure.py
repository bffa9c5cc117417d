"""One response profile: every image a thin line, their median bold, the quartiles as a band.

Paper: fig. 1a and appendix B (figs. 3 to 5). Needs Matplotlib. It reads a saved profile and measures nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lit_bump.figures.curve_style import FONT_SIZE, NEWEST, finish_axes, mark_discarded, new_axes
from lit_bump.measure.profile import Profile

BAND = "tab:blue"


def profile_figure(profile: Profile, *, title: str | None = None) -> Figure:
    """Draw a profile: images thin, the median bold, a band from the lower to the upper quartile.

    Where a rung keeps fewer than all images, the number kept stands below; the median there rests on those alone.

    Args:
        profile: as measured or loaded.
        title: what to write above; the probe set and step where None, as far as the profile's context tells.

    Returns:
        A figure of 5 x 3 inches at 120 dpi, known to no window and no global list.

    """
    figure, axes = new_axes()
    draw_profile(axes, profile, title=title)
    return figure


def draw_profile(axes: Axes, profile: Profile, *, title: str | None = None) -> None:
    """Draw a profile on axes that are there.

    Args:
        axes: get a logarithmic axis for eta and one for the ratio.
        profile: as for ``profile_figure``.
        title: likewise.

    """
    etas, kept, curve = profile.etas, profile.n_kept(), profile.median()
    low, high = profile.quantiles([0.25, 0.75])
    alpha = float(np.clip(4.0 / profile.n_images, 0.12, 0.6))
    axes.plot(etas, profile.ratio.T, color=BAND, alpha=alpha, linewidth=0.6, zorder=2)
    axes.fill_between(etas, low, high, color=BAND, alpha=0.22, linewidth=0, zorder=2)
    axes.plot(etas, curve, color=NEWEST, linewidth=2.2, zorder=3)
    axes.plot(etas[kept > 0], curve[kept > 0], "o", color=NEWEST, markersize=3.0, zorder=3)
    finish_axes(axes, etas, np.concatenate([profile.ratio.ravel(), curve]), _title(profile) if title is None else title)
    mark_discarded(axes, etas, kept == 0)
    note: dict[str, Any] = {"color": "0.35", "va": "bottom"}
    for eta, n in zip(etas, kept, strict=True):
        if 0 < n < profile.n_images:
            axes.text(
                eta, 0.01, str(n), transform=axes.get_xaxis_transform(), fontsize=FONT_SIZE - 4, ha="center", **note
            )
    count = f"{profile.n_images} {'image' if profile.n_images == 1 else 'images'}"
    axes.text(1.0, 1.015, count, transform=axes.transAxes, fontsize=FONT_SIZE - 2, ha="right", **note)


def _title(profile: Profile) -> str:
    facts = [str(profile.context[name]) for name in ("encoder", "probe") if profile.context.get(name)]
    facts = [fact for fact in facts if fact != "forward_features"]  # that is what is meant if nothing is said
    if "step" in profile.context:
        facts.append(f"step {int(profile.context['step']):,}")
    return ", ".join(facts) or "response profile"
