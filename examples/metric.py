"""The measurement as a torchmetrics metric. ``python examples/metric.py --out runs/metric``.

Update it with images wherever a loop evaluates, compute a dictionary of tensors, plot the profile.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from lit_bump import ResNet18, ResponseProfile
from lit_bump.images import draw_shapes


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a random network on test images, batch by batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/metric"))
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    network = ResNet18(width=8)
    images = torch.as_tensor(draw_shapes(options.images, seed=0, split="test")[0]).float() / 255
    metric = ResponseProfile(network.forward_features, {"target_se": options.target_se})
    for batch in images.split(4):
        metric.update(batch)
    found = metric.compute()
    print(f"max r {found['max_r']:.3g} over {options.images} images")
    figure, _ = metric.plot()
    options.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out / "profile.png")
    metric.profile().save(options.out / "profile.npz")


if __name__ == "__main__":
    main()
