"""The embedded data set: ten classes of drawn 32 x 32 colour images, made from a seed, with no download.

Not in the paper: a stand-in for CIFAR-10 on which the bump forms, and does not form, in a minute on a laptop.
Needs torch and NumPy. Image i depends on (seed, split, i) alone and is the same on every machine: random words come
from a counter, and every step after them is a single IEEE operation (no sines, no matrix product that rounds).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.images.random_words import checked_seed, random_words, small_integers, unit_interval
from lit_bump.images.shape_outlines import OUTLINES

SHAPE_CLASSES = tuple(OUTLINES)
SHAPE_SIZE = (3, 32, 32)

_SIDE = 32
_N_PIXELS = 3 * _SIDE * _SIDE
_CANDIDATES = 3  # colours tried for the shape; the one further from the background's is taken
_GRID = 5  # texture: random values on a 5 x 5 grid, smoothly interpolated
_N_NUMBERS = 4 + 3 + 3 * _CANDIDATES
_TEXTURE_WORDS = -(-2 * 3 * _GRID * _GRID // 8)
_NOISE_WORDS = 2 * _N_PIXELS // 8
_RADIUS = (6.5, 12.0)  # pixels
_MARGIN = 0.85  # the centre keeps this share of the radius away from the border
_TEXTURE = 0.36  # peak amplitude of the texture, in [0, 1] pixels
_NOISE = 0.08  # peak amplitude of the pixel noise
_CHUNK = 250  # images at a time: they fit in the cache

Floats = npt.NDArray[np.float32]


def draw_shapes(
    n: int, *, seed: int, split: Literal["train", "test"] = "train"
) -> tuple[UInt8[Tensor, "image channel height width"], Int64[Tensor, " image"]]:
    """Draw the first ``n`` images of a split; the first k of them are the same for every n.

    Each image holds one shape of a random position, size, rotation and colour, on a background of another colour; both
    carry a smooth random texture; edges are anti-aliased and every pixel gets a little noise. Classes take turns, so
    ten images in a row hold each class once.

    Args:
        n: number of images, at least 0.
        seed: seed of the drawing alone; the global generators are neither read nor advanced.
        split: ``"train"`` and ``"test"`` are two unrelated streams.

    Returns:
        Images, axes (image, channel, height, width), and labels, which count in the order of ``SHAPE_CLASSES``.

    Raises:
        LitBumpError: if n or the seed is negative, or the split is another word.

    Example:
        >>> images, labels = draw_shapes(20, seed=0)
        >>> bool((images[:10] == draw_shapes(10, seed=0)[0]).all()), labels.bincount().tolist() == [2] * 10
        (True, True)

    """
    if n < 0:
        raise LitBumpError(f"n={n} drawn images: give at least 0")
    return draw_shapes_at(range(n), seed=seed, split=split)


def draw_shapes_at(
    indices: Iterable[int], *, seed: int, split: Literal["train", "test"] = "train"
) -> tuple[UInt8[Tensor, "image channel height width"], Int64[Tensor, " image"]]:
    """Draw the images of the given indices, as :func:`draw_shapes` does.

    Args:
        indices: which images of the split, each at least 0.
        seed: seed of the drawing alone.
        split: ``"train"`` or ``"test"``.

    Returns:
        Images, axes (image, channel, height, width), and labels.

    Raises:
        LitBumpError: if an index or the seed is negative, or the split is another word.

    """
    if split not in ("train", "test"):
        raise LitBumpError(f"split={split!r} of the drawn shapes: give 'train' or 'test'")
    checked_seed(seed)
    rows = list(indices)
    images = np.empty((len(rows), *SHAPE_SIZE), dtype=np.uint8)
    labels = np.array(rows, dtype=np.int64) % len(SHAPE_CLASSES)
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        n_words = _N_NUMBERS + _TEXTURE_WORDS + _NOISE_WORDS
        words = random_words(rows[part], n_words, seed=seed, stream=f"drawn shapes, {split}")
        images[part] = _draw(words, labels[part])
    return torch.from_numpy(images), torch.from_numpy(labels)


def _draw(words: npt.NDArray[np.uint64], labels: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    numbers = unit_interval(words[:, :_N_NUMBERS])
    values = small_integers(words[:, _N_NUMBERS : _N_NUMBERS + _TEXTURE_WORDS], 8)[:, : 6 * _GRID * _GRID]
    noise = small_integers(words[:, -_NOISE_WORDS:], 8).reshape(-1, 2, *SHAPE_SIZE)

    coverage = _coverage(numbers[:, :4], labels)[:, None]
    behind, front = _colours(numbers[:, 4:])
    texture = _texture(values)
    ground = texture[:, 0] + behind[:, :, None, None]
    pixels: Any = texture[:, 1] + front[:, :, None, None]
    pixels -= ground
    pixels *= coverage
    pixels += ground
    triangular = noise[:, 0].astype(np.int16) + noise[:, 1] - np.int16(255)
    pixels += triangular.astype(np.float32) * np.float32(_NOISE / 255)
    pixels *= np.float32(255)
    rounded: npt.NDArray[np.uint8] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return rounded


def _coverage(numbers: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> Floats:
    """Return the share of each pixel that the shape covers, from four random numbers an image.

    Args:
        numbers: radius, centre (2) and rotation, each in [0, 1).
        labels: class of each image.

    Returns:
        Numbers in [0, 1], axes (image, height, width).

    """
    low, high = _RADIUS
    radius = low + (high - low) * numbers[:, 0]
    centre = (_SIDE - 2 * _MARGIN * radius)[:, None] * (numbers[:, 1:3] - 0.5)
    cosine, sine = _TURNS[:, (numbers[:, 3] * _TURNS.shape[1]).astype(np.int64)]
    pixel = np.arange(_SIDE, dtype=np.float32) - np.float32((_SIDE - 1) / 2)
    down = pixel[None, :, None] - _column(centre[:, 0])
    right = pixel[None, None, :] - _column(centre[:, 1])
    x = _column(cosine) * right + _column(sine) * down
    y = _column(cosine) * down - _column(sine) * right
    coverage = np.empty((len(labels), _SIDE, _SIDE), dtype=np.float32)
    for label, outline in enumerate(OUTLINES.values()):
        (chosen,) = np.nonzero(labels == label)
        if len(chosen):
            distance = outline(x[chosen], y[chosen], _column(radius[chosen]))
            coverage[chosen] = np.clip(np.float32(0.5) - distance, 0, 1)
    return coverage


def _column(numbers: npt.NDArray[np.float64]) -> Floats:
    return numbers.astype(np.float32)[:, None, None]


def _colours(numbers: npt.NDArray[np.float64]) -> tuple[Floats, Floats]:
    """Choose a colour for the background, and of a few candidates for the shape the one furthest from it.

    Args:
        numbers: three for the background and three for each candidate, in [0, 1).

    Returns:
        Background and shape colours, axes (image, channel).

    """
    colours = (0.1 + 0.8 * numbers).reshape(len(numbers), 1 + _CANDIDATES, 3)
    gap = np.abs(colours[:, 1:] - colours[:, :1])
    best = (gap[..., 0] + gap[..., 1] + gap[..., 2]).argmax(axis=1)
    front = colours[np.arange(len(numbers)), 1 + best]
    return colours[:, 0].astype(np.float32), front.astype(np.float32)


def _texture(values: npt.NDArray[np.uint8]) -> Floats:
    """Interpolate random grid values over the image, for the background and for the shape.

    Args:
        values: 8-bit integers, axes (image, value).

    Returns:
        Numbers in plus or minus half of the amplitude, axes (image, layer, channel, height, width).

    """
    grid = values.reshape(-1, _GRID * _GRID).astype(np.float64) - 127.5
    # Exact whatever the order of the sum: 24 bits of weight and 9 of value fit in a float64.
    smooth = (grid @ _SPREAD).astype(np.float32)
    smooth *= np.float32(_TEXTURE / 255)
    return smooth.reshape(-1, 2, *SHAPE_SIZE)


def _spread() -> npt.NDArray[np.float64]:
    """Return the weight of each grid value in each pixel: smoothstep in both directions, multiples of 2^-24.

    Returns:
        Array ``(grid value, pixel)``.

    """
    cell, step = np.divmod(np.arange(_SIDE), _SIDE // (_GRID - 1))
    t = (step + 0.5) / (_SIDE // (_GRID - 1))
    rise = t * t * (3 - 2 * t)
    weights = np.zeros((_GRID, _SIDE))
    weights[cell, np.arange(_SIDE)] = 1 - rise
    weights[cell + 1, np.arange(_SIDE)] = rise
    return np.asarray(np.einsum("ay,bx->abyx", weights, weights).reshape(_GRID * _GRID, -1))


def _turns(n: int) -> npt.NDArray[np.float64]:
    """Return cosine and sine of n equal turns, rounded to 2^-20 so that no machine's last digit shows.

    Args:
        n: number of rotations.

    Returns:
        Array ``(cosine or sine, rotation)``.

    """
    angle = 2 * np.pi * np.arange(n) / n
    return np.asarray(np.rint(np.stack([np.cos(angle), np.sin(angle)]) * 2**20) / 2**20)


_SPREAD = _spread()
_TURNS = _turns(4096)
