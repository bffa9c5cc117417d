"""Response profiles in a training loop of plain PyTorch. ``python examples/plain_loop.py --out runs/plain``.

Stopped and started again, it goes on from its checkpoint, and so do the profiles.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

from lit_bump import Prober, ResNet18, named_probe_set
from lit_bump.images import draw_shapes


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a small network, and measure it at logarithmic steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/plain"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    images, labels = draw_shapes(options.images, seed=0, split="train")
    data = TensorDataset(torch.as_tensor(images).float() / 255, torch.as_tensor(labels))
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    network = ResNet18(width=8)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)

    prober = Prober(
        named_probe_set("shapes8"),
        options.out,
        total_steps=options.steps,
        writer=SummaryWriter(str(options.out)),
        protocol={"target_se": options.target_se},
        max_share=None,  # a run of seconds has no time to spare: measure what is scheduled all the same
    )
    step, checkpoint = 0, options.out / "checkpoint.pt"
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        prober.load_state_dict(state["prober"])
        step = state["step"]

    prober(step, network.forward_features)
    while step < options.steps:
        for batch, targets in loader:
            loss = torch.nn.functional.cross_entropy(network(batch), targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            prober(step, network.forward_features)
            if step == options.steps:
                break
        state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
        torch.save({**state, "prober": prober.state_dict()}, checkpoint)
    prober.close(network.forward_features)


if __name__ == "__main__":
    main()
