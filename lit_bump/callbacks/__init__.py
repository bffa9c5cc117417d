"""Lightning callbacks that watch a bump form: the measurement itself, and checkpoints at chosen steps.

Paper: section 3 "Formation". May import ``measure``, ``probes``, ``schedules`` and ``figures``; the numbers all come
from ``measure``. The folder ``callbacks`` at the root of the repository is a link to this one, for readers only.
"""

from __future__ import annotations

if __name__ != "lit_bump.callbacks":  # through the link at the root: every class would exist twice
    raise ImportError(f"import lit_bump.callbacks instead of {__name__}: that folder is a link for readers")

from lit_bump.callbacks.rprofile import RProfileCallback
from lit_bump.callbacks.step_checkpoint import StepCheckpoint

__all__ = ["RProfileCallback", "StepCheckpoint"]
