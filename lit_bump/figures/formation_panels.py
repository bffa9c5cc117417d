"""The formation of several runs side by side: median profiles of every measured step, coloured by step.

Paper: fig. 1c, a panel an architecture. Needs Matplotlib. One scale of colours holds for all panels: two curves of one
colour are of one step, whatever the lengths of their runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lit_bump.figures.curve_style import NEWEST, OKABE_ITO, PRINT_FONT_SIZE
from lit_bump.figures.panel_grid import finish_panels, legend_above, panel_grid, shrink_titles
from lit_bump.figures.step_colours import COLOURS, finish_step_bar, step_place, step_scale
from lit_bump.measure.formation import Formation

_FIRST: dict[str, Any] = {"color": OKABE_ITO[1], "linewidth": 1.3, "linestyle": (0, (3, 1.5))}
_LAST: dict[str, Any] = {"color": NEWEST, "linewidth": 1.6}


def formation_panels(formations: Mapping[str, Formation], *, columns: int | None = None) -> Figure:
    """Draw the median profiles of runs over training, a panel a run, with the same axes and one colour bar.

    Step 0, the initialisation, is dashed; the last step of each run is black. Rungs without an image are gaps.

    Args:
        formations: by title, from left to right; each holds at least one step.
        columns: panels in a row; up to 3 where None.

    Returns:
        A figure 3.3 inches wide with one panel, else 6.8, known to no window and no global list.

    Raises:
        ValueError: if there is no formation, or one holds no step.

    """
    for title, formation in formations.items():
        if not len(formation):
            raise ValueError(f"the formation {title!r} holds no step: there is nothing to draw")
    figure, axes = panel_grid(len(formations), columns=columns)
    last = max(formation.steps[-1] for formation in formations.values())
    scale = step_scale(last)
    for panel, formation in zip(axes, formations.values(), strict=True):
        for step, profile in zip(formation.steps, formation.profiles, strict=True):
            look: dict[str, Any] = {"color": COLOURS(scale(step_place(step))), "linewidth": 0.9, "zorder": 2}
            if step == formation.steps[-1]:
                look = {**_LAST, "zorder": 3}
            elif step == 0:
                look = {**_FIRST, "zorder": 2.5}
            panel.plot(profile.etas, profile.median(), **look)
    profiles = [profile for formation in formations.values() for profile in formation.profiles]
    etas = np.concatenate([profile.etas for profile in profiles])
    ratios = np.concatenate([profile.median() for profile in profiles])
    finish_panels(axes, formations, etas.tolist(), ratios.tolist(), label="median ratio r")
    if last > 0:
        bar = figure.colorbar(ScalarMappable(scale, COLOURS), ax=axes, ticks=[], pad=0.015, aspect=25, fraction=0.05)
        finish_step_bar(bar, last, PRINT_FONT_SIZE)
    handles: list[Artist] = [Line2D([], [], **_LAST, label="last step")]
    if any(0 in formation.steps[:-1] for formation in formations.values()):
        handles.insert(0, Line2D([], [], **_FIRST, label="initialisation (step 0)"))
    legend_above(figure, handles)
    shrink_titles(figure, axes)
    return figure
