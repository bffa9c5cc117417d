"""Phi, found in a training module: a method, a named submodule, or a callable, with the input normalisation inside.

Paper: A.2 "Protocol" (each model's input normalisation is folded into Phi). Imports Lightning and ``measure``.
It is looked up in the bare module, never in the wrapper of a strategy, which forward mode cannot differentiate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lightning.pytorch import LightningModule
from torch import nn

from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure import MethodEncoder, NormalisedEncoder, SubmoduleEncoder, as_encoder

METHOD = "forward_features"


def probed_encoder(
    pl_module: LightningModule,
    encoder: str | Callable[..., Any] | None = None,
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> nn.Module:
    """Return Phi of a training module.

    Args:
        pl_module: the module that is trained.
        encoder: dotted name of a submodule (``backbone``, ``net.blocks.6``) or of a method (``net.forward_features``);
            or a callable images -> features; or None for the module's ``forward_features``.
        mean: a value a channel, for a Phi that expects normalised images.
        std: a value a channel.

    Returns:
        A module that shares the parameters; images in [0, 1] pixels go in.

    Raises:
        LitBumpError: if it cannot be found; what the module has is named.

    """
    if (mean is None) != (std is None):
        raise LitBumpError(f"mean is {mean} and std is {std}; give both or neither")
    found = _found(pl_module, encoder)
    return found if mean is None or std is None else NormalisedEncoder(found, mean, std)


def encoder_name(encoder: str | Callable[..., Any] | None) -> str:
    """Return a name for the records, the same in every process.

    Args:
        encoder: as for ``probed_encoder``.

    Returns:
        The dotted name, or that of the callable or its class.

    Example:
        >>> encoder_name(None), encoder_name("backbone"), encoder_name(nn.Flatten())
        ('forward_features', 'backbone', 'Flatten')

    """
    if encoder is None or isinstance(encoder, str):
        return encoder or METHOD
    return getattr(encoder, "__qualname__", type(encoder).__name__)


def _found(pl_module: LightningModule, encoder: str | Callable[..., Any] | None) -> nn.Module:
    if encoder is None:
        if callable(getattr(pl_module, METHOD, None)):
            return MethodEncoder(pl_module, METHOD)
        raise LitBumpError(f"{type(pl_module).__name__} has no method {METHOD}: give {_cure(pl_module)}")
    if not isinstance(encoder, str):
        return as_encoder(encoder)
    submodules = dict(pl_module.named_modules())
    if encoder and encoder in submodules:
        return SubmoduleEncoder(pl_module, encoder)
    owner, _, method = encoder.rpartition(".")
    if method and owner in submodules and callable(getattr(submodules[owner], method, None)):
        return MethodEncoder(submodules[owner], method)
    names = [name for name in submodules if name]
    raise LitBumpError(f"{type(pl_module).__name__} has no submodule or method {encoder!r}{nearest(encoder, names)}")


def _cure(pl_module: LightningModule) -> str:
    children = [(name, child) for name, child in pl_module.named_children()]
    able = [f"encoder='{name}.{METHOD}'" for name, child in children if callable(getattr(child, METHOD, None))]
    if able:
        return " or ".join(able[:2])
    if children:
        return f"encoder=, the name of a submodule ({', '.join(name for name, _ in children[:8])}) or a callable"
    return "encoder=, a callable images -> features"
