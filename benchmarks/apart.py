"""One measurement in a process of its own: ``python -m benchmarks.apart '{"network": ..., ...}'`` prints JSON.

Needs the package. The peak is that of this process alone (VmHWM; ``ru_maxrss`` would begin with the parent's), or of
the GPU's allocator; the figure before the measurement is given beside it.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.shared import Setting
from benchmarks.subjects import random_subject, trained_subject
from lit_bump.measure import Protocol, ladder, measure_profile
from lit_bump.networks import ResNet18


class FlattenedStage(nn.Module):
    """Take the features of a ResNet-18 from an early stage, not averaged over positions."""

    def __init__(self, network: ResNet18, n_stages: int) -> None:
        super().__init__()
        self.network, self.n_stages = network, n_stages

    def forward(self, images: Tensor) -> Tensor:
        """Return the stage's map; the measurement flattens it."""
        network = self.network
        found = functional.relu(network.bn1(network.conv1(network.normalise(images))))
        for stage in (network.layer1, network.layer2, network.layer3, network.layer4)[: self.n_stages]:
            found = stage(found)
        return found


def peak_megabytes(device: str) -> float:
    """Return the largest memory so far: of the process, or allocated on the GPU."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    status = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(status.group(1)) / 1024 if status else float("nan")


def measured(
    network: str,
    n_images: int,
    target: float,
    *,
    n_pairs: int = 2048,
    n_rungs: int = 17,
    side: int | None = None,
    train_steps: int = 0,
    n_stages: int | None = None,
    seconds: float | None = None,
    device: str = "cpu",
    budget: str = "full",
    cache: str = "",
) -> dict[str, Any]:
    """Return what one measurement takes.

    Args:
        network: a name of ``subjects.RANDOM``.
        n_images: measured together.
        target: standard error over ratio.
        n_pairs: at most.
        n_rungs: of the ladder, its ends unchanged.
        side: of the images, where it is not the network's own.
        train_steps: 0 for random weights; else of a ResNet-18.
        n_stages: features are the flattened map after so many stages of a ResNet-18; None for its pooled features.
        seconds: wall time to keep to.
        device: of encoder and images.
        budget: of the setting.
        cache: folder of trained networks.

    Returns:
        Seconds, peak in MB before and after, forward-equivalents an image, features, what was given up.

    """
    setting = Setting(budget, 1, device, Path(cache) if cache else Setting().cache)  # type: ignore[arg-type]
    if train_steps:
        subject = trained_subject(int(network.rsplit(" ", 1)[1]), train_steps, setting)
    else:
        subject = random_subject(network, setting)
    if side:
        subject = replace(subject, size=(3, side, side))
    images = subject.images(n_images)
    encoder = subject.encoder
    if n_stages is not None:
        whole = encoder.module
        assert isinstance(whole, ResNet18)
        encoder = FlattenedStage(whole, n_stages)
    with torch.no_grad():
        n_features = encoder(images[:1]).flatten(1).shape[1]
    protocol = replace(
        Protocol.accurate(subject.size, n_pairs=n_pairs), target_se=target, etas=ladder(subject.size, n_rungs)
    )
    before = peak_megabytes(device)
    profile = measure_profile(encoder, images, protocol, progress=False, budget_seconds=seconds)
    return {
        "seconds": profile.seconds,
        "before": before,
        "peak": peak_megabytes(device),
        "work": float(profile.forward_equivalents.mean()),
        "n_features": n_features,
        "n_directions": float(profile.n_directions.mean()),
        "gave_up": profile.gave_up,
    }


if __name__ == "__main__":
    print(json.dumps(measured(**json.loads(sys.argv[1]))))
