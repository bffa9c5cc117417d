"""Adversarial training in two processes on the CPU: ``python -m tests.modules.adversarial_processes``."""

from __future__ import annotations

import json
import warnings
from typing import Any

import torch
import torch.distributed
from lightning.pytorch import Trainer
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from lit_bump.modules import AdversarialClassifierModule


class Watched(AdversarialClassifierModule):
    """Keep the seeds of all attacks; print those of both processes and the evaluation at the end."""

    def __init__(self) -> None:
        super().__init__("resnet18", width=4, num_classes=3, attack_steps=1, eval_steps=1, eps=0.5)
        self.seeds: list[int] = []

    def training_images(self, batch: Any) -> Tensor:
        """Return the attacked images; note the seed."""
        at_step = self._at_step
        self.seeds.append(self._seed())
        self._at_step = at_step
        return super().training_images(batch)

    def on_fit_end(self) -> None:
        """Gather and print."""
        seeds: list[Any] = [None, None]
        torch.distributed.all_gather_object(seeds, self.seeds)
        if self.global_rank == 0:
            metrics = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
            print("REPORT", json.dumps({"seeds": seeds, "metrics": metrics}), flush=True)


def main() -> None:
    """Train two steps in each process."""
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.rand(32, 3, 16, 16, generator=generator), torch.arange(32) % 3
    loader = DataLoader(TensorDataset(images, labels), batch_size=8)
    torch.manual_seed(0)
    module = Watched()
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = Trainer(
        accelerator="cpu", devices=2, strategy="ddp_fork", max_epochs=1, enable_model_summary=False, **quiet
    )
    trainer.fit(module, loader, loader)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    main()
