"""Response profiles in a loop of Lightning Fabric. ``python examples/fabric_loop.py --out runs/fabric``.

The bare module is measured, never Fabric's wrapper: forward mode cannot differentiate those of the strategies. Of
several processes the first measures, and the others wait at the barrier.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

from lit_bump import Prober, ResNet18, named_probe_set
from lit_bump.images import draw_shapes


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a small network with Fabric, and measure it at logarithmic steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/fabric"))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    fabric = Fabric(accelerator="cpu", devices=options.devices, precision="bf16-mixed")
    fabric.launch()
    fabric.seed_everything(0, verbose=False)
    images, labels = draw_shapes(1_000, seed=0, split="train")
    data = TensorDataset(torch.as_tensor(images).float() / 255, torch.as_tensor(labels))
    loader = fabric.setup_dataloaders(DataLoader(data, batch_size=64, shuffle=True, drop_last=True))
    bare = ResNet18(width=8)
    network, optimiser = fabric.setup(bare, torch.optim.SGD(bare.parameters(), lr=0.05, momentum=0.9))

    prober = None
    if fabric.is_global_zero:
        prober = Prober(
            named_probe_set("shapes8"),
            options.out,
            total_steps=options.steps,
            protocol={"target_se": options.target_se},
            max_share=None,
        )

    def measure(step: int) -> None:
        if prober is not None:
            prober(step, bare.forward_features)
        fabric.barrier()

    step = 0
    measure(step)
    while step < options.steps:
        for batch, targets in loader:
            loss = torch.nn.functional.cross_entropy(network(batch), targets)
            optimiser.zero_grad()
            fabric.backward(loss)
            optimiser.step()
            step += 1
            measure(step)
            if step == options.steps:
                break
    if prober is not None:
        prober.close()


if __name__ == "__main__":
    main()
