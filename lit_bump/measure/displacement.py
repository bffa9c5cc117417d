"""Squared feature displacements of every image, pair and rung, in batches of one shape.

Paper: section 2 (D) and A.2 (2048 directions shared across the rungs; no projection to [0, 1]). Needs torch and NumPy.
The difference is taken first and squared afterwards, in float64, against a base feature from a batch of the same shape:
kernels round differently for different shapes, and at the smallest rungs that would look like a displacement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.measure.directions import directions_of_rows
from lit_bump.measure.frozen_encoder import FrozenEncoder

FloatArray = np.ndarray


def base_features(
    encoder: FrozenEncoder, images: Float[Tensor, "image channel height width"], chunk: int, *, least: int | None = None
) -> Float[Tensor, "image feature"]:
    """Return the features of unperturbed images, from batches of the shape of the perturbed ones.

    Args:
        encoder: the encoder.
        images: images in its dtype, on its device.
        chunk: batch size of the perturbed images.
        least: to how many images a batch is filled up; ``chunk`` if None.

    Returns:
        One row an image.

    """
    least = chunk if least is None else least
    return torch.cat([encoder(padded(part, least))[: len(part)] for part in torch.split(images, chunk)])


def padded(batch: Float[Tensor, "image channel height width"], least: int) -> Float[Tensor, "row channel height width"]:
    """Return a batch of at least so many rows: a short one repeats its rows.

    Args:
        batch: at least one row.
        least: rows wanted.

    Returns:
        The batch itself where it is full.

    """
    if len(batch) >= least:
        return batch
    return batch[torch.arange(least, device=batch.device) % len(batch)]


def differences(
    encoder: FrozenEncoder,
    images: Float[Tensor, "image channel height width"],
    etas: tuple[float, ...],
    n_pairs: int,
    *,
    seed: int,
    chunk: int,
    least: int | None = None,
    first_image: int = 0,
) -> Iterator[Float[Tensor, "row feature"]]:
    r"""Yield the feature differences :math:`\Phi(x \pm \eta u) - \Phi(x)` of every image, pair, rung and sign.

    The four axes are one long list of perturbed images, the sign running fastest, cut into parts of ``chunk``: small
    networks fill the machine and no batch but the last is short.

    Args:
        encoder: the encoder.
        images: images in its dtype, on its device.
        etas: the ladder.
        n_pairs: pairs an image.
        seed: seed of the directions.
        chunk: perturbed images a part; memory grows with it and with nothing else.
        least: to how many images a batch is filled up; ``chunk`` if None.
        first_image: number of ``images[0]`` in its probe set.

    Yields:
        Up to ``chunk`` rows.

    """
    least = chunk if least is None else least
    base = base_features(encoder, images, chunk, least=least)
    size = images.shape[1:]
    shape = (len(images), n_pairs, len(etas), 2)
    signs = torch.tensor([1.0, -1.0], dtype=encoder.dtype, device=encoder.device)
    steps = torch.tensor(etas, dtype=encoder.dtype, device=encoder.device)[:, None] * signs
    total = math.prod(shape)
    for start in range(0, total, chunk):
        stop = min(start + chunk, total)
        image, pair, rung, sign = (torch.from_numpy(axis) for axis in np.unravel_index(np.arange(start, stop), shape))
        u = directions_of_rows(image + first_image, pair, size.numel(), seed=seed).view(-1, *size)
        step = steps[rung, sign].view(-1, 1, 1, 1)
        perturbed = images[image] + step * u.to(encoder.device, encoder.dtype)
        yield encoder(padded(perturbed, least))[: stop - start] - base[image]


def displacements(
    encoder: FrozenEncoder,
    images: Float[Tensor, "image channel height width"],
    etas: tuple[float, ...],
    n_pairs: int,
    *,
    seed: int,
    chunk: int,
    first_image: int = 0,
    advance: Callable[[int], None] = lambda n: None,
) -> Float[FloatArray, "image pair rung"]:
    r"""Return D of every pair: the mean of :math:`\|\Phi(x \pm \eta u) - \Phi(x)\|^2` over the two signs.

    Args:
        encoder: the encoder.
        images: images in its dtype, on its device.
        etas: the ladder.
        n_pairs: pairs an image.
        seed: seed of the directions.
        chunk: perturbed images a batch.
        first_image: number of ``images[0]`` in its probe set.
        advance: called with the number of perturbed images done.

    Returns:
        float64; NaN or inf where the encoder returned such features.

    """
    parts = []
    for difference in differences(encoder, images, etas, n_pairs, seed=seed, chunk=chunk, first_image=first_image):
        parts.append(squared_length(difference))
        advance(len(difference))
    squared = torch.cat(parts).cpu().numpy().reshape(len(images), n_pairs, len(etas), 2)
    return np.asarray(squared.mean(axis=-1))


def squared_length(vectors: Float[Tensor, "row feature"]) -> Float[Tensor, " row"]:
    """Return the squared Euclidean length of every row, accumulated in float64."""
    if vectors.device.type == "mps":  # Apple's GPUs have no float64
        vectors = vectors.cpu()
    return vectors.double().square().sum(dim=1)
