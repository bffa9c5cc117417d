"""Squared feature displacements of listed images, pairs and rungs, in batches of one shape.

Paper: section 2 (D) and A.2 (2048 directions shared across the rungs; no projection to [0, 1]). Needs torch and NumPy.
The difference is taken first and squared afterwards, in float64, against a base feature from a batch of the same shape:
kernels round differently for different shapes, and at the smallest rungs that would look like a displacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lit_bump.measure.directions import directions_of_rows
from lit_bump.measure.frozen_encoder import FrozenEncoder

FloatArray = np.ndarray
IntArray = np.ndarray


class Rows(NamedTuple):
    """List what is to be evaluated, sorted by image, then pair: both signs of every row are.

    Args:
        image: position among the images.
        pair: number of the direction pair.
        rung: number of the rung.

    """

    image: Int[IntArray, " row"]
    pair: Int[IntArray, " row"]
    rung: Int[IntArray, " row"]

    @classmethod
    def grid(cls, n_images: int, n_pairs: int, n_rungs: int) -> Rows:
        """Return all combinations; an array of values reshapes to ``(n_images, n_pairs, n_rungs)``."""
        return cls(*(axis.reshape(-1) for axis in np.indices((n_images, n_pairs, n_rungs))))

    @classmethod
    def where(cls, wanted: np.ndarray) -> Rows:
        """Return the combinations at which an ``(image, pair, rung)`` array is true."""
        return cls(*np.nonzero(wanted))

    @property
    def n_rows(self) -> int:
        """Number of rows (``len`` of the tuple is 3)."""
        return len(self.image)


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
    rows: Rows,
    *,
    seed: int,
    chunk: int,
    least: int | None = None,
    first_image: int = 0,
    signs: tuple[float, ...] = (1.0, -1.0),
    base: Float[Tensor, "image feature"] | None = None,
) -> Iterator[Float[Tensor, "row feature"]]:
    r"""Yield the feature differences :math:`\Phi(x \pm \eta u) - \Phi(x)` of every row and sign.

    Rows and signs are one long list of perturbed images, the sign running fastest, cut into parts of ``chunk``: small
    networks fill the machine and no batch but the last is short. :math:`x \pm \eta u` is formed in the images' dtype,
    and rounded to the encoder's afterwards.

    Args:
        encoder: the encoder.
        images: images on its device, in its dtype or a finer one.
        etas: the ladder.
        rows: what to evaluate.
        seed: seed of the directions.
        chunk: perturbed images a part; memory grows with it and with nothing else.
        least: to how many images a batch is filled up; ``chunk`` if None.
        first_image: number of ``images[0]`` in its probe set.
        signs: of the step.
        base: ``base_features`` of this encoder, these images and this chunk, where they are there already.

    Yields:
        Up to ``chunk`` differences, in float32 at least.

    """
    least = chunk if least is None else least
    base = base_features(encoder, images.to(encoder.dtype), chunk, least=least) if base is None else base
    base = at_least_float32(base)
    size = images.shape[1:]
    steps = torch.tensor(etas, dtype=images.dtype)[:, None] * torch.tensor(signs, dtype=images.dtype)
    total = rows.n_rows * len(signs)
    for start in range(0, total, chunk):
        stop = min(start + chunk, total)
        row, sign = np.divmod(np.arange(start, stop), len(signs))
        image, pair, rung = (torch.from_numpy(axis[row]) for axis in rows)
        u = directions_of_rows(image + first_image, pair, size.numel(), seed=seed).view(-1, *size)
        step = steps[rung, torch.from_numpy(sign)].to(images.device).view(-1, 1, 1, 1)
        perturbed = images[image] + step * u.to(images.device, images.dtype)
        features = encoder(padded(perturbed.to(encoder.dtype), least))[: stop - start]
        yield at_least_float32(features) - base[image]


def displacements(
    encoder: FrozenEncoder,
    images: Float[Tensor, "image channel height width"],
    etas: tuple[float, ...],
    rows: Rows,
    *,
    seed: int,
    chunk: int,
    first_image: int = 0,
    base: Float[Tensor, "image feature"] | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Float[FloatArray, " row"]:
    r"""Return D of every row: the mean of :math:`\|\Phi(x \pm \eta u) - \Phi(x)\|^2` over the two signs.

    Args:
        encoder: the encoder.
        images: images on its device, in its dtype or a finer one.
        etas: the ladder.
        rows: images, pairs and rungs to evaluate.
        seed: seed of the directions.
        chunk: perturbed images a batch.
        first_image: number of ``images[0]`` in its probe set.
        base: as in ``differences``.
        advance: called with the number of perturbed images done.

    Returns:
        float64; NaN or inf where the encoder returned such features.

    """
    parts = []
    same: dict[str, Any] = {"seed": seed, "chunk": chunk, "first_image": first_image, "base": base}
    for difference in differences(encoder, images, etas, rows, **same):
        parts.append(squared_length(difference).cpu())
        advance(len(difference))
    squared = torch.cat(parts).numpy() if parts else np.zeros(0)
    return np.asarray(squared.reshape(-1, 2).mean(axis=-1))


def at_least_float32(features: Float[Tensor, "row feature"]) -> Float[Tensor, "row feature"]:
    """Return features in float32 where they are coarser, so that their difference is not rounded once more."""
    return features if features.dtype in (torch.float32, torch.float64) else features.float()


def squared_length(vectors: Float[Tensor, "row feature"]) -> Float[Tensor, " row"]:
    """Return the squared Euclidean length of every row, accumulated in float64."""
    if vectors.device.type == "mps":  # Apple's GPUs have no float64
        vectors = vectors.cpu()
    return vectors.double().square().sum(dim=1)
