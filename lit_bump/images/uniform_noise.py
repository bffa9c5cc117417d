"""Uniform noise images: what the random-data network trains on, and the noise probe sets.

Paper: A.2 "Training" ("the training set is replaced by seeded uniform noise images") and "Protocol" (noise32).
Needs torch and NumPy. Training and test noise are two streams: noise32 is never a training image of the same seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.images.random_words import checked_seed, random_words, small_integers

_CHUNK = 512  # images at a time: their words fit in the cache


def noise_images(
    indices: Iterable[int],
    *,
    seed: int,
    size: tuple[int, int, int] = (3, 32, 32),
    split: Literal["train", "test"] = "train",
) -> Float[Tensor, "image channel height width"]:
    """Make images whose every pixel is independent and uniform on [0, 1).

    Image i depends on (seed, split, i) and the size alone: not on the other indices, the number of workers or the
    global random state. So any training input can be made again from its index, and the same one on every machine.

    Args:
        indices: which images, each at least 0; ``range(n)`` gives the first n.
        seed: seed of the noise alone; the global generators are neither read nor advanced.
        size: channels, height and width.
        split: two unrelated streams; the training set is ``"train"``, noise32 is ``"test"``.

    Returns:
        float32 on the CPU, multiples of 2^-24 in [0, 1), axes (image, channel, height, width).

    Raises:
        LitBumpError: if the size has an entry below 1, the split is another word, or an index or the seed is negative.

    Example:
        >>> many = noise_images(range(3), seed=0)
        >>> bool((many[2:] == noise_images([2], seed=0)).all())
        True

    """
    if min(size) < 1:
        raise LitBumpError(f"size={size} of the noise images: every entry must be at least 1")
    if split not in ("train", "test"):
        raise LitBumpError(f"split={split!r} of the noise images: give 'train' or 'test'")
    checked_seed(seed)
    rows = list(indices)
    n_pixels = int(np.prod(size))
    pixels = np.empty((len(rows), n_pixels), dtype=np.float32)
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        words = random_words(rows[part], (n_pixels + 1) // 2, seed=seed, stream=f"noise images, {split}")
        bits = small_integers(words, 32)[:, :n_pixels] >> np.uint32(8)
        np.multiply(bits, np.float32(2.0**-24), out=pixels[part], casting="unsafe")  # exact: 24 bits fit in a float32
    return torch.from_numpy(pixels).reshape(len(rows), *size)
