"""Encoders as modules: any callable images -> features becomes one ``nn.Module``, its parameters reachable.

Paper: section 2 (Phi) and A.2 (the input normalisation is folded into Phi). Needs torch alone.
Features may come from a method, a named submodule or a closure; a name is looked up when the wrapper is made.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lit_bump.errors import LitBumpError, nearest

Encoder = nn.Module | Callable[[Tensor], Tensor]


class MethodEncoder(nn.Module):
    """Take the features from a method of a module, for instance ``forward_features``.

    Args:
        module: the module.
        method: name of a method images -> features.

    Raises:
        LitBumpError: if the module has no such method.

    """

    def __init__(self, module: nn.Module, method: str) -> None:
        super().__init__()
        if not callable(getattr(module, method, None)):
            names = [name for name in dir(module) if not name.startswith("_")]
            raise LitBumpError(f"{type(module).__name__} has no method {method!r}{nearest(method, names)}")
        self.module = module
        self.method = method

    def forward(self, images: Tensor) -> Any:
        """Return what the method returns."""
        return getattr(self.module, self.method)(images)


class SubmoduleEncoder(nn.Module):
    """Take what a named submodule returns while the whole module runs on the images.

    Whatever the module does before the submodule (normalisation, say) is thus inside Phi. Where the module has no
    forward of its own, as many training modules, the images go to the first module on the way down the dotted name
    that has one: for ``net.1`` to ``net``, not to ``net.1``; for ``backbone`` to ``backbone`` itself.

    Args:
        module: the whole module.
        name: dotted name of the submodule, such as ``backbone`` or ``blocks.6``.

    Raises:
        LitBumpError: if there is no such submodule; the nearest names are given.

    """

    def __init__(self, module: nn.Module, name: str) -> None:
        super().__init__()
        names = [known for known, _ in module.named_modules() if known]
        if name not in names:
            raise LitBumpError(f"{type(module).__name__} has no submodule {name!r}{nearest(name, names)}")
        self.module = module
        self.name = name
        self.entry = _entry(module, name)  # dotted name of the module that the images go to; "" for the whole

    def forward(self, images: Tensor) -> Any:
        """Return the submodule's output.

        Args:
            images: batch of images.

        Returns:
            The output of its last call.

        Raises:
            LitBumpError: if the forward that the images go through never calls it.

        """
        entry, submodule = self.module.get_submodule(self.entry), self.module.get_submodule(self.name)
        if self.entry == self.name:
            return submodule(images)
        seen: list[Any] = []
        handle = submodule.register_forward_hook(lambda _module, _args, output: seen.append(output))
        try:
            entry(images)
        finally:
            handle.remove()
        if not seen:
            raise LitBumpError(f"forward of {type(entry).__name__} never calls its submodule {self.name!r}")
        return seen[-1]


class NormalisedEncoder(nn.Module):
    """Fold the input normalisation of a model into Phi, so that images and eta stay in [0, 1] pixels.

    Args:
        encoder: expects normalised images.
        mean: a value a channel.
        std: a value a channel, positive.

    Raises:
        LitBumpError: if the lengths differ or a deviation is not positive.

    """

    mean: Tensor
    std: Tensor

    def __init__(self, encoder: Encoder, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        if len(mean) != len(std) or not len(mean) or min(std) <= 0:
            raise LitBumpError(f"mean is {mean} and std is {std}; give one of each a channel, std positive")
        self.encoder = as_encoder(encoder)
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Any:
        """Return the features of the normalised images.

        Args:
            images: batch in [0, 1] pixels.

        Returns:
            What the encoder returns.

        Raises:
            LitBumpError: if the images have another number of channels.

        """
        mean, std = self.mean.to(images), self.std.to(images)
        if mean.shape[1] != images.shape[1]:
            raise LitBumpError(f"mean and std have {mean.shape[1]} channels, the images {images.shape[1]}")
        return self.encoder((images - mean) / std)


class CallableEncoder(nn.Module):
    """Run a plain callable; the modules that it refers to become submodules, so that they too are left untouched.

    Args:
        function: images -> features.

    """

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function
        self.reached = nn.ModuleList(module for module in reachable_modules(function) if module is not function)

    def forward(self, images: Tensor) -> Any:
        """Return what the callable returns."""
        return self.function(images)


def as_encoder(encoder: Encoder) -> nn.Module:
    """Return an encoder of any kind as a module, without copying it.

    Wrappers without a forward derivative (``DistributedDataParallel``, ``DataParallel``, ``torch.compile``) are taken
    off. A module that keeps other modules unregistered, in a list say, is wrapped so that they too are left untouched.

    Args:
        encoder: a module, a bound method of one, or any callable images -> features.

    Returns:
        A module whose parameters and buffers are those of the encoder.

    Raises:
        LitBumpError: if it cannot be called, or is sharded.

    """
    if isinstance(encoder, nn.Module):
        if type(encoder).__name__ in ("FullyShardedDataParallel",) or _is_sharded(encoder):
            raise LitBumpError("the encoder's parameters are sharded (FSDP); gather a full copy of it and measure that")
        if isinstance(encoder, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
            return as_encoder(encoder.module)
        if type(encoder).__name__ == "OptimizedModule":  # torch.compile: the module itself is inside
            inner: Any = encoder._orig_mod
            return as_encoder(inner)
        return CallableEncoder(encoder) if _hidden_modules(encoder) else encoder
    if not callable(encoder):
        raise LitBumpError(f"the encoder is {type(encoder).__name__}, which cannot be called; give images -> features")
    owner = getattr(encoder, "__self__", None)
    if inspect.ismethod(encoder) and isinstance(owner, nn.Module) and hasattr(owner, encoder.__name__):
        return as_encoder(MethodEncoder(owner, encoder.__name__))
    return CallableEncoder(encoder)


def reachable_modules(function: Callable[..., Any]) -> list[nn.Module]:
    """Return the modules that a callable refers to: its object, its closure, its arguments, the globals that it names.

    Args:
        function: any callable.

    Returns:
        Modules in the order found, each once.

    Example:
        >>> net = nn.Linear(2, 1)
        >>> reachable_modules(lambda images: net(images.flatten(1))) == [net]
        True

    """
    found: dict[int, nn.Module] = {}
    for value in _references(function, depth=3, seen=set()):
        for module in (value, *_hidden_modules(value)):
            found.setdefault(id(module), module)
    return list(found.values())


def _hidden_modules(module: nn.Module) -> list[nn.Module]:
    """Return the modules that a module keeps outside of its registered ones: in lists, dicts, partials, functions."""
    parts = list(module.modules())
    seen = {id(part) for part in parts}  # neither reported nor entered
    usual = vars(nn.Module())
    values = [value for part in parts for name, value in vars(part).items() if name not in usual]
    kinds = (list, tuple, dict, functools.partial, types.FunctionType, types.MethodType)
    return [found for value in values if isinstance(value, kinds) for found in _references(value, 2, seen)]


def _references(value: Any, depth: int, seen: set[int]) -> Iterator[nn.Module]:
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        yield value
        return
    inner: list[Any] = []
    if isinstance(value, functools.partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, (list, tuple)):
        inner = list(value[:100])
    elif isinstance(value, dict):
        inner = list(value.values())[:100]
    elif inspect.ismethod(value):
        inner = [value.__self__, value.__func__]
    elif inspect.isfunction(value):
        inner = _named_by(value)
    elif not isinstance(value, (type, Tensor, types.ModuleType)):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        inner = [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)][:100]
        inner.append(vars(type(value)).get("__call__"))
    for part in inner:
        yield from _references(part, depth - 1, seen)


def _named_by(function: types.FunctionType) -> list[Any]:
    """Return what a function can reach: its closure, defaults, and the globals that its code names, inner code too."""
    values: list[Any] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    values.append(getattr(function, "__wrapped__", None))
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            values.append(cell.cell_contents)
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    values += [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    for holder in [value for value in values if isinstance(value, (types.ModuleType, type))]:  # as in models.net(x)
        values += [held for name in names if isinstance(held := vars(holder).get(name), nn.Module)]
    return values


def _entry(module: nn.Module, name: str) -> str:
    """Return the dotted name of the first module, from the whole down to ``name``, that has a forward of its own."""
    steps = name.split(".")
    on_the_way = (".".join(steps[:depth]) for depth in range(len(steps)))
    return next((way for way in on_the_way if _has_forward(module.get_submodule(way))), name)


def _has_forward(module: nn.Module) -> bool:
    """Return whether a class other than the base classes of torch and Lightning defines ``forward``."""
    for kind in type(module).__mro__:
        if "forward" in vars(kind):
            return kind is not nn.Module and kind.__name__ != "LightningModule"
    return False


def _is_sharded(module: nn.Module) -> bool:
    return any(type(parameter.data).__name__ == "DTensor" for parameter in module.parameters())
