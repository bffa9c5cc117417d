"""A checkpoint as a plain dict, read without running anything that it may hold.

Needs torch alone. Tensors are mapped, not read, so that asking a big file for its step costs nothing. A file that holds
more than tensors and plain values is refused: it could run code.
"""

from __future__ import annotations

import warnings
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
        is_zip = zipfile.is_zipfile(path)
        if is_zip:
            refuse_packed(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old forms of tensors
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip or None)
    except Exception as error:  # junk makes the unpickler raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split('. ')[0].split())}".rstrip(": ")
        if "Unsupported global" in str(error):
            reason = "it holds more than tensors and plain values; save it with plain hyperparameters"
        raise LitBumpError(f"checkpoint {path} cannot be read ({reason[:300]}): copy or save it again") from error
    if not isinstance(loaded, dict) or not {"state_dict", "global_step"} <= loaded.keys():
        raise LitBumpError(f"{path} is no checkpoint of a training run: give a .ckpt file that Lightning saved")
    return loaded


def refuse_packed(path: Path) -> None:
    """Refuse an archive that unpacks to more than its own size: torch stores, and a small file could fill the memory.

    Args:
        path: a zip file.

    Raises:
        LitBumpError: if its entries are compressed, or lie over each other.

    """
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > path.stat().st_size:
        raise LitBumpError(f"{str(path)!r} is compressed, which torch never does: save it again with torch.save")
