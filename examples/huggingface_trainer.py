"""Response profiles in the Trainer of transformers. ``python examples/huggingface_trainer.py --out runs/hf``.

Needs ``pip install transformers accelerate``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from lit_bump import named_probe_set
from lit_bump.images import draw_shapes
from lit_bump.integrations.huggingface import ProberCallback

MEAN = STD = (0.5, 0.5, 0.5)


class Shapes(Dataset[dict[str, Any]]):
    """Drawn shapes as a model of transformers takes them."""

    def __init__(self, n: int) -> None:
        images, labels = draw_shapes(n, seed=0, split="train")
        self.images, self.labels = (torch.as_tensor(images).float() / 255 - 0.5) / 0.5, torch.as_tensor(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"pixel_values": self.images[index], "labels": self.labels[index]}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a small ViT, and measure its class token at logarithmic steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/huggingface"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    torch.manual_seed(0)
    model = ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, num_labels=10, **sizes))

    def encoder(model: Any) -> Any:
        return lambda images: model.vit(images).last_hidden_state[:, 0]

    callback = ProberCallback(
        named_probe_set("shapes8"),
        encoder,
        mean=MEAN,
        std=STD,
        protocol={"target_se": options.target_se},
        max_share=None,
    )
    settings = TrainingArguments(
        output_dir=str(options.out),
        max_steps=options.steps,
        per_device_train_batch_size=16,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    Trainer(model=model, args=settings, train_dataset=Shapes(500), callbacks=[callback]).train()


if __name__ == "__main__":
    main()
