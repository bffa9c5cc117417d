"""What every loader returns: a network with its features, and how its images are to be prepared.

Not in the paper. Needs torch alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from lit_bump.encoders.preprocessing import Preprocessing


@dataclass(frozen=True)
class LoadedNetwork:
    """Hold a network before its normalisation is folded in.

    Args:
        network: the whole network, without its classifier; layers are found in it by name.
        features: normalised images -> features; the network itself, or a part of what it does.
        feature: what the features are, in words.
        preprocessing: resize and crop.
        mean: of the normalisation, a value a channel; None where the network normalises by itself.
        std: likewise.
        source: of the weights, in words.
        label: short name for legends.
        notes: choices that a reader should know, and the proof that weights were loaded.
        facts: more plain values for the record, such as the budget of adversarial training.

    """

    network: nn.Module
    features: nn.Module
    feature: str
    preprocessing: Preprocessing
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    source: str
    label: str
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Let a network be built inside with the weights of a seed; the global random streams stay as they were.

    Args:
        seed: of the weights.

    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
