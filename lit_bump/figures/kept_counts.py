"""The numbers at the foot of a panel: of how many images each median is, where it is not of all.

Paper: A.2 "Protocol" (rungs are discarded image by image, the median is over the others). Needs Matplotlib. The numbers
stand in a strip of their own below the curves, a line a curve, so they can hide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lit_bump.figures.curve_style import TIMES
from lit_bump.measure.profile import Profile

_LINE = 0.095  # inches
_FONT_SIZES = (4.0, 6.0)  # points
_DIGIT_WIDTH = 0.65  # of the font size


def has_discarded(profile: Profile) -> bool:
    """Say whether any image lacks a rung.

    Args:
        profile: any.

    Returns:
        Whether the counts of this profile are drawn.

    """
    return bool((profile.n_kept() < profile.n_images).any())


def draw_kept_counts(
    figure: Figure, axes: Sequence[Axes], panels: Sequence[Mapping[str, Profile]], colours: Mapping[str, Any]
) -> None:
    """Make room at the foot of all panels, and write there how many images each rung keeps, a cross for none.

    Args:
        figure: the figure, complete but for this; its layout is found here.
        axes: the panels, with their final limits.
        panels: curves by label, one mapping a panel.
        colours: of the labels.

    """
    lines = [label for label in colours if any(label in panel and has_discarded(panel[label]) for panel in panels)]
    if not lines:
        return
    strip = _LINE * (len(lines) + 0.3)
    grid = axes[0].get_subplotspec()
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + strip * (grid.get_gridspec().nrows if grid else 1))
    figure.draw_without_rendering()
    inches = axes[0].get_window_extent().height / figure.dpi
    low, high = axes[0].get_ylim()
    foot = low / (high / low) ** (strip / max(inches - strip, strip))
    for panel, curves in zip(axes, panels, strict=True):
        panel.set_yticks([tick for tick in panel.get_yticks() if low <= tick <= high])  # none beside the numbers
        panel.set_ylim(foot, high)
        first, last = panel.get_xlim()
        width = panel.get_window_extent().width / figure.dpi
        for row, label in enumerate(reversed(lines)):
            if label in curves:
                profile = curves[label]
                rung = width / np.log10(last / first) * float(np.diff(np.log10(profile.etas)).min(initial=1.0))
                size = 0.85 * 72 * rung / (_DIGIT_WIDTH * len(str(profile.n_images)))
                place = _LINE * (row + 0.6) / inches
                _write_line(panel, profile, place, colours[label], float(np.clip(size, *_FONT_SIZES)))


def _write_line(axes: Axes, profile: Profile, height: float, colour: Any, size: float) -> None:
    place = axes.get_xaxis_transform()  # x in data, y as a share of the height
    for eta, n in zip(profile.etas, profile.n_kept(), strict=True):
        if n < profile.n_images:
            note = axes.text(eta, height, str(n) if n else TIMES, transform=place, color=colour, fontsize=size)
            note.set(ha="center", va="center", in_layout=False)
