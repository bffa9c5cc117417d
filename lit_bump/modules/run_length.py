"""How many optimiser steps a run will take, asked of its trainer.

Paper: A.2 "Training" (39,100 steps: the length of the cosine, and the last step of the formation schedule).
Imports Lightning. The trainer's own estimate counts batches, so it is short where one batch makes several steps.
"""

from __future__ import annotations

import math

from lightning.pytorch import Trainer


def run_length(trainer: Trainer) -> int | None:
    """Return the optimiser step at which a run ends, in the unit of ``trainer.global_step``.

    Gradient accumulation, ``max_steps`` and ``max_epochs`` are counted in. A run that stops early (``max_time``, early
    stopping) ends before. In manual optimisation a batch may make any number of steps, so only ``max_steps`` tells.

    Args:
        trainer: attached to its module and data; sets up the training data loader if that has not happened.

    Returns:
        The last step, or None if it is unknown.

    """
    if not trainer.lightning_module.automatic_optimization:
        return trainer.max_steps if trainer.max_steps >= 0 else None
    steps = trainer.estimated_stepping_batches
    # infinity where nothing ends the run; -1 where max_epochs does, but the length of an epoch is unknown
    return int(steps) if math.isfinite(steps) and steps >= 0 else None
