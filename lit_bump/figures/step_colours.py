"""Colours of optimiser steps: early pale, late dark, on a logarithmic scale that has a place for step 0.

Paper: fig. 1c. Needs Matplotlib. Viridis stays in order for every kind of colour vision, and in grey.
"""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, Normalize

# Never so dark that it could be taken for black, in which the newest is drawn.
COLOURS = ListedColormap(colormaps["viridis_r"](np.linspace(0.0, 0.85, 256)))


def step_place(step: int) -> float:
    """Return the place of a step on the scale: log10(1 + step).

    Args:
        step: optimiser step; 0 is the initialisation.

    Returns:
        A number from 0 on.

    Example:
        >>> step_place(0), round(step_place(999))
        (0.0, 3)

    """
    return float(np.log10(1.0 + step))


def step_scale(last: int) -> Normalize:
    """Return the scale from step 0 to a last one.

    Args:
        last: the largest step.

    Returns:
        A map from places to shares.

    """
    return Normalize(0.0, max(step_place(last), 1.0))


def finish_step_bar(bar: Colorbar, last: int, font_size: int) -> None:
    """Write round steps beside a colour bar.

    Args:
        bar: of places.
        last: the largest step.
        font_size: of its label; that of the numbers is one less.

    """
    steps = [0, *(10**k for k in range(12) if 10**k <= max(last, 1))]
    thinned = [0, *steps[1:][:: max(1, len(steps) // 6)]]
    if step_place(1) < 0.07 * step_place(last):  # too near to 0
        thinned.remove(1)
    bar.set_ticks([step_place(step) for step in thinned], labels=[_short(step) for step in thinned])
    bar.ax.tick_params(labelsize=font_size - 1, length=2)
    bar.set_label("step", fontsize=font_size)
    bar.outline.set_visible(False)


def _short(step: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if step >= size:
            return f"{step / size:g}{unit}"
    return str(step)
