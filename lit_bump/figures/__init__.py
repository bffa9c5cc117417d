"""Figures of saved profiles: they read and draw, and never measure.

Paper: figures 1 to 5. Needs Matplotlib, without pyplot: a figure here is an object like any other, with no window, no
backend and no entry in a global list, so drawing from a thread or a training loop disturbs nobody.
"""

from lit_bump.figures.formation_figure import formation_figure
from lit_bump.figures.profile_figure import profile_figure
from lit_bump.figures.rgb_array import rgb_array

__all__ = ["formation_figure", "profile_figure", "rgb_array"]
