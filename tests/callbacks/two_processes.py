"""A run of two processes on the CPU, started by a test: ``python -m tests.callbacks.two_processes FOLDER``."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor

from tests.callbacks.tiny_run import TinyModule, tiny_callback, tiny_probe, tiny_trainer


def train(folder: Path, *, fails: bool) -> None:
    """Train with the callback, its encoder raising in the second process alone or not at all."""
    module = TinyModule()

    def failing(images: Tensor) -> Tensor:
        if module.global_rank == 1:
            raise RuntimeError("only here")
        return module.forward_features(images)

    probes = [tiny_probe(n_images=5), tiny_probe("one", n_images=1)]  # one process gets none of the single image
    callback = tiny_callback(probes=probes, encoder=failing if fails else None, figures=True)
    logger = CSVLogger(folder, name="", version="fails" if fails else "works")
    trainer = tiny_trainer(folder, callback, logger=logger, max_steps=3, devices=2, strategy="ddp_fork")
    trainer.fit(module)
    torch.save({"state": module.state_dict(), "monitored": dict(trainer.callback_metrics)}, folder / "trained.pt")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        train(Path(sys.argv[1]), fails=True)
    except Exception as error:  # the test reads it
        print("RAISED", str(error).strip().splitlines()[-1])
    train(Path(sys.argv[1]), fails=False)
