"""Save a checkpoint at step 0, on a logarithmic schedule of optimiser steps, and at the last step.

Paper: A.2 "Training", formation: "checkpoints are saved on an approximately logarithmic step schedule".
Imports Lightning and the schedule. Lightning's ``ModelCheckpoint`` saves neither step 0 nor at uneven steps; this class
counts as a checkpoint callback, so Lightning adds no ``ModelCheckpoint`` of its own beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

from lit_bump.modules.run_length import run_length
from lit_bump.schedules import LogSteps


class StepCheckpoint(Checkpoint):
    """Save ``step_00000400.ckpt`` and so on at the first step at or after each target of a schedule.

    Each step is saved once, also in a run resumed from one of these checkpoints. Step 0 is saved before any update.
    Nothing is saved in a fast development run. Lightning runs this callback after the others, so that each checkpoint
    holds their state of that step.

    Args:
        schedule: the steps; None for about four a factor of ten, 0 and the last.
        dirpath: folder of the checkpoints; None for ``checkpoints`` in the logger's folder.
        weights_only: leave out what only resuming needs (optimizer, loops, callbacks), for files of half the size.

    """

    def __init__(
        self, schedule: LogSteps | None = None, dirpath: str | Path | None = None, weights_only: bool = False
    ) -> None:
        super().__init__()
        self.schedule = LogSteps() if schedule is None else schedule
        self.dirpath = None if dirpath is None else Path(dirpath)
        self.weights_only = weights_only
        self._folder: Path | None = None
        self._total: int | None = None
        self._last_step = -1

    @property
    def state_key(self) -> str:
        """Key of this callback's state in a checkpoint; two schedules keep apart."""
        return self._generate_state_key(schedule=str(self.schedule), weights_only=self.weights_only)

    def state_dict(self) -> dict[str, Any]:
        """Return the last saved step.

        Returns:
            Plain types, for Lightning to save.

        """
        return {"last_step": self._last_step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the schedule after the last saved step.

        Args:
            state_dict: of ``state_dict``.

        """
        self._last_step = state_dict["last_step"]

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Choose the folder, the same on every rank.

        Args:
            trainer: of the run.
            pl_module: unused.
            stage: only ``fit`` matters.

        """
        if stage != "fit":
            return
        if trainer.global_step == 0:  # a new run; what it resumes is restored later
            self._last_step = -1
        folder = (
            self.dirpath
            if self.dirpath is not None
            else Path(trainer.log_dir or trainer.default_root_dir) / "checkpoints"
        )
        self._folder = trainer.strategy.broadcast(folder)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check the schedule against the length of the run, and save step 0.

        Args:
            trainer: of the run.
            pl_module: unused.

        """
        if not trainer.fast_dev_run:  # type: ignore[attr-defined]  # set by Lightning outside its class
            self._total = run_length(trainer)
            if trainer.global_step > 0 and self._last_step < 0:
                self._last_step = trainer.global_step  # resumed from a run without this callback: that file exists
            self._save_if_due(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Save where a target has been reached.

        Args:
            trainer: of the run.
            pl_module: unused.
            outputs: unused.
            batch: unused.
            batch_idx: unused.

        """
        self._save_if_due(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the last step of a run that ended before its schedule.

        Args:
            trainer: of the run.
            pl_module: unused.

        """
        if self.schedule.includes_last and trainer.global_step > self._last_step:
            self._save(trainer)

    def _save_if_due(self, trainer: Trainer) -> None:
        target = self.schedule.next_target(self._last_step, self._total)
        if target is not None and trainer.global_step >= target:
            self._save(trainer)

    def _save(self, trainer: Trainer) -> None:
        if trainer.fast_dev_run:  # type: ignore[attr-defined]  # set by Lightning outside its class
            return
        assert self._folder is not None
        self._last_step = trainer.global_step  # before saving: the checkpoint itself must know
        trainer.save_checkpoint(self._folder / f"step_{trainer.global_step:08d}.ckpt", self.weights_only)
