"""An image set: a named, fixed collection of photographs, before any encoder's preprocessing.

Paper: A.2 "Evaluation sets". Needs torch, torchvision and Pillow. Encoders differ in how they resize and crop, so the
set is kept as files, and becomes a probe set for one encoder at a time. Every file is read once when the set is made:
what cannot be read is known, and counted, before anything is measured.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.images.gaussian_blur import gaussian_blur
from lit_bump.images.image_files import read_image, read_image_and_kind
from lit_bump.probes.probe_set import NAME, ProbeSet, drawn_items, raw_pixels

MOST_UNREADABLE = 0.1  # share of the files of a set
BLUR_SIDE = 512  # shorter side in pixels at which a set is blurred (paper: "sigma = 2 at 512 px before the resize")


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """Hold the images of a set, as files or as pixels.

    Args:
        name: names files and columns: 1 to 64 letters, digits, ``_``, ``.`` or ``-``.
        names: of the images, for tables: a file's path below the folder of the set, or ``item 7``.
        digests: SHA-256 of each file's bytes, or of the pixels of what is no file.
        items: a path, or pixels in [0, 1] with axes (channel, height, width), an image.
        source: where they come from, for people.
        blur_sigma: of the Gaussian blur, in pixels once the shorter side has 512; None for none.
        notes: what was converted or left out.

    """

    name: str
    names: tuple[str, ...]
    digests: tuple[str, ...]
    items: tuple[Any, ...]
    source: str
    blur_sigma: float | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of images.

        Returns:
            At least 1.

        """
        return len(self.items)

    def __repr__(self) -> str:
        """Show name, size, source and digest in one line.

        Returns:
            Text for people.

        """
        return f"ImageSet({self.name}: {len(self)} images, {self.source}, {self.digest[:12]})"

    @property
    def digest(self) -> str:
        """SHA-256 over the images' digests and the blur: equal sets have equal ones, wherever the files lie."""
        return hashlib.sha256(repr((self.digests, self.blur_sigma)).encode()).hexdigest()

    @classmethod
    def from_files(cls, files: Sequence[Path], *, name: str, root: Path, source: str) -> ImageSet:
        """Make a set of image files, in their order.

        Args:
            files: the files.
            name: as for the class.
            root: folder that the images' names are relative to.
            source: as for the class.

        Returns:
            The set, without the files that cannot be read; ``notes`` names them and what was converted.

        Raises:
            LitBumpError: if more than a tenth of the files cannot be read, or there is none.

        """
        checked_name(name)
        kept, digests, kinds, failures = [], [], Counter[str](), []
        for file in files:
            try:
                data = file.read_bytes()
                _, kind = read_image_and_kind(file, data=data)
            except (LitBumpError, OSError) as error:
                failures.append(str(error))
                continue
            kept.append(file)
            digests.append(hashlib.sha256(data).hexdigest())
            kinds[kind] += 1
        if not kept or len(failures) > MOST_UNREADABLE * len(files):
            first = f"; {failures[0]}" if failures else ""
            raise LitBumpError(f"image set {name!r}: {len(failures)} of {len(files)} files cannot be read{first}")
        notes = [f"{n} of {len(kept)} images were {kind}, turned into RGB" for kind, n in sorted(kinds.items()) if kind]
        if failures:
            notes.append(f"{len(failures)} of {len(files)} files left out: {'; '.join(failures[:3])}")
        names = tuple(Path(os.path.relpath(file, root)).as_posix() for file in kept)
        return cls(name, names, tuple(digests), tuple(kept), source, notes=tuple(notes))

    @classmethod
    def from_pixels(cls, images: Sequence[Tensor], *, name: str, names: Sequence[str], source: str) -> ImageSet:
        """Make a set of images that are there already, of one size or several.

        Args:
            images: uint8, or floating point in [0, 1]; axes (channel, height, width).
            name: as for the class.
            names: of the images.
            source: as for the class.

        Returns:
            The set, with copies.

        Raises:
            LitBumpError: if there is none, or one is no image in [0, 1].

        """
        checked_name(name)
        if not images:
            raise LitBumpError(f"image set {name!r} holds no image")
        pixels = tuple(raw_pixels(image[None], name)[0] for image in images)
        digests = tuple(
            hashlib.sha256(str(image.shape).encode() + image.numpy().tobytes()).hexdigest() for image in pixels
        )
        return cls(name, tuple(names), digests, pixels, source)

    @classmethod
    def from_dataset(cls, dataset: Any, *, name: str, n_images: int = 64, seed: int = 0) -> ImageSet:
        """Draw images from a torch or Hugging Face data set, without replacement.

        Args:
            dataset: has a length; items as for ``ProbeSet.from_dataset``, of any size.
            name: as for the class.
            n_images: how many, at most the length.
            seed: of this draw alone.

        Returns:
            The set.

        Raises:
            LitBumpError: if there is no length or too few images, or an item holds no image.

        """
        chosen, items, source = drawn_items(dataset, n_images, seed, name)
        images = [_coloured(image) for image in items]
        return cls.from_pixels(images, name=name, names=[f"item {i}" for i in chosen], source=source)

    def blurred(self, sigma: float, *, name: str) -> ImageSet:
        """Return the same images, blurred before they are resized for an encoder.

        Args:
            sigma: of the Gaussian, in pixels once the shorter side has 512 (the paper: 2).
            name: of the new set.

        Returns:
            A set of the same files.

        """
        source = f"{self.source}, blur sigma {sigma:g} at {BLUR_SIDE} px (bilinear)"
        return replace(self, name=checked_name(name), blur_sigma=float(sigma), source=source)

    def prepared(self, preprocessing: Callable[[Tensor], Tensor]) -> ProbeSet:
        """Return the images as one encoder wants them.

        Args:
            preprocessing: takes pixels in [0, 1], axes (channel, height, width), of any size; returns them in the
                encoder's size.

        Returns:
            A probe set of the same name, the images in the same order.

        Raises:
            LitBumpError: if a file has changed since the set was made so that it cannot be read.

        """
        images = [preprocessing(self._pixels(item)) for item in self.items]
        return ProbeSet(self.name, torch.stack(images).float().clamp(0, 1), self.source)

    def _pixels(self, item: Any) -> Tensor:
        pixels = item if isinstance(item, Tensor) else read_image(item)
        if self.blur_sigma is None:
            return pixels
        from torchvision.transforms.v2 import functional  # slow to load, and seldom needed

        resized = functional.resize(pixels, [BLUR_SIDE], antialias=True).clamp(0, 1)
        return gaussian_blur(resized[None], self.blur_sigma)[0]


def checked_name(name: str) -> str:
    """Return the name of a set.

    Args:
        name: as the user gave it.

    Returns:
        The name.

    Raises:
        LitBumpError: if it could not name a file.

    """
    if not NAME.fullmatch(name):
        raise LitBumpError(f"image set name {name!r}: give 1 to 64 letters, digits, '_', '.' or '-'")
    return name


def name_of(path: Path) -> str:
    """Return a name for the images of a folder or file.

    Args:
        path: the folder or file.

    Returns:
        The last part of the path, other characters replaced.

    Example:
        >>> name_of(Path("photos/My cats!"))
        'My_cats'

    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", path.resolve().stem).strip("._")[:64] or "images"


def _coloured(image: Tensor) -> Tensor:
    """Return a grey image with three equal channels."""
    image = image[None] if image.ndim == 2 else image
    return image.expand(3, -1, -1).contiguous() if image.shape[0] == 1 else image
