"""The named probe sets: which there are, and how a name becomes images.

Paper: A.2 "Protocol" (cifar32, cifar32train, cifar32b1, cifar32b2, noise32, noise32train); ``shapes`` stands in for
CIFAR-10 without a download. Needs torch and the image sources. A name means the same images on every machine, and
never just "test": the split is a part of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor

from lit_bump.errors import LitBumpError, nearest
from lit_bump.images.cifar10_files import load_cifar10
from lit_bump.images.class_balanced_order import class_balanced_order
from lit_bump.images.drawn_shapes import draw_shapes_at
from lit_bump.images.gaussian_blur import gaussian_blur
from lit_bump.images.random_words import checked_seed
from lit_bump.images.uniform_noise import noise_images
from lit_bump.probes.probe_set import ProbeSet, raw_pixels

PROBE_SETS = MappingProxyType(
    {
        "cifar32": "32 seeded images of CIFAR-10's test split",
        "cifar32train": "32 seeded images of CIFAR-10's training split",
        "cifar32b1": "the images of cifar32, Gaussian blur of sigma 1",
        "cifar32b2": "the images of cifar32, Gaussian blur of sigma 2",
        "shapes32": "32 test images of the drawn shapes",
        "shapes32train": "32 training images of the drawn shapes",
        "shapes32b1": "the images of shapes32, Gaussian blur of sigma 1",
        "shapes32b2": "the images of shapes32, Gaussian blur of sigma 2",
        "noise32": "32 images of independent uniform noise, none of them a training image",
        "noise32train": "32 training images of the noise data modules, made again from their noise seed",
    }
)

_PATTERN = re.compile(r"(?P<family>cifar|shapes|noise)(?P<n>[1-9]\d*)(?P<train>train)?(b(?P<sigma>\d+(\.\d+)?))?")
_STRIDE = 256  # images of the drawn shapes from one seed's draw to the next

Split = Literal["train", "test"]


def named_probe_set(
    name: str,
    *,
    data_dir: str | Path | None = None,
    seed: int = 0,
    shapes_seed: int = 0,
    noise_seed: int = 0,
    download: bool = False,
) -> ProbeSet:
    """Make the probe set of a name.

    A name is ``cifar``, ``shapes`` or ``noise``, then the number of images, then nothing (test images), ``train``
    (training images) or ``b`` and a sigma (the same test images, blurred). ``shapes8`` is the beginning of
    ``shapes32``. Draws are without replacement and, as far as the number allows, hold each class equally often.

    Args:
        name: one of ``PROBE_SETS``, or one like them with another number or sigma.
        data_dir: where CIFAR-10 is; the ``cifar`` sets need it.
        seed: seed of the draw. The drawn shapes and noise images are already random by index: a seed takes another
            stretch of the shapes, and other noise; training noise follows ``noise_seed``.
        shapes_seed: the seed that the shapes data module draws with.
        noise_seed: the seed of the noise data module, which ``noise<n>train`` repeats.
        download: fetch CIFAR-10 where ``data_dir`` has none.

    Returns:
        The same images, hence the same digest, on every machine.

    Raises:
        LitBumpError: if there is no such name (the nearest one is given), too few images, or no CIFAR-10.

    Example:
        >>> eight, many = named_probe_set("shapes8"), named_probe_set("shapes32")
        >>> bool((eight.images == many.images[:8]).all())
        True

    """
    match = _PATTERN.fullmatch(name)
    train, sigma = (match["train"], match["sigma"]) if match else (None, None)
    wrong_blur = sigma is not None and (train or float(sigma) == 0 or match is None or match["family"] == "noise")
    if match is None or wrong_blur:
        raise LitBumpError(
            f"no probe set {name!r}{nearest(name, PROBE_SETS)}; any number and sigma may stand in a name"
        )
    family, n, split = match["family"], int(match["n"]), _split(train)
    checked_seed(seed)
    if family == "cifar":
        images, source = _cifar(name, n, split, data_dir=data_dir, seed=seed, download=download)
    elif family == "shapes":
        images, _ = draw_shapes_at(range(seed * _STRIDE, seed * _STRIDE + n), seed=shapes_seed, split=split)
        source = f"drawn shapes, {split} split, shapes seed {shapes_seed}, draw {seed}"
    else:
        used = noise_seed if split == "train" else seed
        images = noise_images(range(n), seed=used, split=split)
        source = f"uniform noise, {split} stream, seed {used}"
    if sigma is not None:
        images = gaussian_blur(raw_pixels(images, name), float(sigma))
        source += f", blur sigma {sigma}"
    return ProbeSet(name, images, source)


def _split(train: str | None) -> Split:
    return "train" if train else "test"


def _cifar(
    name: str, n: int, split: Split, *, data_dir: str | Path | None, seed: int, download: bool
) -> tuple[Tensor, str]:
    if data_dir is None:
        raise LitBumpError(f"probe set {name!r} needs CIFAR-10: give data_dir, the folder that holds it")
    images, labels = load_cifar10(data_dir, split, download=download)
    if n > len(labels):
        raise LitBumpError(f"probe set {name!r}: the {split} split has only {len(labels)} images")
    chosen = class_balanced_order(labels, seed=seed)[:n]
    return torch.index_select(images, 0, chosen), f"CIFAR-10, {split} split, seed {seed}"
