"""Encoders that a function of the user's returns.

Not in the paper. The function is imported because the user names it. Normalisation is folded in only where the function
gives it, and never a second time.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork
from lit_bump.encoders.normalisation_inside import normalisation_inside
from lit_bump.encoders.preprocessing import Preprocessing
from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure import as_encoder

_KEYS = ("mean", "std", "size", "resize", "interpolation")


def load_imported(spec: EncoderSpec) -> LoadedNetwork:
    """Call a function for an encoder.

    Args:
        spec: ``import:package.function``. The function returns a module or callable that takes images in [0, 1] pixels,
            or a pair of one that takes normalised images and a dict of ``mean``, ``std`` and, where wanted, ``size``,
            ``resize`` and ``interpolation``.

    Returns:
        The encoder.

    Raises:
        LitBumpError: if the function cannot be imported or called, it returns something else, or the encoder would be
            normalised twice or clamps its input.

    """
    made = _called(spec.name)
    encoder, described = made if isinstance(made, tuple) and len(made) == 2 else (made, {})
    if not callable(encoder) or not isinstance(described, Mapping):
        kind = type(made).__name__
        raise LitBumpError(f"{spec} returned {kind}: return a module, or (module, dict of mean, std and size)")
    for key in described:
        if key not in _KEYS:
            raise LitBumpError(f"{spec} returned an unknown entry {key!r}{nearest(str(key), _KEYS)}")
    network: nn.Module = as_encoder(encoder)
    for name, part in network.named_modules():
        if type(part).__name__ == "AttackerModel":
            raise LitBumpError(
                f"{spec} returned an AttackerModel{f' ({name})' if name else ''}, which clamps its input to [0, 1]: "
                "return (attacker.model, {'mean': ..., 'std': ...})"
            )
    mean: Any = described.get("mean")
    std: Any = described.get("std")
    if (mean is None) != (std is None):
        raise LitBumpError(f"{spec} returned one of mean and std: give both, or none")
    inside = normalisation_inside(network)
    if inside and mean is not None:
        raise LitBumpError(f"{spec} returned mean and std, but the module normalises already, in {inside}: give one")
    side = spec.size or int(described.get("size", 224))
    resize = int(described.get("resize", side))
    chosen = f"folded in: mean {tuple(mean)}, std {tuple(std)}" if mean is not None else ""
    chosen = chosen or (f"inside, in {inside}" if inside else "none given and none found: taken to be inside")
    return LoadedNetwork(
        network.eval(), network, "output of the module",
        Preprocessing(resize, (side, side), described.get("interpolation", "bilinear")),
        None if mean is None else tuple(map(float, mean)), None if std is None else tuple(map(float, std)),
        f"function {spec.name}", spec.name.rsplit(".", 1)[-1], (f"normalisation {chosen}",),
        {"code_digest": _code_digest(spec.name)},
    )  # fmt: skip


def _code_digest(path: str) -> str:
    """Return SHA-256 of the file that holds the function; empty where there is no file."""
    file = getattr(sys.modules.get(path.rpartition(".")[0]), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""


def _called(path: str) -> Any:
    module, _, name = path.rpartition(".")
    if not module:
        raise LitBumpError(f"import:{path} names no module: write import:package.function")
    folder = str(Path.cwd())
    added = folder not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, folder)  # as `python -m` has it: functions of the folder that one works in
    try:
        return getattr(importlib.import_module(module), name)()
    except LitBumpError:
        raise
    except Exception as error:  # whatever the user's code raises
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise LitBumpError(f"import:{path} cannot be called ({reason})") from error
    finally:
        if added:
            sys.path.remove(folder)
