"""Response profiles in a training loop of timm's parts. ``python examples/timm_loop.py --out runs/timm``.

The lines that timm's own train script needs are those with ``prober`` in them. timm's models expect normalised images:
their mean and deviation, from ``resolve_data_config``, become part of the encoder, so that eta stays in [0, 1] pixels.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import timm
import torch
from timm.data import resolve_data_config
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from torch.utils.data import DataLoader, TensorDataset

from lit_bump import Prober, named_probe_set
from lit_bump.images import draw_shapes


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a timm model, and measure it at logarithmic steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/timm"))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--model", default="resnet10t")
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    model = timm.create_model(options.model, pretrained=False, num_classes=10)
    config = resolve_data_config({}, model=model)
    mean, std = (torch.tensor(config[name]).view(3, 1, 1) for name in ("mean", "std"))
    images, labels = draw_shapes(1_000, seed=0, split="train")
    normalised = (torch.as_tensor(images).float() / 255 - mean) / std
    loader = DataLoader(TensorDataset(normalised, torch.as_tensor(labels)), batch_size=64, shuffle=True, drop_last=True)
    optimiser = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    scheduler = CosineLRScheduler(optimiser, t_initial=options.steps, warmup_t=5, t_in_epochs=False)

    prober = Prober(
        named_probe_set("shapes8"),
        options.out,
        total_steps=options.steps,
        mean=config["mean"],
        std=config["std"],
        protocol={"target_se": options.target_se},
        max_share=None,
    )

    def encoder(batch: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = model.forward_head(model.forward_features(batch), pre_logits=True)
        return features

    step = 0
    prober(step, encoder)
    while step < options.steps:
        for batch, targets in loader:
            loss = torch.nn.functional.cross_entropy(model(batch), targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            scheduler.step_update(step)
            prober(step, encoder)
            if step == options.steps:
                break
    prober.close(encoder)


if __name__ == "__main__":
    main()
