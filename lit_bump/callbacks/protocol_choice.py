"""Which protocol a probe set is measured by: a preset that follows the size of its images, with some fields replaced.

Paper: A.2 "Protocol" (the ladder is shifted to match in per-pixel amplitude). Imports ``measure`` alone.
A dict replaces fields of ``quick``; with ``preset: paper`` it replaces fields of the paper's.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal

from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure import Protocol

ProtocolChoice = dict[str, Any] | Literal["paper", "quick", "accurate"] | Protocol | None  # dict first, for configs
_PRESETS = {"paper": Protocol.paper, "quick": Protocol.quick, "accurate": Protocol.accurate}


MATCHED_PAIRS = 16  # of estimator "matched" where none are given


def chosen_protocol(choice: ProtocolChoice, input_size: tuple[int, int, int]) -> Protocol:
    """Return the protocol for images of one size.

    Args:
        choice: a protocol, which is taken as it is; the name of a preset; fields that replace those of a preset
            (``{"target_se": 0.02}``, ``{"preset": "paper", "seed": 1}``); None for ``quick``.
        input_size: channels, height and width.

    Returns:
        The protocol, its ladder that of the input size unless ``etas`` are given.

    Raises:
        LitBumpError: if a preset or a field does not exist, or a value is out of range.

    Example:
        >>> chosen_protocol({"estimator": "matched", "n_pairs": 4}, (3, 32, 32)).n_jvp
        4

    """
    if isinstance(choice, Protocol):
        return choice
    changes = dict(choice) if isinstance(choice, dict) else {}
    preset = changes.pop("preset", "quick") if not isinstance(choice, str) else choice
    if preset not in _PRESETS:
        raise LitBumpError(f"there is no protocol {preset!r}{nearest(str(preset), _PRESETS)}")
    protocol = _PRESETS[preset](input_size)
    names = [field.name for field in fields(Protocol)]
    for name in changes:
        if name not in names:
            raise LitBumpError(f"a protocol has no {name!r}{nearest(name, [*names, 'preset'])}")
    if "etas" in changes:
        changes["etas"] = tuple(changes["etas"])
    estimator = changes.get("estimator", protocol.estimator)
    if estimator != "controlled" and protocol.estimator == "controlled":
        changes = {"target_se": None, "precision": "float32", **changes}
    most = MATCHED_PAIRS if protocol.estimator == "controlled" else protocol.n_pairs
    if estimator == "matched":  # one number of directions: either name gives both
        either = changes.get("n_pairs", changes.get("n_jvp", min(most, protocol.n_jvp)))
        changes = {"n_pairs": either, "n_jvp": either, **changes}
    elif estimator == "paper" and "n_pairs" in changes and "n_jvp" not in changes:
        changes["n_jvp"] = min(protocol.n_jvp, changes["n_pairs"])
    return replace(protocol, **changes)


def rehearsal_protocol(protocol: Protocol) -> Protocol:
    """Return the cheapest protocol that still runs every part of the measurement, for a fast development run.

    Args:
        protocol: the real one.

    Returns:
        The same ladder and estimator with two pairs.

    """
    few = {name: min(2, getattr(protocol, name)) for name in ("n_pairs", "n_jvp", "n_pilot", "n_sketch")}
    return replace(protocol, **few, n_noise=1)
