"""Which weights a measurement shows: those that the optimiser has left, or an average that was put in their place.

Not in the paper. Imports Lightning. Callbacks that average weights (EMA, SWA) put the average into the module after the
last step, before or after ours as the user has listed them; what was measured is told by the weights themselves.
"""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import StochasticWeightAveraging, WeightAveraging
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

RAW = "raw"


class MeasuredWeights:
    """Remember what the last optimiser step has left, and name what is there at a measurement."""

    def __init__(self) -> None:
        self._step = -1
        self._left: Tensor | None = None
        self._averaged_by = ""

    def note(self, trainer: Trainer, phi: nn.Module) -> None:
        """Remember the weights of a step; a second call for the same step changes nothing.

        Args:
            trainer: at the end of a batch or an epoch.
            phi: what is measured.

        """
        if trainer.global_step != self._step:
            self._step, self._left = trainer.global_step, _fingerprint(phi)
        if any(trainer.current_epoch > one.swa_end for one in _callbacks(trainer, StochasticWeightAveraging)):
            self._averaged_by = "StochasticWeightAveraging"  # the epoch that only renews the batch statistics

    def name(self, trainer: Trainer, phi: nn.Module) -> str:
        """Return a name for the records.

        Args:
            trainer: with its optimizers and callbacks.
            phi: what is measured.

        Returns:
            ``raw``; ``averaged by EMAWeightAveraging`` or another callback; ``averaged (AveragedModel)``; ``changed
            after the last step``; ``of no optimizer`` for an encoder that is not trained; or ``unknown``.

        """
        if any(isinstance(part, AveragedModel) for part in _owners(trainer, phi)):
            return "averaged (AveragedModel)"
        trained = {
            id(p) for optimizer in trainer.optimizers for group in optimizer.param_groups for p in group["params"]
        }
        own = {id(p) for p in phi.parameters()}
        if own and trained and not own & trained:
            return "of no optimizer"
        if self._averaged_by:
            return f"averaged by {self._averaged_by}"
        if self._step != trainer.global_step:
            return RAW
        now = _fingerprint(phi)
        if self._left is None or now is None:
            return "unknown: they have no norm"
        if torch.equal(self._left, now):
            return RAW
        by = [type(one).__name__ for one in _callbacks(trainer, WeightAveraging, StochasticWeightAveraging)]
        return f"averaged by {by[0]}" if by else "changed after the last step"


def _callbacks(trainer: Trainer, *kinds: type[Any]) -> list[Any]:
    return [one for one in trainer.callbacks if isinstance(one, kinds)]  # type: ignore[attr-defined]


@torch.no_grad()
def _fingerprint(phi: nn.Module) -> Tensor | None:
    """Return a norm a parameter: cheap, and different for an average of different weights; None where there is none."""
    plain = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    values = [p.detach() if p.dtype in plain else p.detach().float() for p in phi.parameters()]
    try:
        return torch.stack([norm.double().cpu() for norm in torch._foreach_norm(values)]) if values else torch.zeros(0)
    except (RuntimeError, TypeError):  # sharded, packed or otherwise odd weights: no reason to end a training
        return None


def _owners(trainer: Trainer, phi: nn.Module) -> list[nn.Module]:
    """Return Phi's own parts, and what in the training module holds any of its parameters."""
    parts = list(phi.modules())
    own = {id(p) for p in phi.parameters()}
    averages = [one for one in trainer.lightning_module.modules() if isinstance(one, AveragedModel)]
    return parts + [one for one in averages if own and own <= {id(p) for p in one.parameters()}]
