"""CIFAR-10 from any local copy: found, verified, decoded once, and kept as one array file for the next start.

Paper: A.2 "Training". Needs torch, NumPy, Pillow and filelock; torchvision for checksums and download.
Nothing is fetched unless ``download`` says so. Any number of processes may start at once on a cold folder: one decodes
under a lock, the others wait, and the array file appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Int64, UInt8
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.images.cifar10_batches import (
    ARCHIVE,
    BATCHES,
    BATCHES_FOLDER,
    Arrays,
    read_archive,
    read_batches_folder,
)
from lit_bump.images.cifar10_folder import class_files, class_folder_problem, read_image_folder

_SUBFOLDERS = ("", "cifar10", "CIFAR10", "cifar-10", "CIFAR-10", "cifar_10")
_CACHE_NAME = "lit_bump-cifar10.npz"
_CACHE_FORMAT = "lit_bump CIFAR-10 arrays, format 1"
_EXPECTED = f"{BATCHES_FOLDER}/, {ARCHIVE}, or train/<class>/ and test/<class>/ with PNG or JPEG files"


class CIFAR10NotFoundError(LitBumpError, FileNotFoundError):
    """Signal that a folder holds no form of CIFAR-10."""


@dataclass(frozen=True)
class _Source:
    """A local copy: the published files (extracted, archive or both), or an image folder, in ``home``."""

    home: Path
    kind: Literal["published", "folder"]

    def signature(self) -> str:
        """Return a hash of names, sizes and times, which changes when a file does.

        Returns:
            SHA-256 in hexadecimal.

        """
        digest = hashlib.sha256(f"{_CACHE_FORMAT}\n{self.kind}\n".encode())
        if self.kind == "published":
            names = [ARCHIVE, *(f"{BATCHES_FOLDER}/{name}" for names in BATCHES.values() for name in names)]
            _add_files(digest, [(name, (self.home / name).stat()) for name in names if (self.home / name).is_file()])
        else:
            for split, name, files in class_files(self.home):
                digest.update(f"{split}/{name}\n".encode())
                _add_files(digest, [(entry.name, entry.stat()) for entry in files])
        return digest.hexdigest()

    def read(self) -> Arrays:
        """Decode both splits; of two published forms the archive is read where the extracted one is damaged.

        Returns:
            Images and labels.

        Raises:
            LitBumpError: if it is damaged.

        """
        if self.kind == "folder":
            return read_image_folder(self.home)
        archive = self.home / ARCHIVE
        try:
            if (self.home / BATCHES_FOLDER).is_dir():
                return read_batches_folder(self.home / BATCHES_FOLDER)
        except LitBumpError:
            if not archive.is_file():
                raise
        return read_archive(archive)


def _add_files(digest: hashlib._Hash, stats: list[tuple[str, os.stat_result]]) -> None:
    for name, stat in stats:
        digest.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())


def load_cifar10(
    data_dir: str | Path, split: Literal["train", "test"], *, download: bool = False
) -> tuple[UInt8[Tensor, "image 3 32 32"], Int64[Tensor, " image"]]:
    """Return all images and labels of a split of CIFAR-10.

    ``data_dir``, or a folder ``cifar10`` in it, holds the extracted ``cifar-10-batches-py``, the archive
    ``cifar-10-python.tar.gz``, or an image folder. The first start decodes it into one array file beside it (in the
    user's cache folder where that is not writable); later starts read that file, until the source changes.

    Args:
        data_dir: where to look.
        split: ``"train"`` or ``"test"``.
        download: fetch the published archive with torchvision where there is no copy, or a damaged one.

    Returns:
        uint8 images, axes (image, channel, height, width), and labels in the alphabetical order of the classes.

    Raises:
        CIFAR10NotFoundError: if there is no copy and ``download`` is false.
        LitBumpError: if the copy is damaged, is not CIFAR-10, or could not be fetched.

    """
    if split not in ("train", "test"):
        raise LitBumpError(f"split={split!r} of CIFAR-10: give 'train' or 'test'")
    folder = Path(data_dir).expanduser()
    source = _find(folder)
    if source is None:
        if not download:
            raise CIFAR10NotFoundError(_not_found(folder))
        source = _download(folder)
    try:
        arrays = _cached_arrays(source, split)
    except LitBumpError:
        if not download or source.kind != "published":
            raise
        arrays = _cached_arrays(_download(folder, again=True), split)
    return torch.from_numpy(arrays[f"{split}_images"]), torch.from_numpy(arrays[f"{split}_labels"])


def _find(folder: Path) -> _Source | None:
    """Look for a copy.

    Args:
        folder: the user's ``data_dir``; may also be the extracted folder or the archive itself.

    Returns:
        The copy, or None.

    Raises:
        LitBumpError: if there is an image folder whose classes are not CIFAR-10's.

    """
    if folder.name in (ARCHIVE, BATCHES_FOLDER) and folder.exists():
        return _Source(folder.parent, "published")
    homes = [folder / name for name in _SUBFOLDERS if (folder / name).is_dir()]
    for home in homes:
        if (home / BATCHES_FOLDER).is_dir() or (home / ARCHIVE).is_file():
            return _Source(home, "published")
    problems = {home: class_folder_problem(home) for home in homes if _has_split(home)}
    for home, problem in problems.items():
        if problem is None:
            return _Source(home, "folder")
    for home, problem in problems.items():
        raise LitBumpError(f"{str(home)!r} is no image folder of CIFAR-10: {problem}")
    return None


def _has_split(home: Path) -> bool:
    return (home / "train").is_dir() or (home / "test").is_dir()


def _not_found(folder: Path) -> str:
    if not folder.exists():
        found = "there is no such folder"
    elif not folder.is_dir():
        found = "it is a file"
    else:
        names = sorted(entry.name for entry in folder.iterdir())
        found = f"found {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}" if names else "it is empty"
    cure = "set data_dir to the right folder, or fetch it with --data.download true"
    return f"no CIFAR-10 in {str(folder)!r} ({found}): expected {_EXPECTED}; {cure}"


def _download(folder: Path, *, again: bool = False) -> _Source:
    """Fetch the published archive with torchvision, once, however many processes ask for it.

    Args:
        folder: where to put it.
        again: there is a copy, but a damaged one.

    Returns:
        The copy.

    Raises:
        LitBumpError: if it could not be fetched or written.

    """
    from torchvision.datasets import CIFAR10

    if folder.name in (ARCHIVE, BATCHES_FOLDER):
        folder = folder.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{_CACHE_NAME}.lock"):
            source = None if again else _find(folder)
            if source is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torchvision's own reading of the old pickles warns in NumPy 2.4
                    CIFAR10(str(folder), download=True)
                source = _Source(folder, "published")
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise LitBumpError(f"could not download CIFAR-10 to {str(folder)!r}: {reason}") from error
    return source


def _cached_arrays(source: _Source, split: str) -> Arrays:
    """Return the arrays of a split from the array file, which is made first where it is missing or out of date.

    Args:
        source: a local copy.
        split: ``"train"`` or ``"test"``.

    Returns:
        At least the images and labels of the split.

    Raises:
        LitBumpError: if the copy is damaged.

    """
    signature = source.signature()
    places = _cache_places(source)
    for place in places:
        arrays = _read_cache(place, signature, split)
        if arrays is not None:
            return arrays
    for place in places:
        if not _can_write(place.parent):
            continue
        try:
            with FileLock(f"{place}.lock"):
                arrays = _read_cache(place, signature, split)  # another process may have made it meanwhile
                if arrays is None:
                    arrays = source.read()
                    _write_cache(place, signature, arrays)
                return arrays
        except LitBumpError:
            raise
        except OSError:  # a full disk, or a file system without locks: the next place, or none
            continue
    warnings.warn(f"no writable place for the arrays of {str(source.home)!r}: decoded anew each time", stacklevel=3)
    return source.read()


def _cache_places(source: _Source) -> list[Path]:
    home = source.home.resolve()
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "lit_bump"
    return [home / _CACHE_NAME, user / f"cifar10-{hashlib.sha256(str(home).encode()).hexdigest()[:16]}.npz"]


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _read_cache(place: Path, signature: str, split: str) -> Arrays | None:
    """Read the arrays of a split.

    Args:
        place: the array file.
        signature: of the source as it is now.
        split: ``"train"`` or ``"test"``.

    Returns:
        The arrays, or None where there is no such file, it is damaged, or the source has changed.

    """
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if str(stored["signature"]) != signature:
                return None
            arrays = {name: stored[name] for name in (f"{split}_images", f"{split}_labels")}
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error):
        return None
    return arrays


def _write_cache(place: Path, signature: str, arrays: Arrays) -> None:
    """Write the array file under another name and give it its name when it is whole.

    Args:
        place: the array file.
        signature: of the source.
        arrays: images and labels of both splits.

    """
    for left_over in place.parent.glob(f"{place.name}.*.part"):  # of a process that was killed; we hold the lock
        left_over.unlink(missing_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f"{place.name}.", suffix=".part", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, signature=np.array(signature), **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(place)
    finally:
        Path(temporary).unlink(missing_ok=True)  # there only after an error or an interrupt
