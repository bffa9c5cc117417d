"""One measurement shared by all processes of a run: each takes some of the images, and all get the whole answer.

Paper: A.2. Imports Lightning, ``torch.distributed`` and ``measure``. The answer is that of one process: directions
depend on the number of an image alone, and every process measures with the buffers of the first (BatchNorm statistics
differ between processes). An error in one process is raised in all, so that none waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed
from lightning.pytorch import Trainer
from torch import nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, measure_profile
from lit_bump.probes import ProbeSet


def measure_sharded(
    trainer: Trainer,
    encoder: nn.Module,
    probe: ProbeSet,
    protocol: Protocol,
    *,
    chunk: int | None,
    progress: bool,
    budget_seconds: float | None = None,
) -> Profile:
    """Measure a probe set with all processes of the run.

    Args:
        trainer: of the run; every process must call this.
        encoder: Phi, on this process's device.
        probe: the whole set, the same in every process.
        protocol: what to measure.
        chunk: perturbed images a forward.
        progress: whether the first process may show a bar.
        budget_seconds: wall time to keep to, the same in every process; None for no limit.

    Returns:
        The profile of the whole set, in every process.

    Raises:
        LitBumpError: if any process failed; its message is the first such process's.

    """
    start, stop = shard(len(probe.images), trainer.global_rank, trainer.world_size)
    part: Profile | None = None
    failure: Exception | None = None
    with _first_buffers(trainer, encoder):
        try:
            if start < stop:
                images = probe.images[start:stop].to(_device(trainer, encoder))
                shown = None if progress and trainer.is_global_zero else False
                part = measure_profile(
                    encoder,
                    images,
                    protocol,
                    chunk=chunk,
                    progress=shown,
                    first_image=start,
                    budget_seconds=budget_seconds,
                )
        except Exception as error:
            failure = error
    outcomes = _gathered((part, _described(failure)), trainer.world_size)
    for rank, (_, text) in enumerate(outcomes):
        if text:
            at = f" (process {rank})" if trainer.world_size > 1 else ""
            size = "x".join(str(n) for n in probe.input_size)
            message = f"probe set {probe.name!r} ({size}) cannot be measured{at}: {text}"
            raise LitBumpError(message) from failure
    return Profile.concatenate([part for part, _ in outcomes if part is not None])


def shard(n_images: int, rank: int, world_size: int) -> tuple[int, int]:
    """Return the images of one process: consecutive, the numbers as equal as can be.

    Args:
        n_images: of the whole set.
        rank: of the process.
        world_size: number of processes.

    Returns:
        First image, and the one after the last; equal where there is nothing to do.

    Example:
        >>> [shard(5, rank, 3) for rank in range(3)]
        [(0, 1), (1, 3), (3, 5)]

    """
    return n_images * rank // world_size, n_images * (rank + 1) // world_size


def _gathered(outcome: tuple[Profile | None, str], world_size: int) -> list[tuple[Profile | None, str]]:
    if world_size == 1 or not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [outcome]
    outcomes: list[tuple[Profile | None, str]] = [(None, "")] * world_size
    torch.distributed.all_gather_object(outcomes, outcome)
    return outcomes


@contextmanager
def _first_buffers(trainer: Trainer, encoder: nn.Module) -> Iterator[None]:
    """Lend every process the buffers of the first; give each its own back."""
    if trainer.world_size == 1:
        yield
        return
    own = [buffer.detach().clone() for buffer in encoder.buffers()]
    _set_buffers(encoder, trainer.strategy.broadcast([buffer.cpu() for buffer in own]))
    try:
        yield
    finally:
        _set_buffers(encoder, own)


@torch.no_grad()
def _set_buffers(encoder: nn.Module, values: list[torch.Tensor]) -> None:
    for buffer, value in zip(encoder.buffers(), values, strict=True):
        buffer.copy_(value)


def _device(trainer: Trainer, encoder: nn.Module) -> torch.device:
    for tensor in (*encoder.parameters(), *encoder.buffers()):
        return tensor.device
    return trainer.strategy.root_device


def _described(failure: Exception | None) -> str:
    """Return an error on one line."""
    if failure is None:
        return ""
    text = " ".join(str(failure).split())
    return text if isinstance(failure, LitBumpError) else f"{type(failure).__name__}: {text}"
