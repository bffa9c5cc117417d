"""Measurements on their way to the loggers of a run: whatever each can show, and never an exception from any.

Paper: fig. 1c. Imports Lightning. Loggers of the W&B kind refuse a step below the last one, and what Lightning logs
after a batch still bears the step before it; so they get a measurement at the start of the next batch. TensorBoard
refuses nothing and gets it at once, at the optimiser step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from lightning.pytorch import Trainer
from lightning.pytorch.utilities import rank_zero_info, rank_zero_warn

from lit_bump.callbacks.formation_table import Row
from lit_bump.callbacks.profile_scalars import FIGURE_TAG, log_step, scalars
from lit_bump.callbacks.profile_tensorboard import (
    discard_from,
    tensorboard_writer,
    write_hparam_metrics,
    write_log_step,
    write_profiles,
)
from lit_bump.measure import Profile

TAB_ADDRESS = "http://localhost:6006/#lit_bump"  # where TensorBoard shows the tab, unless told otherwise


def shows_images(logger: Any) -> bool:
    """Say if a logger can show a rendered figure.

    Args:
        logger: any logger.

    Returns:
        True for TensorBoard and for loggers with ``log_image``.

    """
    return tensorboard_writer(logger) is not None or callable(getattr(type(logger), "log_image", None))


class ProfileLog:
    """Bring measurements to all loggers of a run; used in the first process alone."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, dict[str, float], dict[str, np.ndarray]]] = []
        self._warned: set[str] = set()
        self._has_said_where = False

    @property
    def has_waiting(self) -> bool:
        """Whether a measurement waits for its step."""
        return bool(self._waiting)

    def add(
        self,
        trainer: Trainer,
        step: int,
        rows: Sequence[Row],
        profiles: Mapping[str, Profile],
        figures: Mapping[str, np.ndarray],
    ) -> None:
        """Write a measurement to TensorBoard, and keep it for the other loggers until ``deliver``.

        Args:
            trainer: with its loggers.
            step: optimiser step.
            rows: of the formation table, one a probe set.
            profiles: by probe set.
            figures: rendered cumulative figures by probe set; none where figures are off.

        """
        values = {tag: value for row in rows for tag, value in scalars(row).items()}
        self._waiting.append((step, values, dict(figures)))
        for logger in trainer.loggers:
            with self._forgiving(logger):
                writer = tensorboard_writer(logger)
                if writer is None:
                    continue
                logger.log_metrics(values, step=step)
                write_profiles(writer, step, rows, profiles, figures)
                self._say_where(logger)

    def deliver(self, trainer: Trainer) -> None:
        """Give the other loggers what waits for them, at the step that Lightning itself would give now.

        Args:
            trainer: with its loggers.

        """
        waiting, self._waiting = self._waiting, []
        for step, values, figures in waiting:
            for logger in trainer.loggers:
                with self._forgiving(logger):
                    if tensorboard_writer(logger) is not None or not (values or figures):
                        continue
                    at = _lightning_step(trainer)
                    # W&B's convention: charts there are drawn against this, not against the logger's own step.
                    logger.log_metrics({**values, "trainer/global_step": float(step)}, step=at)
                    if callable(show := getattr(type(logger), "log_image", None)):
                        for label, pixels in figures.items():
                            show(logger, key=FIGURE_TAG.format(label), images=[pixels], step=at)
                    logger.save()

    def name_hparam_metrics(self, trainer: Trainer, hparams: Mapping[str, Any], tags: Sequence[str]) -> None:
        """Name the scalars as metrics of the run's hyper-parameters in TensorBoard.

        Args:
            trainer: with its loggers.
            hparams: the hyper-parameters; nothing happens where there are none.
            tags: of the scalars.

        """
        for logger in trainer.loggers:
            with self._forgiving(logger):
                writer = tensorboard_writer(logger)
                if writer is not None and hparams:
                    write_hparam_metrics(writer, hparams, tags)

    def go_back_to(self, trainer: Trainer, step: int, rows: Sequence[Row]) -> None:
        """Take back from TensorBoard what an abandoned continuation wrote after a step.

        The log-step curve lies at other steps than all else, so the points that it loses by this are written again.

        Args:
            trainer: with its loggers.
            step: last step of the history that is kept.
            rows: of the table up to there.

        """
        if _lightning_step(trainer) > step:  # loggers count another unit here: their earlier points must stay
            return
        for logger in trainer.loggers:
            with self._forgiving(logger):
                writer = tensorboard_writer(logger)
                if writer is not None:
                    discard_from(writer, step + 1)
                    for row in rows:
                        if log_step(row["step"]) > step:
                            write_log_step(writer, row["probe"], row["step"], row["max_r"])
                    writer.flush()

    def _say_where(self, logger: Any) -> None:
        """Tell once where the formation can be watched."""
        if not self._has_said_where:
            self._has_said_where = True
            folder = getattr(logger, "root_dir", None) or getattr(logger, "save_dir", None) or "."
            rank_zero_info(f"Watch the bump form: tensorboard --logdir {folder}, then {TAB_ADDRESS}")

    @contextmanager
    def _forgiving(self, logger: Any) -> Iterator[None]:
        """Turn an exception of a logger into one warning: training and the files matter more."""
        name = type(logger).__name__
        try:
            yield
        except Exception as error:
            if name not in self._warned:
                self._warned.add(name)
                said = " ".join(str(error).split())
                rank_zero_warn(
                    f"{name} did not take the response profiles ({type(error).__name__}: {said}); "
                    "their files are complete: look at the logger's own settings"
                )


def _lightning_step(trainer: Trainer) -> int:
    """Return the step that Lightning gives loggers now: batches that stepped, as its own LearningRateMonitor has it."""
    return int(getattr(trainer.fit_loop.epoch_loop, "_batches_that_stepped", trainer.global_step))
