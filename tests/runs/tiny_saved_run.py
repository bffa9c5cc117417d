"""The smallest saved runs: one trained by the command line with a checkpoint at every measured step, others by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from lit_bump.__main__ import main

# The encoder is named and the images are normalised twice, so that a reader who drops either gets other numbers.
TINY = {
    "model": {"class_path": "ClassifierModule", "init_args": {"width": 4, "lr": 0.1}},
    "data": {
        "class_path": "NoiseShapesDataModule",
        "init_args": {"n_train": 8, "n_test": 8, "batch_size": 4, "noise_seed": 5},
    },
    "rprofile": {
        "probes": ["noise2train"],
        "protocol": {"n_pairs": 2, "etas": [0.01, 0.1, 1.0]},
        "schedule": {"per_decade": 1},
        "encoder": "network.forward_features",
        "mean": [0.1, 0.2, 0.3],
        "std": [0.9, 0.8, 0.7],
        "save_checkpoints": True,
        "figures": False,
        "max_share": None,
    },
    "trainer": {
        "max_steps": 2,
        "accelerator": "cpu",
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "logger": False,
    },
}


def trained(folder: Path) -> Path:
    """Return the folder of a run that is trained in another, ``runs/tiny/version_0``."""
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["fit", "--config", "tiny.yaml"]) == 0
    return folder / "runs" / "tiny" / "version_0"


class Elementwise(LightningModule):
    """Features that are known by hand: ``square`` rises for ever, ``cosine`` rises and falls for images near 0.5."""

    def __init__(self, kind: str = "square") -> None:
        super().__init__()
        self.save_hyperparameters()
        self.kind = kind
        self.weight = nn.Parameter(torch.tensor(1.0))

    def forward_features(self, images: Tensor) -> Tensor:
        """Return as many features as pixels."""
        shifted = self.weight * (images - 0.5)
        return shifted.square() if self.kind == "square" else torch.cos(3.0 * shifted)


def saved_by_hand(log_dir: Path, module: LightningModule, step: int = 3, **entries: Any) -> Path:
    """Return a checkpoint, saved as a plain Trainer would, without a config beside it."""
    path = log_dir / "checkpoints" / f"step_{step:08d}.ckpt"
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = {
        "epoch": 0,
        "global_step": step,
        "pytorch-lightning_version": "2.6.0",
        "state_dict": module.state_dict(),
        "hyper_parameters": dict(module.hparams),
        **entries,
    }
    torch.save(contents, path)
    return path
