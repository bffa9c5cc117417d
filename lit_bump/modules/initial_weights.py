"""Weights to start from: those of a trained checkpoint, for fine-tuning.

Paper: fig. 2a (adversarially trained networks). Needs torch. Only the network is taken, by name and strictly: no
optimizer, no step count, no metric. A file is read with ``weights_only``, so that it can run nothing.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from lit_bump.errors import LitBumpError, nearest

PREFIX = "network."  # of a ClassifierModule's network in its checkpoint


def load_network(network: nn.Module, path: str | Path) -> None:
    """Load the network of a ``ClassifierModule`` checkpoint into another of the same architecture.

    Args:
        network: changed in place.
        path: a ``.ckpt`` file.

    Raises:
        LitBumpError: if the file is missing or no such checkpoint, or its network is another one.

    """
    path = Path(path)
    if not path.is_file():
        beside = [file.name for file in path.parent.glob("*.ckpt")] if path.parent.is_dir() else []
        raise LitBumpError(f"init_from {str(path)!r} is no file{nearest(path.name, beside) if beside else ''}")
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        weights = {
            name[len(PREFIX) :]: tensor for name, tensor in loaded["state_dict"].items() if name.startswith(PREFIX)
        }
    except Exception as error:  # junk makes the unpickler raise anything
        cause = " ".join(str(error).split())[:120] or type(error).__name__
        raise LitBumpError(f"init_from {str(path)!r} is no checkpoint of a ClassifierModule ({cause})") from error
    own = network.state_dict()
    misfit = [name for name in own if name not in weights or weights[name].shape != own[name].shape]
    unknown = [name for name in weights if name not in own]
    if misfit or unknown:
        name = [*misfit, *unknown][0]
        there = f"has shape {tuple(weights[name].shape)} there" if name in weights else "is not there"
        here = f"{tuple(own[name].shape)} here" if name in own else "nothing here"
        cure = "give the network, width and num_classes with which it was trained"
        raise LitBumpError(f"init_from {str(path)!r} is of another network: {name} {there}, {here}; {cure}")
    network.load_state_dict(weights)
