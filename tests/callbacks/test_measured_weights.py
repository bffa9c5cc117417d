"""Raw weights and averages are told apart, whatever the order of the callbacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, EMAWeightAveraging, StochasticWeightAveraging
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lit_bump import load_formation
from lit_bump.measure import measure_profile
from tests.callbacks.tiny_run import SMALL, TinyModule, tiny_callback, tiny_probe, tiny_trainer


def weights_of(folder: Path) -> dict[int, str]:
    formation = load_formation(folder)["p"]
    return {step: one.context["weights"] for step, one in zip(formation.steps, formation.profiles, strict=True)}


@pytest.mark.parametrize("is_first", [True, False])
def test_scheduled_measurements_are_of_raw_weights(tmp_path: Path, is_first: bool) -> None:
    ours, averaging = tiny_callback(), EMAWeightAveraging(decay=0.5)
    callbacks: list[pl.Callback] = [averaging, ours] if is_first else [ours, averaging]
    tiny_trainer(tmp_path, *callbacks).fit(TinyModule())
    assert set(weights_of(tmp_path).values()) == {"raw"}
    plain = tmp_path / "plain"
    tiny_trainer(plain, tiny_callback()).fit(TinyModule())
    with_average, without = load_formation(tmp_path)["p"], load_formation(plain)["p"]
    for one, other in zip(with_average.profiles, without.profiles, strict=True):
        assert one.encoder_digest == other.encoder_digest


class Stopper(pl.Callback):
    """End training after a batch that is not scheduled, so that the last point is measured at its end."""

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Stop."""
        trainer.should_stop = trainer.global_step >= 5


@pytest.mark.parametrize("is_first", [True, False])
def test_the_point_of_an_early_end_is_of_raw_weights_too(tmp_path: Path, is_first: bool) -> None:
    ours, averaging = tiny_callback(), EMAWeightAveraging(decay=0.5)
    callbacks: list[pl.Callback] = [averaging, ours] if is_first else [ours, averaging]
    module = TinyModule()
    tiny_trainer(tmp_path, Stopper(), *callbacks, max_steps=8).fit(module)
    assert weights_of(tmp_path)[5] == "raw"
    last = load_formation(tmp_path)["p"].profiles[-1]
    now = measure_profile(module.backbone, tiny_probe().images, SMALL)  # what training has left is the average
    assert (last.ratio != now.ratio).any()


@pytest.mark.parametrize("is_first", [True, False])
def test_stochastic_weight_averaging(tmp_path: Path, is_first: bool) -> None:
    averaging = StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=1, annealing_epochs=1)
    module, ours = TinyModule(n_train=8), tiny_callback()
    callbacks: list[pl.Callback] = [averaging, ours] if is_first else [ours, averaging]
    tiny_trainer(tmp_path, *callbacks, max_steps=-1, max_epochs=4).fit(module)
    found = weights_of(tmp_path)  # it adds an epoch that renews the statistics of BatchNorm and counts as a step
    last = max(found)
    assert found.pop(last) == "averaged by StochasticWeightAveraging"
    assert set(found.values()) == {"raw"}
    profile = load_formation(tmp_path)["p"].profiles[-1]
    now = measure_profile(module.backbone, tiny_probe().images, SMALL)
    np.testing.assert_array_equal(profile.ratio, now.ratio)


class WithAverage(TinyModule):
    """A module that keeps an average of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.average = AveragedModel(self.backbone, multi_avg_fn=get_ema_multi_avg_fn(0.5))  # type: ignore[no-untyped-call]

    def on_train_batch_end(self, *_: Any) -> None:
        """Update it."""
        self.average.update_parameters(self.backbone)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Leave the average out.

        Returns:
            An optimizer.

        """
        return torch.optim.SGD([*self.backbone.parameters(), *self.head.parameters()], self.lr)


@pytest.mark.parametrize("inner", [False, True])
def test_an_average_that_is_chosen_as_encoder(tmp_path: Path, inner: bool) -> None:
    module = WithAverage()
    encoder = module.average.module if inner else module.average
    tiny_trainer(tmp_path, tiny_callback(encoder=encoder)).fit(module)
    assert set(weights_of(tmp_path).values()) == {"averaged (AveragedModel)"}


def test_an_encoder_that_is_not_trained(tmp_path: Path) -> None:
    frozen = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    tiny_trainer(tmp_path, tiny_callback(encoder=frozen)).fit(TinyModule())
    assert set(weights_of(tmp_path).values()) == {"of no optimizer"}


class Meddler(pl.Callback):
    """Change the weights after the last step."""

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Change them."""
        with torch.no_grad():
            for parameter in pl_module.parameters():
                parameter.data.mul_(1.5)


def test_any_other_change_after_the_last_step_is_named(tmp_path: Path) -> None:
    class Constant(TinyModule):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/loss", torch.tensor(1.0))

    stopping = EarlyStopping("val/loss", patience=0)
    tiny_trainer(tmp_path, Meddler(), stopping, tiny_callback(), max_steps=100, max_epochs=50).fit(Constant(n_train=28))
    found = weights_of(tmp_path)
    assert found[max(found)] == "changed after the last step"


class Packed(TinyModule):
    """A module that also holds weights without a norm of their own: integers."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone.register_parameter(
            "packed", nn.Parameter(torch.arange(4, dtype=torch.uint8), requires_grad=False)
        )


def test_odd_weights_end_no_training(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback()).fit(Packed())
    assert set(weights_of(tmp_path).values()) == {"raw"}
