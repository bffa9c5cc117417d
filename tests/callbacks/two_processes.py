"""A run of two processes on the CPU, started by a test: ``python -m tests.callbacks.two_processes FOLDER``."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor

from lit_bump.callbacks import RProfileCallback
from lit_bump.measure import Protocol
from tests.callbacks.tiny_run import SIZE, TinyModule, tiny_callback, tiny_probe, tiny_trainer


def train(folder: Path, *, fails: bool, strategy: str = "ddp_fork") -> None:
    """Train with the callback, its encoder raising in the second process alone or not at all."""
    module = TinyModule()

    def failing(images: Tensor) -> Tensor:
        if module.global_rank == 1:
            raise RuntimeError("only here")
        return module.forward_features(images)

    probes = [tiny_probe(n_images=5), tiny_probe("one", n_images=1)]  # one process gets none of the single image
    callback = tiny_callback(probes=probes, encoder=failing if fails else None, figures=True)
    logger = CSVLogger(folder, name="", version="fails" if fails else "works")
    trainer = tiny_trainer(folder, callback, logger=logger, max_steps=3, devices=2, strategy=strategy)
    trainer.fit(module)
    torch.save({"state": module.state_dict(), "monitored": dict(trainer.callback_metrics)}, folder / "trained.pt")


class OtherOpinion(pl.Callback):
    """Make the second process believe that there is time for everything, and write down what it measures."""

    def __init__(self, callback: RProfileCallback, folder: Path) -> None:
        self.callback, self.folder = callback, folder

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Mislead it."""
        if trainer.global_rank == 1:
            self.callback.budget.max_share = 1.0

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write down the steps and the numbers of directions."""
        steps = [row["step"] for row in self.callback.record.rows]
        facts = {"steps": steps, "skipped": self.callback.state_dict()["skipped"]}
        (self.folder / f"rank{trainer.global_rank}.json").write_text(json.dumps(facts), encoding="utf-8")


def train_by_budget(folder: Path) -> None:
    """Train where the first process alone sees that the time is short."""
    callback = tiny_callback(probes=tiny_probe(n_images=4), protocol=Protocol.quick(SIZE), max_share=1e-6)
    watching = OtherOpinion(callback, folder)
    logger = CSVLogger(folder, name="", version="budget")
    trainer = tiny_trainer(folder, watching, callback, logger=logger, max_steps=3, devices=2, strategy="ddp_fork")
    trainer.fit(TinyModule())


class Full(pl.Callback):
    """Let no checkpoint be written by the first process, which alone writes them."""

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Fill the disk."""

        def failing(*_: object, **__: object) -> None:
            if trainer.is_global_zero:
                raise OSError(28, "No space left on device")

        trainer.strategy.save_checkpoint = failing  # type: ignore[method-assign]


def train_on_a_full_disk(folder: Path) -> None:
    """Train where checkpoints fail in one process, while the other waits at the end of saving."""
    callback = tiny_callback(probes=tiny_probe(n_images=2), save_checkpoints=True)
    trainer = tiny_trainer(folder, Full(), callback, max_steps=3, devices=2, strategy="ddp_fork")
    trainer.fit(TinyModule())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if sys.argv[2:] == ["full"]:
        train_on_a_full_disk(Path(sys.argv[1]))
        sys.exit()
    if len(sys.argv) > 2:  # another way to start the processes; torchrun starts this file twice
        train(Path(sys.argv[1]), fails=False, strategy=sys.argv[2])
        sys.exit()
    try:
        train(Path(sys.argv[1]), fails=True)
    except Exception as error:  # the test reads it
        print("RAISED", str(error).strip().splitlines()[-1])
    train(Path(sys.argv[1]), fails=False)
    train_by_budget(Path(sys.argv[1]))
