"""Figures of saved profiles: they read and draw, and never measure.

Paper: figures 1 to 5. Needs Matplotlib, without pyplot: a figure here is an object like any other, with no window, no
backend and no entry in a global list, so drawing from a thread or a training loop disturbs nobody.
"""

from lit_bump.figures.comparison_figure import comparison_figure
from lit_bump.figures.formation_figure import formation_figure
from lit_bump.figures.formation_panels import formation_panels
from lit_bump.figures.outward_figure import outward_figure
from lit_bump.figures.profile_figure import profile_figure
from lit_bump.figures.profile_panels import profile_panels
from lit_bump.figures.rgb_array import rgb_array
from lit_bump.figures.saved_figure import save_figure

__all__ = [
    "comparison_figure",
    "formation_figure",
    "formation_panels",
    "outward_figure",
    "profile_figure",
    "profile_panels",
    "rgb_array",
    "save_figure",
]
