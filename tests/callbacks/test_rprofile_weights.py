"""Which weights a point is of: those that are trained, also beside callbacks that average, and in other loops."""

# ruff: noqa: D102
from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging, StochasticWeightAveraging
from torch.utils.data import DataLoader

from lit_bump.measure import Profile, load_formation, measure_profile
from lit_bump.runs import load_module
from tests.callbacks.tiny_run import SMALL, TinyData, TinyModule, tiny_callback, tiny_probe, tiny_trainer


class Inside(pl.Callback):
    """Measure in the hooks of evaluation, on images that are made there."""

    def __init__(self) -> None:
        self.measured: dict[str, Profile] = {}
        self.in_inference_mode: set[bool] = set()

    def _measure(self, pl_module: pl.LightningModule, hook: str) -> None:
        assert isinstance(pl_module, TinyModule)
        self.in_inference_mode.add(torch.is_inference_mode_enabled())
        images = tiny_probe().images + 0.0
        self.measured[hook] = measure_profile(pl_module.forward_features, images, SMALL, progress=False)

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._measure(pl_module, "test")

    def on_predict_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        self._measure(pl_module, "predict")

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._measure(pl_module, "validate")


class Evaluated(TinyModule):
    """The tiny module with a test step."""

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.validation_step(batch, batch_idx)

    def predict_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self.forward_features(batch[0])


def test_a_measurement_in_an_evaluation_is_the_plain_one(tmp_path: Path) -> None:
    module, inside = Evaluated(), Inside()
    plain = measure_profile(module.forward_features, tiny_probe().images, SMALL, progress=False)
    trainer = tiny_trainer(tmp_path, inside)
    data = DataLoader(TinyData(8), 4)
    trainer.test(module, data, verbose=False)
    trainer.validate(module, data, verbose=False)
    trainer.predict(module, data)
    assert set(inside.measured) == {"test", "validate", "predict"}
    assert inside.in_inference_mode == {True}
    for hook, profile in inside.measured.items():
        np.testing.assert_allclose(profile.ratio, plain.ratio, rtol=1e-6, err_msg=hook)


class Stop(pl.Callback):
    """Stop after seven steps."""

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        trainer.should_stop = trainer.global_step == 7


def averaging(kind: str) -> pl.Callback:
    if kind == "EMA":
        return EMAWeightAveraging(decay=0.5)
    return StochasticWeightAveraging(swa_lrs=0.02, swa_epoch_start=1)


def trained(folder: Path, kind: str, *others: pl.Callback, first: bool | None, max_epochs: int = 2) -> TinyModule:
    # ``first`` puts the averaging before the measurement; None leaves the measurement out.
    pl.seed_everything(2, verbose=False)
    module = TinyModule(n_train=16)
    callbacks = [averaging(kind)] if first is None else [averaging(kind), tiny_callback()][:: 1 if first else -1]
    tiny_trainer(folder, *callbacks, *others, max_steps=-1, max_epochs=max_epochs).fit(module)
    return module


@pytest.mark.filterwarnings("ignore:Swapping scheduler")
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["EMA", "SWA"])
def test_averaged_weights_are_the_same_with_and_without(tmp_path: Path, kind: str, first: bool) -> None:
    plain = trained(tmp_path / "a", kind, first=None)
    measured = trained(tmp_path / "b", kind, first=first)
    for name, value in plain.state_dict().items():
        assert torch.equal(value, measured.state_dict()[name]), name
    assert load_formation(tmp_path / "b")["p"].steps[0] == 0


@pytest.mark.filterwarnings("ignore:Swapping scheduler")
@pytest.mark.parametrize("kind", ["EMA", "SWA"])
def test_points_are_of_the_trained_weights_whatever_the_order(tmp_path: Path, kind: str) -> None:
    formations = []
    for first in (True, False):
        trained(tmp_path / str(first), kind, first=first)
        formations.append(load_formation(tmp_path / str(first))["p"])
    assert formations[0].steps == formations[1].steps
    for one, other in zip(*(measured.profiles for measured in formations), strict=True):
        np.testing.assert_array_equal(one.ratio, other.ratio, err_msg=f"step {one.context['step']}")


@pytest.mark.filterwarnings("ignore:Swapping scheduler")
@pytest.mark.parametrize("kind", ["EMA", "SWA"])
def test_a_run_that_stops_early_ends_with_the_trained_weights(tmp_path: Path, kind: str) -> None:
    formations = []
    for first in (True, False):
        trained(tmp_path / str(first), kind, Stop(), first=first, max_epochs=9)
        formations.append(load_formation(tmp_path / str(first))["p"])
    assert [measured.steps for measured in formations] == [(0, 1, 2, 3, 6, 7)] * 2
    for one, other in zip(*(measured.profiles for measured in formations), strict=True):
        np.testing.assert_array_equal(one.ratio, other.ratio, err_msg=f"step {one.context['step']}")


def test_a_checkpoint_beside_a_point_gives_that_point(tmp_path: Path) -> None:
    callback = tiny_callback(save_checkpoints=True)
    tiny_trainer(tmp_path, averaging("EMA"), callback, max_steps=3).fit(TinyModule())
    for profile in load_formation(tmp_path)["p"].profiles:
        path = tmp_path / "checkpoints" / f"step_{profile.context['step']:08d}.ckpt"
        module = load_module(path, model=TinyModule)
        assert isinstance(module, TinyModule)
        again = measure_profile(module.forward_features, tiny_probe().images, SMALL, progress=False)
        np.testing.assert_array_equal(again.ratio, profile.ratio)
