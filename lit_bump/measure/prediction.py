"""The local linear prediction: squared lengths of J u on the first directions of the same set.

Paper: A.1 (the prediction is eta^2 tr G / d) and A.2 (exact Jacobian-vector products, 256 of them). Needs torch, NumPy.
The lengths of J u and J (-u) are equal, so one product serves both directions of a pair.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.measure.directions import directions_of_rows
from lit_bump.measure.displacement import squared_length
from lit_bump.measure.frozen_encoder import FrozenEncoder

FloatArray = np.ndarray


def sensitivities(
    encoder: FrozenEncoder,
    images: Float[Tensor, "image channel height width"],
    n_jvp: int,
    *,
    seed: int,
    chunk: int,
    first_image: int = 0,
    advance: Callable[[int], None] = lambda n: None,
) -> Float[FloatArray, "image jvp"]:
    r"""Return :math:`\|J(x) u\|^2` of the first ``n_jvp`` directions of every image.

    Args:
        encoder: the encoder.
        images: images in its dtype, on its device.
        n_jvp: Jacobian-vector products an image.
        seed: seed of the directions.
        chunk: images a batch; a product holds about twice the memory of a forward.
        first_image: number of ``images[0]`` in its probe set.
        advance: called with the number of products done.

    Returns:
        float64; the mean over ``jvp`` estimates tr G / d.

    """
    size = images.shape[1:]
    total = len(images) * n_jvp
    parts = []
    for start in range(0, total, chunk):
        stop = min(start + chunk, total)
        image, pair = (
            torch.from_numpy(axis) for axis in np.unravel_index(np.arange(start, stop), (len(images), n_jvp))
        )
        u = directions_of_rows(image + first_image, pair, size.numel(), seed=seed)
        tangents = u.to(encoder.device, encoder.dtype).view(-1, *size)
        parts.append(squared_length(encoder.derivative(images[image], tangents)))
        advance(stop - start)
    return np.asarray(torch.cat(parts).cpu().numpy().reshape(len(images), n_jvp))
