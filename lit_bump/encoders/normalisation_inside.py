"""Where a module normalises its input already, so that it is not done twice.

Not in the paper (it folds each model's normalisation into Phi, once). Needs torch alone. A sign is a submodule whose
class is named so, or that holds a mean and a standard deviation a channel, as buffers or as plain values.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_CLASSES = ("normalize", "normalise", "normalization", "normalisation", "inputnormalize", "imagenormalizer")
_PAIRS = (("mean", "std"), ("new_mean", "new_std"), ("pixel_mean", "pixel_std"), ("image_mean", "image_std"))
_CHANNELS = (1, 3, 4)


def normalisation_inside(module: nn.Module) -> str:
    """Return the name of the submodule that normalises the input.

    Args:
        module: any encoder.

    Returns:
        A dotted name, with its class; empty where no sign is found.

    Example:
        >>> from lit_bump.measure import NormalisedEncoder
        >>> normalisation_inside(NormalisedEncoder(nn.Flatten(), [0.5], [0.5]))
        'NormalisedEncoder'
        >>> normalisation_inside(nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)))
        ''

    """
    for name, part in module.named_modules():
        kind = type(part).__name__
        if kind.lower() in _CLASSES or any(_is_statistics(part, pair) for pair in _PAIRS):
            return f"{name} ({kind})" if name else kind
    return ""


def _is_statistics(module: nn.Module, pair: tuple[str, str]) -> bool:
    mean, std = (_values(getattr(module, name, None)) for name in pair)
    return mean is not None and std is not None and len(mean) == len(std) and min(std) > 0


def _values(value: Any) -> list[float] | None:
    """Return a value a channel, where it is that."""
    if isinstance(value, (list, tuple)) and all(isinstance(entry, (int, float)) for entry in value):
        value = torch.tensor(value, dtype=torch.float64)
    if isinstance(value, Tensor) and value.numel() in _CHANNELS and value.is_floating_point():
        return [float(entry) for entry in value.detach().flatten()]
    return None
