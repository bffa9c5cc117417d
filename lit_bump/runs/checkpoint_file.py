"""A checkpoint as a plain dict, read without running anything that it may hold.

Needs torch alone. Tensors are mapped, not read, so that asking a big file for its step costs nothing. A file that holds
more than tensors and plain values is refused: it could run code.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from lit_bump.errors import LitBumpError

SUFFIX = ".ckpt"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return what a Lightning checkpoint holds.

    Args:
        path: the file.

    Returns:
        Its entries, tensors on the CPU; ``state_dict`` and ``global_step`` are among them.

    Raises:
        LitBumpError: if it is no whole checkpoint of a training run, or holds more than tensors and plain values.

    """
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path) or None)
    except Exception as error:  # junk makes the unpickler raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split('. ')[0].split())}".rstrip(": ")
        if "Unsupported global" in str(error):
            reason = "it holds more than tensors and plain values; save it with plain hyperparameters"
        raise LitBumpError(f"checkpoint {path} cannot be read ({reason})") from error
    if not isinstance(loaded, dict) or not {"state_dict", "global_step"} <= loaded.keys():
        raise LitBumpError(f"{path} is no checkpoint of a training run: give a .ckpt file that Lightning saved")
    return loaded
