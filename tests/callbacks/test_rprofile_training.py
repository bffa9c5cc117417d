"""Training is bit for bit the same with and without the callback."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import jaxtyping
import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from torch import Tensor

from lit_bump.callbacks import RProfileCallback
from tests.callbacks.tiny_run import SMALL, TinyModule, tiny_callback, tiny_trainer


def trained(folder: Path, workers: int, *callbacks: pl.Callback) -> dict[str, Any]:
    """Return all that training leaves behind, the next numbers of the random streams included."""
    pl.seed_everything(3, verbose=False)
    module = TinyModule(workers=workers, n_train=16)
    trainer = tiny_trainer(folder, *callbacks, max_steps=-1, max_epochs=2, num_sanity_val_steps=1)
    trainer.fit(module)
    state = {f"module.{name}": value.clone() for name, value in module.state_dict().items()}
    momenta = trainer.optimizers[0].state_dict()["state"]
    state |= {f"momentum.{name}": value["momentum_buffer"] for name, value in momenta.items()}
    state |= {f"grad.{name}": value.grad for name, value in module.named_parameters()}
    streams = {"torch": torch.rand(3), "numpy": torch.tensor(np.random.rand(3)), "python": random.random()}  # noqa: NPY002
    modes = [part.training for part in module.modules()]
    hooks = [len(part._forward_hooks) for part in module.modules()]
    return {**state, **streams, "modes": modes, "hooks": hooks, "loss": trainer.callback_metrics["val/loss"]}


@pytest.mark.parametrize("workers", [0, 2])
def test_weights_optimizer_and_random_streams_are_the_same(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # beartype itself draws from Python's stream
    without = trained(tmp_path / "a", workers)
    callbacks = (
        tiny_callback(figures=True),
        RProfileCallback(protocol=SMALL, encoder="backbone.2", name="val", max_share=0.5),
    )
    with_them = trained(tmp_path / "b", workers, *callbacks)
    assert len(list((tmp_path / "b").rglob("*.npz"))) >= 6
    assert without.keys() == with_them.keys()
    for name, value in without.items():
        same = torch.equal(value, with_them[name]) if isinstance(value, Tensor) else value == with_them[name]
        assert same, name
