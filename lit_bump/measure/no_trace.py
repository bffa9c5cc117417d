"""Leave no trace: whatever a measurement does to modules and random streams is undone, also when it raises.

Not in the paper; without it a measured training run would differ from an unmeasured one. Needs torch and NumPy.
Weights and buffers are protected elsewhere (``FrozenEncoder`` works on detached or copied tensors); here are the
per-module modes, attributes that a forward caches, hooks, gradients and the global random streams.
"""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_CONTAINERS = (dict, OrderedDict, list, set, deque)


@contextmanager
def no_trace(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode for a block, then restore it and the global random streams exactly.

    Restored: every submodule's own ``training`` flag (not one global ``train()``), attributes set, replaced or deleted
    in the block, plain containers and plain tensors changed in place, hooks, ``requires_grad`` and ``grad`` of every
    parameter, and the random streams of Python, NumPy and torch (CPU and every initialised CUDA device). ``train()``
    and ``eval()`` are never called, since modules may override them.

    Args:
        module: the encoder, or anything that holds it.

    Yields:
        Nothing.

    Example:
        >>> net = nn.Sequential(nn.Dropout().eval(), nn.Dropout())
        >>> with no_trace(net):
        ...     modes = [part.training for part in net]
        >>> modes, [part.training for part in net]
        ([False, False], [False, True])

    """
    streams = _random_streams()
    attributes = [(part, _attributes(part)) for part in module.modules()]
    parameters = [(p, p.requires_grad, p.grad) for p in module.parameters()]
    try:
        for part, _ in attributes:
            part.training = False
        yield
    finally:
        for part, saved in attributes:
            _restore_attributes(part, saved)
        for parameter, requires_grad, grad in parameters:
            if parameter.requires_grad != requires_grad:
                parameter.requires_grad_(requires_grad)
            if parameter.grad is not grad:
                parameter.grad = grad
        _restore_random_streams(streams)


def _attributes(part: nn.Module) -> dict[str, tuple[Any, Any]]:
    """Return every attribute with a copy of its content where it can change in place."""
    saved: dict[str, tuple[Any, Any]] = {}
    for name, value in vars(part).items():
        content: Any = None
        if type(value) in _CONTAINERS:
            content = value.copy()
        elif isinstance(value, Tensor):
            content = value.detach().clone()
        saved[name] = (value, content)
    return saved


def _restore_attributes(part: nn.Module, saved: dict[str, tuple[Any, Any]]) -> None:
    now = vars(part)
    for name in [name for name in now if name not in saved]:
        del now[name]
    for name, (value, content) in saved.items():
        now[name] = value
        if content is None:
            continue
        if isinstance(value, Tensor):
            if not torch.equal(value.detach(), content):
                with torch.no_grad():
                    value.copy_(content)
        elif _identities(value) != _identities(content):  # not ==: the items may be tensors
            value.clear()
            value.extend(content) if isinstance(value, (list, deque)) else value.update(content)


def _identities(container: Any) -> list[int]:
    items = [*container, *container.values()] if isinstance(container, dict) else list(container)
    return [id(item) for item in items]


def _random_streams() -> dict[str, Any]:
    initialised = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    cuda = torch.cuda.get_rng_state_all() if initialised else None
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002 - the global stream is the user's; it is read to be put back
        "torch": torch.get_rng_state(),
        "cuda": cuda,
    }


def _restore_random_streams(streams: dict[str, Any]) -> None:
    random.setstate(streams["python"])
    np.random.set_state(streams["numpy"])  # noqa: NPY002
    torch.set_rng_state(streams["torch"])
    if streams["cuda"] is not None:
        torch.cuda.set_rng_state_all(streams["cuda"])
