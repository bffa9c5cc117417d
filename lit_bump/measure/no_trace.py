"""Leave no trace: whatever a measurement does to modules and random streams is undone, also when it raises.

Not in the paper; without it a measured training run would differ from an unmeasured one. Needs torch and NumPy.
Weights and buffers are protected elsewhere (``FrozenEncoder`` works on copies of them); here are the
per-module modes, attributes that a forward caches, hooks, gradients and the global random streams.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_CONTAINERS = (dict, list, set, deque)


@contextmanager
def no_trace(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode for a block, then restore it and the global random streams exactly.

    Restored: every submodule's own ``training`` flag (not one global ``train()``), attributes set, replaced or deleted
    in the block, containers (nested ones too) and plain tensors changed in place, hooks, ``requires_grad`` and
    ``grad`` of every parameter, and the random streams of Python, NumPy and torch (CPU and every initialised CUDA
    device). ``train()`` and ``eval()`` are never called, since modules may override them.

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
    modes = [(part, getattr(part, "training", False)) for part in module.modules()]
    attributes = [(part, dict(vars(part))) for part, _ in modes]
    contents = _contents(module)
    parameters = [(p, p.requires_grad, p.grad) for p in module.parameters()]
    try:
        for part, training in modes:
            if training:
                part.training = False
        yield
    finally:
        for part, saved in attributes:
            _restore_attributes(part, saved)
        for value, content in contents:
            _restore_content(value, content)
        for part, training in modes:  # once more: a scripted module keeps its mode elsewhere
            if getattr(part, "training", False) != training:
                part.training = training
        for parameter, requires_grad, grad in parameters:
            if parameter.requires_grad != requires_grad:
                parameter.requires_grad_(requires_grad)
            if parameter.grad is not grad:
                parameter.grad = grad
        _restore_random_streams(streams)


def _contents(module: nn.Module) -> list[tuple[Any, Any]]:
    """Return every container and plain tensor among the attributes, however deep, with a copy of its content."""
    found: dict[int, tuple[Any, Any]] = {}
    protected = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    waiting: list[Any] = [value for part in module.modules() for value in vars(part).values()]
    while waiting:
        value = waiting.pop()
        if id(value) in found or id(value) in protected:
            continue
        if isinstance(value, Tensor):
            found[id(value)] = (value, value.detach().clone())
        elif isinstance(value, tuple):
            waiting.extend(value)
        elif isinstance(value, _CONTAINERS):
            content = dict(value) if isinstance(value, dict) else list(value)
            found[id(value)] = (value, content)
            waiting.extend(content.values() if isinstance(content, dict) else content)
    return list(found.values())


def _restore_attributes(part: nn.Module, saved: dict[str, Any]) -> None:
    now = vars(part)
    for name in [name for name in now if name not in saved]:
        del now[name]
    now.update(saved)


def _restore_content(value: Any, content: Any) -> None:
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
