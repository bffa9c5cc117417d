"""Response profiles in a loop after torchvision's reference scripts. ``python examples/torchvision_loop.py``.

With a linear warm-up and an exponential moving average of the weights. Both are measured, the raw ones and the average,
each by a prober of its own, so that no file leaves open which of them it shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
import torchvision
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms.v2.functional import normalize

from lit_bump import LogSteps, Prober, named_probe_set
from lit_bump.images import draw_shapes

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a torchvision model, and measure its weights and their average."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/torchvision"))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--model", default="shufflenet_v2_x0_5")
    parser.add_argument("--layer", default="mean", help="node of the traced model whose output is the features")
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    torch.manual_seed(0)
    images, labels = draw_shapes(1_000, seed=0, split="train")
    normalised = normalize(torch.as_tensor(images).float() / 255, MEAN, STD)
    loader = DataLoader(TensorDataset(normalised, torch.as_tensor(labels)), batch_size=64, shuffle=True, drop_last=True)
    model = torchvision.models.get_model(options.model, weights=None, num_classes=10)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    warm, cosine = LinearLR(optimiser, 0.01, total_iters=5), CosineAnnealingLR(optimiser, max(options.steps - 5, 1))
    scheduler = SequentialLR(optimiser, [warm, cosine], milestones=[5])

    raw_prober, average_prober = (
        Prober(
            named_probe_set("shapes8"),
            options.out / name,
            total_steps=options.steps,
            schedule=LogSteps(per_decade=2),
            mean=MEAN,
            std=STD,
            protocol={"target_se": options.target_se},
            max_share=None,
        )
        for name in ("raw", "average")
    )

    def measure(step: int) -> None:
        for prober, weights in ((raw_prober, model), (average_prober, average.module)):
            extractor = create_feature_extractor(weights, {options.layer: "features"})
            prober(step, lambda batch, extractor=extractor: extractor(batch)["features"])

    step = 0
    measure(step)
    while step < options.steps:
        for batch, targets in loader:
            loss = torch.nn.functional.cross_entropy(model(batch), targets, label_smoothing=0.1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            average.update_parameters(model)
            scheduler.step()
            step += 1
            measure(step)
            if step == options.steps:
                break
    raw_prober.close()
    average_prober.close()


if __name__ == "__main__":
    main()
