"""A probe set: a named, seeded, hashed, fixed collection of images in raw [0, 1] pixels.

Paper: A.2 "Protocol" ("each evaluation set is a fixed collection of images"). Needs torch, NumPy and Pillow.
Images are raw: the encoder holds the normalisation, so that eta means the same for every encoder. Images that look
normalised, or that run to 255, are refused rather than measured.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from PIL import Image
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.images.image_files import image_files, image_pixels, read_image
from lit_bump.images.random_words import random_order
from lit_bump.measure.validation import PIXEL_SLACK

NAME = re.compile(r"(?!\.+\Z)[A-Za-z0-9_.-]{1,64}")  # safe as a folder and in a logged tag; not "." or ".."


@dataclass(frozen=True, eq=False, repr=False)
class ProbeSet:
    """A fixed set of images to measure; two sets are equal when name and pixels are.

    The images are copied on the way in, so nothing done to the source later shows here. Do not write into them.

    Args:
        name: names files and logged tags: 1 to 64 letters, digits, ``_``, ``.`` or ``-``.
        images: uint8, or floating point in [0, 1]; axes (image, channel, height, width), at least one image. They are
            kept as float32 in [0, 1] on the CPU.
        source: where they come from, for people.

    Attributes:
        digest: SHA-256 of shape and pixels; equal on every machine for equal images.

    Raises:
        LitBumpError: if the name or the images are not such; the message gives the range that was found.

    Example:
        >>> bytes_ = torch.arange(2 * 3 * 4 * 4, dtype=torch.uint8).reshape(2, 3, 4, 4)
        >>> ProbeSet("mine", bytes_) == ProbeSet("mine", bytes_ / 255)
        True

    """

    name: str
    images: Tensor  # float32, (image, channel, height, width) once made; bytes are accepted on the way in
    source: str = "tensor"
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Check the name and the images, and hash them.

        Raises:
            LitBumpError: if the name has other characters, or the images are not images in [0, 1].

        """
        if not NAME.fullmatch(self.name):
            raise LitBumpError(f"probe set name {self.name!r}: give 1 to 64 letters, digits, '_', '.' or '-'")
        with torch.inference_mode(False):  # a tensor born in inference mode could not be differentiated later
            images = raw_pixels(self.images.detach(), self.name)
        pixels = images.numpy().astype("<f4")
        digest = hashlib.sha256(repr(tuple(images.shape)).encode())
        digest.update(pixels.tobytes())
        object.__setattr__(self, "images", images)
        object.__setattr__(self, "digest", digest.hexdigest())

    @property
    def input_size(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def __len__(self) -> int:
        """Return the number of images.

        Returns:
            At least 1.

        """
        return len(self.images)

    def __eq__(self, other: object) -> bool:
        """Compare names and pixels.

        Args:
            other: anything.

        Returns:
            Whether it is a probe set of the same name and the same images.

        """
        return isinstance(other, ProbeSet) and (self.name, self.digest) == (other.name, other.digest)

    def __hash__(self) -> int:
        """Hash name and digest.

        Returns:
            The same number for equal sets.

        """
        return hash((self.name, self.digest))

    def __repr__(self) -> str:
        """Show name, size, source and digest in one line.

        Returns:
            Text for people.

        """
        size = "x".join(str(n) for n in self.input_size)
        return f"ProbeSet({self.name}: {len(self)} images {size}, {self.source}, {self.digest[:12]})"

    @classmethod
    def from_tensor(cls, images: Tensor, *, name: str) -> ProbeSet:
        """Make a probe set of images that are there already.

        Args:
            images: uint8 (divided by 255), or floating point in [0, 1]; axes (image, channel, height, width).
            name: as for the class.

        Returns:
            The set, with a copy of the images.

        Raises:
            LitBumpError: if the name or the images are not valid.

        """
        return cls(name, images)

    @classmethod
    def from_dataset(cls, dataset: Any, *, name: str, n_images: int = 32, seed: int = 0) -> ProbeSet:
        """Draw images from a torch data set, without replacement; the first k of n are the same for every n.

        Args:
            dataset: has a length; each item is an image, a tuple that starts with one, or a mapping with the key
                ``image``. An image is a tensor (channel, height, width), uint8 or in [0, 1], or a Pillow image.
            name: as for the class.
            n_images: how many, at most the length.
            seed: seed of this draw alone. A data set that augments at random uses its own randomness beside it.

        Returns:
            The set.

        Raises:
            LitBumpError: if there is no length or too few images, or an item holds no image.

        """
        _, images, source = drawn_items(dataset, n_images, seed, name)
        if len({(image.shape, image.dtype) for image in images}) > 1:
            kind = type(dataset).__name__
            raise LitBumpError(f"images of {kind} differ in size or type: make them alike in its transform")
        return cls(name, torch.stack(images), source)

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        *,
        name: str,
        n_images: int | None = None,
        seed: int = 0,
        size: int | tuple[int, int] | None = None,
    ) -> ProbeSet:
        """Read the image files of a folder and of the folders in it, as RGB in [0, 1].

        Grey images get three equal channels, transparent ones a white ground, 16-bit grey keeps its depth, and a
        photograph is turned as its EXIF entry says.

        Args:
            path: the folder.
            name: as for the class.
            n_images: how many to draw; all of them, in the order of their names, if not given.
            seed: seed of the draw alone.
            size: height and width, or one number for both: the middle of each image, resized. If not given, all must
                have one size.

        Returns:
            The set.

        Raises:
            LitBumpError: if there is no such folder or no image in it, too few, one that cannot be read, or two sizes.

        """
        files = image_files(Path(path))
        chosen = range(len(files)) if n_images is None else drawn_order(len(files), n_images, seed, f"folder {path}")
        images = [read_image(files[i], size) for i in chosen]
        for i, image in zip(chosen, images, strict=True):
            if image.shape != images[0].shape:
                sizes = " and ".join(f"{x.shape[1]}x{x.shape[2]}" for x in (images[0], image))
                raise LitBumpError(f"images differ in size, {sizes} ({str(files[i])!r}): give a size to resize them to")
        drawn = "" if n_images is None else f", {n_images} of {len(files)}, seed {seed}"
        return cls(name, torch.stack(images), f"folder {Path(path).name}{drawn}")


