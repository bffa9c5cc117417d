"""What a user should hear of the file given as ``--ckpt_path``: that it is no checkpoint, or one of another network.

Imports torch alone. A file is opened as Lightning opens it, but its tensors are mapped, not read, so that a big one
costs nothing. What is no file (``best``, ``last``, a folder, an address) is left to Lightning.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import torch

from lit_bump.errors import LitBumpError

_MISFIT = re.compile(r"Error\(s\) in loading state_dict for (\w+):\s*(.+)", re.DOTALL)


def check_checkpoint(path: str | Path | None, *, weights_only: bool | None) -> int | None:
    """Refuse a file that Lightning could not take up.

    Args:
        path: as given on the command line; nothing is checked where it names no file.
        weights_only: as given to the Trainer; torch's own choice, the safe one, where it is None.

    Returns:
        The optimiser step of the checkpoint; None where nothing was checked.

    Raises:
        LitBumpError: if the file cannot be read as a checkpoint of Lightning's.

    """
    if path is None or not Path(path).is_file():
        return None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=weights_only, mmap=zipfile.is_zipfile(path) or None)
    except Exception as error:  # junk makes the unpickler raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split('. ')[0].split())}".rstrip(": ")
        if "Unsupported global" in str(error):  # a sound file that holds more than tensors and plain values
            reason += "; if you trust the file, give --weights_only false"
        raise LitBumpError(f"ckpt_path {str(path)!r} cannot be read as a checkpoint ({reason})") from error
    if not isinstance(loaded, dict) or not {"state_dict", "pytorch-lightning_version"} <= loaded.keys():
        raise LitBumpError(f"ckpt_path {str(path)!r} is no checkpoint of a training run: give a .ckpt file of one")
    step: int | None = loaded.get("global_step")
    return step


def checkpoint_misfit(message: str) -> str:
    """Say in one line that a checkpoint is of another network, where torch says so tensor by tensor.

    Args:
        message: of a RuntimeError.

    Returns:
        The first difference and the cure; empty where the error is another one.

    """
    match = _MISFIT.match(message)
    if match is None:
        return ""
    first = " ".join(match[2].split("\n")[0].split()).rstrip(". ")
    first = first if len(first) <= 200 else f"{first[:200]} ..."
    cure = "give the model's options with which it was trained, such as --config of its run"
    return f"the checkpoint of --ckpt_path does not fit this {match[1]}: {first}; {cure}"
