"""The mode of a model while it is attacked, and what is put back afterwards.

Paper: fig. 2a. Needs torch alone. An attack runs the model many times between two training steps: in training mode each
run would move BatchNorm's running statistics, so they are put back here, and the modes as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn

Mode = Literal["eval", "train"]


@contextmanager
def attack_mode(model: object, mode: Mode = "eval") -> Iterator[None]:
    """Put a model into a mode for a block, with gradients on; then put modes and buffers back, also after an error.

    Gradients flow even where ``no_grad`` or ``inference_mode`` is on outside (Lightning's evaluation loops). Half
    precision is left, where autocast to float16 is on: its gradients underflow without loss scaling.

    Args:
        model: a module; any other callable is left alone.
        mode: ``eval``: running statistics, no dropout. ``train``: batch statistics and dropout, which draws from the
            global random stream; parts that are in evaluation mode (frozen BatchNorm) stay in it.

    Yields:
        Nothing.

    Example:
        >>> net = nn.BatchNorm2d(3)
        >>> with attack_mode(net, "train"):
        ...     _ = net(torch.rand(2, 3, 4, 4))
        >>> int(net.num_batches_tracked), net.training
        (0, True)

    """
    parts = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [(part, part.training) for part in parts]
    moving = [buffer for part in parts for buffer in part.buffers(recurse=False)] if mode == "train" else []
    buffers = [(buffer, buffer.detach().clone()) for buffer in moving]
    try:
        if mode == "eval":
            for part in parts:
                part.training = False  # not eval(): modules may override it
        with torch.inference_mode(False), torch.enable_grad(), _without_half():
            yield
    finally:
        for part, training in modes:
            part.training = training
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


@contextmanager
def _without_half() -> Iterator[None]:
    half = [kind for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind)]
    half = [kind for kind in half if torch.get_autocast_dtype(kind) == torch.float16]
    if half:
        with torch.autocast(half[0], enabled=False):
            yield
    else:
        yield
