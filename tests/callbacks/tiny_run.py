"""The smallest runs that have everything: a network with BatchNorm and dropout, random augmentation, seeded images.

Used by the tests of the callbacks. A measurement of a tiny run takes some ten milliseconds.
"""

# ruff: noqa: D102, D105
from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from lit_bump.callbacks import RProfileCallback
from lit_bump.measure import Protocol
from lit_bump.probes import ProbeSet
from lit_bump.schedules import LogSteps

SIZE = (3, 8, 8)
ETAS = (0.01, 0.1, 1.0, 3.0)
SMALL = Protocol(ETAS, n_pairs=2, n_jvp=2, estimator="matched", n_noise=1)
STEPS = LogSteps(steps=(0, 1, 2, 4))


class TinyData(Dataset[tuple[Tensor, int]]):
    """Seeded images in [0, 1] with labels; the training images are shifted at random from the global streams."""

    def __init__(self, n: int = 32, seed: int = 0, augment: bool = False) -> None:
        self.images = torch.rand(n, *SIZE, generator=torch.Generator().manual_seed(seed))
        self.augment = augment

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        if self.augment:
            image = torch.roll(image, int(torch.randint(0, 8, ())), dims=-1)
        return image, index % 3


class TinyModule(pl.LightningModule):
    """A classifier whose Phi is ``forward_features``."""

    def __init__(self, lr: float = 0.01, n_train: int = 32, workers: int = 0) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.n_train, self.workers, self.lr = n_train, workers, lr
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 8)
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 3))

    def forward_features(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(images)
        return features

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.forward_features(images))
        return logits

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        images, labels = batch
        self.log("val/loss", nn.functional.cross_entropy(self(images), labels))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), self.lr, momentum=0.9)

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(TinyData(self.n_train, augment=True), 4, shuffle=True, num_workers=self.workers)

    def val_dataloader(self) -> DataLoader[Any]:
        return DataLoader(TinyData(8, seed=1), 4)


class PlainModule(TinyModule):
    """The same without ``forward_features`` and ``forward``: a module of somebody who has never heard of us."""

    forward_features = None  # type: ignore[assignment]

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.backbone(images))
        return logits


def tiny_probe(name: str = "p", n_images: int = 3, seed: int = 7) -> ProbeSet:
    images = torch.rand(n_images, *SIZE, generator=torch.Generator().manual_seed(seed))
    return ProbeSet.from_tensor(images, name=name)


def tiny_callback(**changes: Any) -> RProfileCallback:
    # Every scheduled step is measured: of a run of a second, a share of the time would pay for none.
    settings = {"probes": tiny_probe(), "protocol": SMALL, "figures": False, "max_share": None}
    return RProfileCallback(**{**settings, **changes})


def tiny_trainer(folder: Path, *callbacks: pl.Callback, **changes: Any) -> pl.Trainer:
    torch.manual_seed(1)
    settings = {
        "accelerator": "cpu",
        "devices": 1,
        "default_root_dir": folder,
        "max_steps": 4,
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": any(isinstance(callback, Checkpoint) for callback in callbacks),
        "num_sanity_val_steps": 0,
        "log_every_n_steps": 1,
        "callbacks": list(callbacks),
    }
    return pl.Trainer(**{**settings, **changes})
