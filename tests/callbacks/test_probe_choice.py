"""Probe images come from where they should, the same every time, and no random stream notices."""

# ruff: noqa: D102, D105
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from lit_bump.callbacks.probe_choice import chosen_probe, validation_probe
from lit_bump.errors import LitBumpError
from lit_bump.probes import ProbeSet, named_probe_set
from tests.callbacks.tiny_run import TinyData, TinyModule, tiny_callback, tiny_probe, tiny_trainer

pytestmark = pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no `val_dataloader`")
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.2, 0.2)


class Named(pl.LightningDataModule):
    """A data module that knows one probe set by name."""

    def probe_set(self, name: str) -> ProbeSet:
        if name != "mine8":
            raise LitBumpError(f"no probe set {name!r} here")
        return tiny_probe("mine8")

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(TinyData(8), 4)


class Normalised(TinyData):
    """Images as most data sets give them: normalised."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        return (image - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1), label


class Watching(pl.Callback):
    """Draw the validation images once all loaders are set up, as the callback does."""

    def __init__(self, **normalisation: Any) -> None:
        self.normalisation = {"mean": None, "std": None, **normalisation}
        self.drawn: list[ProbeSet] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        before = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].sum())  # type: ignore[index]  # noqa: NPY002
        self.drawn = [validation_probe(trainer, pl_module, **self.normalisation) for _ in range(2)]
        after = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].sum())  # type: ignore[index]  # noqa: NPY002
        assert torch.equal(before[0], after[0])
        assert before[2] == after[2]


def drawn(folder: Path, *loaders: Any, module: pl.LightningModule | None = None, **normalisation: Any) -> ProbeSet:
    watching = Watching(**normalisation)
    tiny_trainer(folder, watching, max_steps=1).fit(module or TinyModule(), *loaders)
    first, second = watching.drawn
    assert first == second  # though the data set may augment at random
    return first


def test_names_are_asked_of_the_data_module_then_of_the_registry(tmp_path: Path) -> None:
    callback = tiny_callback(probes=["mine8", "shapes2"], encoder=lambda images: images.flatten(1))
    tiny_trainer(tmp_path, callback, max_steps=1).fit(TinyModule(), datamodule=Named())
    assert callback.labels == ("mine8", "shapes2")
    trainer = tiny_trainer(tmp_path)
    trainer.datamodule = Named()  # type: ignore[attr-defined]
    assert chosen_probe("mine8", trainer) == tiny_probe("mine8")
    assert chosen_probe("shapes2", trainer) == named_probe_set("shapes2")
    with pytest.raises(LitBumpError, match="no probe set 'other' here"):
        chosen_probe("other", trainer)


def test_validation_images_come_first_then_test_then_training_images(tmp_path: Path) -> None:
    class OnlyTest(TinyModule):
        """No validation set."""

        val_dataloader = pl.LightningModule.val_dataloader

        def test_dataloader(self) -> list[DataLoader[Any]]:
            return [DataLoader(TinyData(40, seed=2), 4)]

    class OnlyTraining(TinyModule):
        """Neither validation nor test set."""

        val_dataloader = pl.LightningModule.val_dataloader

    assert drawn(tmp_path).name == "val8"
    assert drawn(tmp_path, module=OnlyTest()).name == "test32"
    assert drawn(tmp_path, module=OnlyTraining()).name == "train32"
    loaders = DataLoader(TinyData(8), 4), [DataLoader(TinyData(34, seed=5), 4), DataLoader(TinyData(3), 1)]
    assert drawn(tmp_path, *loaders).name == "val32"


def test_normalised_images_are_refused_with_the_cure_that_works(tmp_path: Path) -> None:
    data = DataLoader(Normalised(8), 4)
    with pytest.raises(LitBumpError, match=r"val8.*mean"):
        drawn(tmp_path, data, data)
    pixels = drawn(tmp_path, data, data, mean=MEAN, std=STD).images
    expected = drawn(tmp_path, DataLoader(TinyData(8), 4), DataLoader(TinyData(8), 4)).images
    torch.testing.assert_close(pixels, expected, atol=1e-6, rtol=0)


def test_images_without_numbers_need_probes_to_be_given(tmp_path: Path) -> None:
    from tests.callbacks.test_rprofile import Endless

    endless = DataLoader(Endless(), 4)
    with pytest.raises(LitBumpError, match="give probes="):
        drawn(tmp_path, endless, endless)
