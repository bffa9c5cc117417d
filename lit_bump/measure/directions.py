"""Unit directions on the sphere of pixel space, drawn in blocks that depend on nothing but (seed, image, block).

Paper: A.1 "Taylor expansion and sampling" (why antipodes), A.2 "Protocol" (1024 Gaussian vectors, normalised, and
their antipodes). Needs NumPy and torch. Every block has its own generator, so the draw is the same for every chunk,
device, rank and number of images, and the global random streams are neither read nor advanced.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lit_bump.errors import LitBumpError

BLOCK_PAIRS = 16  # pairs a block; part of the definition of the draw: another value gives other directions
SKETCH_STREAM = 1  # fourth word of the seeds of a second, independent stream


SMALL_DIM = 4096  # a block of this size takes 256 KiB, one at 224 px 9 MiB


def _block(dim: int, *words: int) -> Tensor:
    return (_kept_block if dim <= SMALL_DIM else _large_block)(dim, *words)


@lru_cache(maxsize=256)  # all blocks of the images that are measured together: every round asks for them again
def _kept_block(dim: int, *words: int) -> Tensor:
    return _drawn_block(dim, *words)


@lru_cache(maxsize=8)
def _large_block(dim: int, *words: int) -> Tensor:
    return _drawn_block(dim, *words)


def _drawn_block(dim: int, *words: int) -> Tensor:
    gaussian = np.random.default_rng(words).standard_normal((BLOCK_PAIRS, dim), dtype=np.float32)
    norm = np.linalg.norm(gaussian.astype(np.float64), axis=1, keepdims=True)
    return torch.from_numpy((gaussian / norm).astype(np.float32))


def directions(
    first: int, last: int, dim: int, *, seed: int, image: int, sketch: bool = False
) -> Float[Tensor, "direction dim"]:
    """Return the unit directions of pairs ``first`` to ``last - 1`` of one image, without their antipodes.

    Args:
        first: number of the first pair, from 0.
        last: number after the last pair.
        dim: flattened input size ``channel * height * width``.
        seed: seed of the draw (``Protocol.seed``).
        image: the image's number in its probe set.
        sketch: draw from the image's second stream, whose directions are in no pair.

    Returns:
        Rows of unit length (to float32 rounding), float32, on the CPU; row ``k`` is ``u`` of pair ``first + k``.

    Raises:
        LitBumpError: if the range is empty or negative, or ``dim`` is below 1.

    Example:
        >>> few, many = directions(3, 5, 12, seed=0, image=7), directions(0, 40, 12, seed=0, image=7)
        >>> bool((few == many[3:5]).all())
        True

    """
    if not 0 <= first < last or dim < 1:
        raise LitBumpError(f"directions {first}..{last} in {dim} dimensions: give 0 <= first < last and dim >= 1")
    blocks = range(first // BLOCK_PAIRS, (last - 1) // BLOCK_PAIRS + 1)
    stream = (SKETCH_STREAM,) if sketch else ()
    drawn = torch.cat([_block(dim, seed, image, block, *stream) for block in blocks])
    start = first - blocks[0] * BLOCK_PAIRS
    return drawn[start : start + last - first]


def directions_of_rows(
    image: Int[Tensor, " row"], pair: Int[Tensor, " row"], dim: int, *, seed: int
) -> Float[Tensor, "row dim"]:
    """Return the direction of every (image, pair) of a list that is sorted by image, then pair.

    Args:
        image: image numbers.
        pair: pair numbers.
        dim: flattened input size.
        seed: seed of the draw.

    Returns:
        One unit direction a row, float32, on the CPU.

    """
    rows = []
    for number in np.unique(image.numpy()).tolist():
        pairs = pair[image == number]
        first = int(pairs[0])
        drawn = directions(first, int(pairs[-1]) + 1, dim, seed=seed, image=number)
        rows.append(drawn[pairs - first])
    return torch.cat(rows)


def antipodal_directions(n_pairs: int, dim: int, *, seed: int, image: int = 0) -> Float[Tensor, "2*{n_pairs} {dim}"]:
    r"""Draw ``n_pairs`` isotropic unit vectors and append their antipodes.

    The set is closed under negation, so every odd function of :math:`u` sums to exactly zero over it; the estimate of
    :math:`r_\eta` then leaves 1 at order :math:`\eta^2`, not :math:`\eta` (paper, A.1).

    Args:
        n_pairs: number of independent vectors, at least 1; the paper takes 1024.
        dim: flattened input size ``channel * height * width``.
        seed: seed of this draw alone.
        image: the image's number in its probe set.

    Returns:
        Rows of unit length, float32 on the CPU. Row ``i + n_pairs`` is exactly ``-row i``.

    Example:
        >>> u = antipodal_directions(3, 5, seed=0)
        >>> u.shape, bool((u[:3] == -u[3:]).all())
        (torch.Size([6, 5]), True)

    """
    half = directions(0, n_pairs, dim, seed=seed, image=image)
    return torch.cat([half, -half])
