"""Weights put into a network, and proof that they are there: which names matched, which did not, or an error.

Not in the paper; an encoder whose weights were never loaded shows no bump, without any message. Needs torch alone.
A file may keep the weights in an entry of its own and under a prefix (``module.``, ``_orig_mod.``, ``net.encoder.``):
the pair under which most of the network's tensors are found is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lit_bump.errors import LitBumpError

LEAST_MATCHED = 0.95
_DEEPEST = 3  # entries within entries that are searched for weights
_WITHOUT_EFFECT = "num_batches_tracked"  # a counter of BatchNorm's, which older files lack


@dataclass(frozen=True)
class Match:
    """Hold how weights fitted a network.

    Args:
        n_matched: tensors of the network, its head left out, that were found with the right shape.
        n_total: tensors that it has, its head left out.
        entry: where in the file they were, as ``model``; empty for the file itself.
        prefix: put before the names in the file.
        missing: names that were not found, or with another shape; of the encoder alone.
        unexpected: names under the prefix that the network does not know.
        head: what became of the head, in words; empty where it was loaded, too, or there is none.

    """

    n_matched: int
    n_total: int
    entry: str
    prefix: str
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    head: str

    def __str__(self) -> str:
        """Return the report in one line."""
        where = "".join([f" in {self.entry!r}" if self.entry else "", f" under {self.prefix!r}" if self.prefix else ""])
        text = f"{self.n_matched} of {self.n_total} tensors of the encoder matched{where}"
        text += f"; not found: {', '.join(self.missing[:3])}" if self.missing else ""
        return f"{text}; {self.head}" if self.head else text


def load_matched(
    network: nn.Module,
    weights: dict[str, Any],
    *,
    source: str,
    head: Sequence[str] = (),
    least: float = LEAST_MATCHED,
) -> Match:
    """Put weights into a network: nearly all of them, or none.

    Args:
        network: where to.
        weights: as read from a file: a state dict, or nested dicts that hold one.
        source: of the weights, for messages.
        head: beginnings of names that the features do not depend on, such as ``fc.``; they may differ.
        least: share of the encoder's tensors to be found; 1 where the architecture is known, since what is not found
            stays random.

    Returns:
        What matched. Weights of another floating-point type are converted.

    Raises:
        LitBumpError: if fewer of the encoder's tensors are found with their shapes; three missing and three
            unexpected names are given, and the network is as it was.

    """
    wanted = {name: value for name, value in network.state_dict().items() if not name.endswith(_WITHOUT_EFFECT)}
    own = {name for name in wanted if not name.startswith(tuple(head))} if head else set(wanted)
    found = [
        (_score(state, prefix, wanted, own), entry, prefix, state) for entry, state, prefix in _places(weights, own)
    ]
    if not found:
        raise LitBumpError(f"{source} holds no tensors by name: it is no state dict, nor a checkpoint with one")
    # Most matched first; then what is no attacker's copy, and what is nearest to the surface.
    _, entry, prefix, state = max(
        found, key=lambda it: (it[0], "attacker" not in it[2], -it[1].count("/"), -len(it[2]))
    )
    fits = {name for name, value in wanted.items() if _fits(state, prefix + name, value)}
    missing = tuple(sorted(own - fits))
    known = {prefix + name for name in network.state_dict()}
    unexpected = tuple(name for name, value in state.items() if isinstance(value, Tensor) and name not in known)
    n_matched = len(own & fits)
    if n_matched < least * len(own):
        described = [_described(state, prefix, name, wanted[name]) for name in missing[:3]]
        raise LitBumpError(
            f"{source} fits only {n_matched} of {len(own)} tensors of this {type(network).__name__}: "
            f"missing {', '.join(described)}; unexpected {', '.join(unexpected[:3]) or 'none'} (another architecture?)"
        )
    with torch.no_grad():
        state_of = network.state_dict(keep_vars=True)
        for name in sorted(fits):
            state_of[name].copy_(state[prefix + name])
    other = sorted(set(wanted) - own - fits)
    text = f"head not loaded ({', '.join(other)}), which the features do not need" if other else ""
    return Match(n_matched, len(own), entry, prefix, missing, unexpected, text)


def _places(weights: dict[str, Any], names: set[str]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield every dict of tensors with every prefix under which it holds one of the names."""
    for entry, state in _states(weights, "", 0):
        prefixes = Counter(
            key[: -len(end)] for key in state if isinstance(key, str) for end in _ends(key) if end in names
        )
        yield from ((entry, state, prefix) for prefix, _ in prefixes.most_common(20))
        if not prefixes:
            yield entry, state, ""


def _ends(key: str) -> Iterator[str]:
    """Yield a name, and it without its first part, without its first two, and so on."""
    parts = key.split(".")
    yield from (".".join(parts[i:]) for i in range(len(parts)))


def _states(weights: dict[str, Any], entry: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if any(isinstance(value, Tensor) for value in weights.values()):
        yield entry, weights
    if depth < _DEEPEST:
        for key, value in weights.items():
            if isinstance(value, dict) and isinstance(key, str):
                yield from _states(value, f"{entry}/{key}" if entry else key, depth + 1)


def _score(state: dict[str, Any], prefix: str, wanted: dict[str, Tensor], own: set[str]) -> int:
    return sum(_fits(state, prefix + name, wanted[name]) for name in own)


def _fits(state: dict[str, Any], name: str, value: Tensor) -> bool:
    found = state.get(name)
    return isinstance(found, Tensor) and found.shape == value.shape


def _described(state: dict[str, Any], prefix: str, name: str, value: Tensor) -> str:
    found = state.get(prefix + name)
    if isinstance(found, Tensor):
        return f"{name} (shape {tuple(found.shape)}, not {tuple(value.shape)})"
    return name
