"""Arrays from an ``.npz`` file of unknown origin: no pickle is opened, none takes more memory than the file has bytes.

Not in the paper. Needs NumPy alone. ``np.load`` believes a header that claims any size, and unpacks compressed members
of any; what ``np.savez`` writes is as long as it says.
"""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np


def stored_arrays(path: str | os.PathLike[str] | io.BytesIO) -> dict[str, np.ndarray]:
    """Return the arrays of a file that ``np.savez`` wrote.

    Args:
        path: the file, or its bytes.

    Returns:
        Arrays by name.

    Raises:
        ValueError: if it is no whole file of this kind, holds objects, is compressed, or an array's header claims
            another size than it has; the message is one line without the path.

    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of headers that it reads by a guess
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                size = path.getbuffer().nbytes if isinstance(path, io.BytesIO) else Path(path).stat().st_size
                if sum(member.file_size for member in members) > size:
                    raise ValueError("it is compressed, which no file of this kind is")
                return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except zipfile.BadZipFile as error:
        raise ValueError("it is no whole .npz file") from error
    except Exception as error:  # junk makes the two readers raise anything
        cause = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(cause[:200]) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        if dtype.hasobject:
            raise ValueError(f"{member.filename[:80]!r} holds objects, not numbers")
        if any(extent < 0 for extent in shape) or math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
            raise ValueError(f"{member.filename[:80]!r} is of another size than its header says")
    if math.prod(shape) > member.file_size:  # of items without any byte
        raise ValueError(f"{member.filename[:80]!r} holds nothing, many times")
    with archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
