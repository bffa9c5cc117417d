"""The original CIFAR-10 files, five training batches and a test batch, read without running what a pickle may hold.

Paper: A.2 "Training" (CIFAR-10; Krizhevsky 2009). Needs NumPy; torchvision is asked for the checksums alone.
A pickle can name any function; here only a NumPy array of bytes is allowed. The archive is read member by member and
never unpacked, so no path in it is ever followed.
"""

from __future__ import annotations

import hashlib
import io
import pickle  # read through the restricted reader below only
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lit_bump.errors import LitBumpError

Arrays = dict[str, npt.NDArray[Any]]  # train_images, train_labels, test_images, test_labels

BATCHES_FOLDER = "cifar-10-batches-py"
ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}
_CURE = "delete it and give --data.download true, or copy it again"
_WRONG = f"is cut short or changed: its MD5 is wrong; {_CURE}"


def read_batches_folder(folder: Path) -> Arrays:
    """Read the six extracted files.

    Args:
        folder: ``cifar-10-batches-py``.

    Returns:
        Images, uint8 (image, channel, height, width), and labels of both splits.

    Raises:
        LitBumpError: if a file is missing, or is not the published one.

    """

    def content(name: str) -> bytes:
        path = folder / name
        if not path.is_file():
            raise LitBumpError(f"CIFAR-10 in {str(folder)!r} is incomplete: {name} is missing; {_CURE}")
        try:
            return path.read_bytes()
        except OSError as error:
            raise LitBumpError(f"cannot read {str(path)!r}: {error.strerror}") from error

    return _arrays(content, str(folder))


def read_archive(path: Path) -> Arrays:
    """Read the six files out of the published archive.

    Args:
        path: ``cifar-10-python.tar.gz``.

    Returns:
        Images, uint8 (image, channel, height, width), and labels of both splits.

    Raises:
        LitBumpError: if the archive is not the published one: cut short, or changed.

    """
    archive_md5, _ = _checksums()
    try:
        packed = path.read_bytes()
        if _md5(packed) != archive_md5:
            raise LitBumpError(f"{str(path)!r} ({len(packed)} bytes) {_WRONG}")
        wanted = {f"{BATCHES_FOLDER}/{name}" for names in BATCHES.values() for name in names}
        members: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.name in wanted and member.isfile() else None
                if file is not None:
                    members[member.name.rpartition("/")[2]] = file.read()
        return _arrays(members.__getitem__, str(path))
    except (OSError, EOFError, KeyError, tarfile.TarError, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise LitBumpError(f"cannot read the archive {str(path)!r} ({reason}); {_CURE}") from error


def _arrays(content: Callable[[str], bytes], where: str) -> Arrays:
    """Verify and decode the batches.

    Args:
        content: gives the bytes of a batch by its name.
        where: the folder or archive, for messages.

    Returns:
        Images and labels of both splits.

    Raises:
        LitBumpError: if a checksum is wrong.

    """
    _, checksums = _checksums()
    arrays: Arrays = {}
    for split, names in BATCHES.items():
        batches = []
        for name in names:
            packed = content(name)
            if _md5(packed) != checksums[name]:
                raise LitBumpError(f"{name} in {where!r} ({len(packed)} bytes) {_WRONG}")
            batches.append(read_batch(packed, f"{name} in {where!r}"))
        arrays[f"{split}_images"] = np.concatenate([images for images, _ in batches])
        arrays[f"{split}_labels"] = np.concatenate([labels for _, labels in batches])
    return arrays


def read_batch(packed: bytes, where: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Decode one batch.

    Args:
        packed: content of the file, a pickle of Python 2.
        where: what to call it in messages.

    Returns:
        Images, axes (image, channel, height, width), and labels.

    Raises:
        LitBumpError: if it holds anything but a CIFAR-10 batch.

    """
    try:
        batch = _ArrayUnpickler(io.BytesIO(packed), encoding="bytes").load()
        images = batch.get(b"data", batch.get("data"))
        labels = np.asarray(batch.get(b"labels", batch.get("labels")), dtype=np.int64)
    except Exception as error:  # a broken pickle can raise nearly anything
        reason = " ".join(str(error).split())
        raise LitBumpError(f"{where} is not a CIFAR-10 batch: {reason}") from error
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape != (len(labels), 3072):
        raise LitBumpError(f"{where} is not a CIFAR-10 batch: its data are not {len(labels)} images of 3072 bytes")
    if len(labels) and not 0 <= labels.min() <= labels.max() <= 9:
        raise LitBumpError(f"{where} is not a CIFAR-10 batch: its labels run from {labels.min()} to {labels.max()}")
    return images.reshape(-1, 3, 32, 32), labels


class _ArrayUnpickler(pickle.Unpickler):  # noqa: S301  # find_class refuses all but byte arrays
    """Read dictionaries, lists, numbers, strings and byte arrays, and refuse every other name."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for one of the four names that a pickled array needs.

        Args:
            module: where the pickle says that the name is.
            name: the name.

        Returns:
            A function that can do no harm.

        Raises:
            UnpicklingError: if it is another name.

        """
        allowed: dict[tuple[str, str], Any] = {
            ("numpy.core.multiarray", "_reconstruct"): _empty_array,
            ("numpy._core.multiarray", "_reconstruct"): _empty_array,
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): _byte_type,
            ("_codecs", "encode"): _encoded,
        }
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no image batch needs")
        return allowed[module, name]


def _empty_array(kind: type, shape: tuple[int, ...], code: bytes | str) -> npt.NDArray[np.uint8]:
    return np.ndarray(shape, dtype=np.uint8)


def _byte_type(code: bytes | str, *flags: int) -> np.dtype[np.uint8]:
    """Make the type of a byte array; NumPy 2.4 warns about the whole-number flags in old pickles, so drop them.

    Args:
        code: ``u1``.
        flags: align and copy.

    Returns:
        A copy of the type, which the pickle then fills.

    Raises:
        UnpicklingError: if it is another type.

    """
    if code not in (b"u1", "u1", b"|u1", "|u1"):
        raise pickle.UnpicklingError(f"its array has the type {code!r}, not bytes")
    return np.dtype("u1", align=False, copy=True)


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode("latin1")


def _checksums() -> tuple[str, dict[str, str]]:
    from torchvision.datasets import CIFAR10

    return CIFAR10.tgz_md5, dict([*CIFAR10.train_list, *CIFAR10.test_list])


def _md5(packed: bytes) -> str:
    return hashlib.md5(packed, usedforsecurity=False).hexdigest()