def drawn_items(dataset: Any, n_images: int, seed: int, name: str) -> tuple[list[int], list[Tensor], str]:
    """Draw images from a data set.

    Args:
        dataset: map-style.
        n_images: how many.
        seed: of this draw alone.
        name: of the set that they are for, for messages.

    Returns:
        Indices, images as the data set gives them, and where they come from in words.

    Raises:
        LitBumpError: if there is no length or too few images, or an item holds no image.

    """
    kind = type(dataset).__name__
    if not hasattr(dataset, "__len__"):
        raise LitBumpError(f"{kind} has no length to draw {name!r} from: give a map-style data set")
    chosen = drawn_order(len(dataset), n_images, seed, f"{kind} for {name!r}")
    source = f"{n_images} of {len(dataset)} images of {kind}, seed {seed}"
    return chosen, [item_image(dataset[i], i) for i in chosen], source


def drawn_order(n_total: int, n_images: int, seed: int, what: str) -> list[int]:
    """Return which of some images are taken: without replacement, the first k of n the same for every n.

    Args:
        n_total: how many there are.
        n_images: how many to take.
        seed: of this draw alone.
        what: what they are drawn from, for the message.

    Returns:
        Indices in the order drawn.

    Raises:
        LitBumpError: if there are too few.

    """
    if n_images < 1 or n_images > n_total:
        raise LitBumpError(f"n_images={n_images} from {what}: give 1 to {n_total}")
    return [int(i) for i in random_order(n_total, seed=seed, stream="probe images")[:n_images]]


def item_image(item: Any, index: int) -> Tensor:
    """Return the image of an item of a data set.

    Args:
        item: an image, a tuple that starts with one, or a mapping with the key ``image``.
        index: of the item, for the message.

    Returns:
        Axes (channel, height, width); uint8, or floating point as the data set gives it.

    Raises:
        LitBumpError: if it holds no image.

    """
    if isinstance(item, Mapping):
        if "image" not in item:
            keys = ", ".join(map(str, item)) or "nothing"
            raise LitBumpError(f"item {index} of the data set is a dict of {keys}, without 'image': give probes=")
        item = item["image"]
    elif isinstance(item, (tuple, list)) and len(item):
        item = item[0]
    if isinstance(item, Image.Image):
        return image_pixels(item)
    if not isinstance(item, Tensor):
        raise LitBumpError(f"item {index} of the data set holds {type(item).__name__}, not a tensor or a Pillow image")
    return item


def raw_pixels(images: Tensor, name: str) -> Float32[Tensor, "image channel height width"]:
    """Return a float32 copy on the CPU, after a check that these are raw images.

    Args:
        images: what the user gave.
        name: of the set, for the message.

    Returns:
        Images in [0, 1].

    Raises:
        LitBumpError: if shape, type, values or range are not those of raw images.

    """
    if images.ndim != 4 or 0 in images.shape:
        wanted = "at least one image, axes (image, channel, height, width)"
        raise LitBumpError(f"probe set {name!r} has shape {tuple(images.shape)}: give {wanted}")
    if images.dtype == torch.uint8:
        return images.cpu().to(torch.float32).div_(255)
    if not images.is_floating_point():
        raise LitBumpError(f"probe set {name!r} has {images.dtype} pixels: give uint8, or floating point in [0, 1]")
    pixels = images.cpu().to(torch.float32, copy=True).contiguous()
    low, high = float(pixels.min()), float(pixels.max())
    if not np.isfinite([low, high]).all():
        raise LitBumpError(f"probe set {name!r} holds NaN or infinite pixels")
    if low < -PIXEL_SLACK or high > 1 + PIXEL_SLACK:
        hint = "give raw images, and mean= and std= to fold the normalisation"
        hint = "divide by 255" if low >= 0 and high > 16 else hint
        raise LitBumpError(f"probe set {name!r} has pixels from {low:.3g} to {high:.3g}, not in [0, 1]: {hint}")
    return pixels.clamp_(0, 1)
