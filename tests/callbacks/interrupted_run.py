"""A run that waits in the middle of its third measurement: ``python -m tests.callbacks.interrupted_run FOLDER``."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from pathlib import Path

import torch
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor

from tests.callbacks.tiny_run import TinyModule, tiny_callback, tiny_trainer


def main(folder: Path) -> None:
    """Train until an interrupt ends it; a file tells when the measurement of step 2 has begun."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    torch.set_num_threads(1)
    module = TinyModule()

    def slow(images: Tensor) -> Tensor:
        if module.global_step == 2:
            (folder / "measuring").touch()
            time.sleep(60)
            os._exit(3)  # nobody has interrupted
        return module.forward_features(images)

    logger = TensorBoardLogger(folder, name="", version="run")
    tiny_trainer(folder, tiny_callback(encoder=slow), logger=logger).fit(module)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
