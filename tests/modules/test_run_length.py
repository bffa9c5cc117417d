"""The last optimiser step of a run, as the trainer reaches it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from lit_bump.modules.run_length import run_length

pytestmark = pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")


class Line(LightningModule):
    """Fit one weight, with one optimiser or, by hand, with two; note the run's length at its start."""

    def __init__(self, n_optimizers: int = 1) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.automatic_optimization = n_optimizers == 1
        self.n_optimizers = n_optimizers
        self.length: int | None = -7

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor | None:
        """Return the loss, or step by hand."""
        loss = (self.weight - batch).square().mean()
        if self.automatic_optimization:
            return loss
        self.manual_backward(loss)
        for optimizer in self.optimizers():  # type: ignore[union-attr]
            optimizer.step()
        return None

    def configure_optimizers(self) -> Any:
        """Return plain SGD, once or twice."""
        optimizers = [torch.optim.SGD([self.weight], lr=0.1) for _ in range(self.n_optimizers)]
        return optimizers if len(optimizers) > 1 else optimizers[0]

    def on_train_start(self) -> None:
        """Note the length."""
        self.length = run_length(self.trainer)


class Endless(IterableDataset[Tensor]):
    """Give batches without end and without a length."""

    def __iter__(self) -> Any:
        """Yield zeros."""
        while True:
            yield torch.zeros(1)


def fit(module: Line, data: Any = None, **arguments: Any) -> Trainer:
    # without files; 7 batches an epoch unless other data are given
    trainer = Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, **arguments,
    )  # fmt: skip
    trainer.fit(module, DataLoader(torch.zeros(7, 1)) if data is None else data)  # type: ignore[arg-type]
    return trainer


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"max_epochs": 2}, 14),
        ({"max_epochs": 2, "accumulate_grad_batches": 3}, 6),
        ({"max_epochs": 2, "max_steps": 5}, 5),
        ({"max_epochs": 2, "max_steps": 50}, 14),
        ({"max_steps": 9}, 9),
        ({"max_epochs": -1, "max_steps": 9}, 9),
        ({"max_epochs": 2, "limit_train_batches": 4}, 8),
        ({"fast_dev_run": True}, 1),
    ],
    ids=str,
)
def test_is_the_step_that_the_trainer_reaches(arguments: dict[str, Any], expected: int) -> None:
    module = Line()
    trainer = fit(module, **arguments)
    assert module.length == trainer.global_step == expected


def test_two_optimizers_by_hand_count_twice() -> None:
    module = Line(n_optimizers=2)
    trainer = fit(module, max_epochs=2, max_steps=10)
    assert module.length == trainer.global_step == 10
    fit(module, max_epochs=1)
    assert module.length is None


@pytest.mark.parametrize("max_epochs", [-1, 1])
def test_unknown_length_is_none(max_epochs: int) -> None:
    class Stopping(Line):
        def on_train_batch_end(self, *_: Any) -> None:
            self.trainer.should_stop = True

    module = Stopping()
    fit(module, DataLoader(Endless()), max_epochs=max_epochs, limit_train_batches=None if max_epochs > 0 else 3)
    assert module.length is None
