"""CIFAR-10 as an image folder: train/<class>/ and test/<class>/ with one PNG or JPEG file an image.

Paper: A.2 "Training". Needs NumPy and Pillow. The ten class folders in alphabetical order are CIFAR-10's own class
order; a folder that lacks one or has another is refused, for its labels would be shifted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from lit_bump.errors import LitBumpError
from lit_bump.images.cifar10_batches import Arrays
from lit_bump.images.image_files import FORMATS, IMAGE_SUFFIXES, UNREADABLE

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SHAPE = (32, 32, 3)


def class_folder_problem(home: Path) -> str | None:
    """Say what keeps a folder from being CIFAR-10 as an image folder.

    Args:
        home: the folder that should hold ``train`` and ``test``.

    Returns:
        The problem in words, or None if the class folders are right.

    """
    for split in ("train", "test"):
        folder = home / split
        if not folder.is_dir():
            return f"{split}/ is missing"
        found = {entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")}
        missing, foreign = sorted(set(CIFAR10_CLASSES) - found), sorted(found - set(CIFAR10_CLASSES))
        if missing or foreign:
            lacks = f" lacks {', '.join(missing)}" if missing else ""
            has = f" has {', '.join(foreign[:5])}" if foreign else ""
            return f"{split}/{lacks}{' and' if lacks and has else ''}{has}; the class folders must be CIFAR-10's ten"
    return None


def class_files(home: Path) -> Iterator[tuple[str, str, list[os.DirEntry[str]]]]:
    """List the image files, a class folder at a time.

    Args:
        home: the folder that holds ``train`` and ``test``.

    Yields:
        Split, class and the entries of its folder, sorted by name.

    """
    for split in ("train", "test"):
        for name in CIFAR10_CLASSES:
            with os.scandir(home / split / name) as entries:
                images = [entry for entry in entries if entry.name.lower().endswith(IMAGE_SUFFIXES)]
            yield split, name, sorted((e for e in images if e.name[0] != "."), key=lambda entry: entry.name)


def read_image_folder(home: Path) -> Arrays:
    """Read all images of both splits.

    Args:
        home: the folder that holds ``train`` and ``test``.

    Returns:
        Images, uint8 (image, channel, height, width), and labels of both splits.

    Raises:
        LitBumpError: if a class has no image, or a file is not a readable image of 32 x 32.

    """
    arrays: Arrays = {}
    paths: dict[str, list[str]] = {"train": [], "test": []}
    labels: dict[str, list[int]] = {"train": [], "test": []}
    for split, name, files in class_files(home):
        if not files:
            raise LitBumpError(f"no PNG or JPEG image in {str(home / split / name)!r}: each class needs one at least")
        paths[split] += [entry.path for entry in files]
        labels[split] += [CIFAR10_CLASSES.index(name)] * len(files)
    for split in paths:
        images = np.empty((len(paths[split]), *_SHAPE), dtype=np.uint8)
        for i, path in enumerate(paths[split]):  # threads make it slower: most of the time goes to Pillow's own Python
            images[i] = _pixels(path)
        arrays[f"{split}_images"] = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        arrays[f"{split}_labels"] = np.array(labels[split], dtype=np.int64)
    return arrays


def _pixels(path: str) -> npt.NDArray[np.uint8]:
    try:
        with Image.open(path, formats=FORMATS) as image:
            pixels = np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise LitBumpError(f"cannot read image {path!r}: {reason}; copy it again") from error
    if pixels.shape != _SHAPE:
        height, width = pixels.shape[:2]
        raise LitBumpError(f"image {path!r} is {width} x {height}: CIFAR-10's are 32 x 32")
    return pixels
