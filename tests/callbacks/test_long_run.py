"""Five hundred measurements in one process: nothing piles up but the points themselves."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
from lightning.pytorch.loggers import TensorBoardLogger
from torch import Tensor, nn

from lit_bump import LogSteps, load_formation
from tests.callbacks.tiny_run import TinyModule, tiny_callback, tiny_trainer

N = 500


def resident() -> float:
    """Return the memory that the process holds, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Census(pl.Callback):
    """Count what could pile up."""

    def __init__(self) -> None:
        self.counts: dict[int, dict[str, float]] = {}

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        """Count, after the measurement of this step."""
        if trainer.global_step not in (100, N):
            return
        gc.collect()
        hooks = [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in pl_module.modules()]
        self.counts[trainer.global_step] = {
            "tensors": sum(issubclass(type(thing), Tensor) for thing in gc.get_objects()),
            "modules": sum(issubclass(type(thing), nn.Module) for thing in gc.get_objects()),
            "files": len(list(Path("/proc/self/fd").iterdir())),
            "threads": threading.active_count(),
            "hooks": sum(hooks),
            "memory": resident(),
        }


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux shows them")
def test_nothing_piles_up(tmp_path: Path) -> None:
    census, logger = Census(), TensorBoardLogger(tmp_path)
    ours = tiny_callback(schedule=LogSteps(steps=tuple(range(N + 1))))
    tiny_trainer(tmp_path, ours, census, max_steps=N, logger=logger, log_every_n_steps=8).fit(TinyModule())
    assert load_formation(str(logger.log_dir))["p"].steps == tuple(range(N + 1))
    early, late = census.counts[100], census.counts[N]
    for name in ("modules", "files", "threads", "hooks"):
        assert late[name] == early[name], name
    assert late["tensors"] - early["tensors"] <= 30
    assert late["memory"] - early["memory"] < 20  # MB; 400 profiles of three images are kept for the figure
