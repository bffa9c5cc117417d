"""Encoders that take milliseconds, named as a user's own: ``import:tests.probing.tiny_encoders.small``."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor, nn


class Small(nn.Module):
    """A few convolutions, and a file to count the calls in where the environment names one."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.net = nn.Sequential(
                nn.Conv2d(3, 4, 3), nn.GELU(), nn.Conv2d(4, 4, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten()
            )

    def forward(self, images: Tensor) -> Tensor:
        """Return features; die on purpose once a mark says so."""
        mark = os.environ.get("LIT_BUMP_TEST_KILL")
        if mark and len(list(Path(mark).rglob("images_*.npz"))) >= 2:
            os.kill(os.getpid(), 9)
        features: Tensor = self.net(images)
        return features


def small() -> tuple[nn.Module, dict[str, object]]:
    """Return a network that wants normalised images of 8 pixels."""
    return Small(0), {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "size": 8}


def other() -> tuple[nn.Module, dict[str, object]]:
    """Return another one."""
    return Small(1), {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "size": 8}


class Broken(Small):
    """Return NaN for some batches and raise for others: what no measurement can take."""

    def forward(self, images: Tensor) -> Tensor:
        """Raise where images are perturbed far.

        Returns:
            Features.

        Raises:
            KeyError: where they are.

        """
        if not torch.equal(images, images.clamp(-2, 2)):
            raise KeyError("a fault of its own")
        return super().forward(images)


def broken() -> tuple[nn.Module, dict[str, object]]:
    """Return a network that fails once images leave [0, 1] far behind."""
    return Broken(0), {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "size": 8}
