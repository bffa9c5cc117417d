"""Gaussian blur of a batch of images: one function for the training images and for the probe images.

Paper: A.2 (cifar32b1 and cifar32b2, the blur-trained variants, sigma 1 and 2; blur64). Needs torch and NumPy, which
computes: torch would spread each of many small steps over all threads, and on a busy machine wait for them.
It is ``scipy.ndimage.gaussian_filter(mode="mirror")``: the kernel reaches 4 sigma and the border is reflected without
repeating the edge pixel, again and again where the kernel is wider than the image. The result is not re-quantised.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.errors import LitBumpError

_CHUNK = 32  # images at a time: with their shifted copies they fit in the cache


def gaussian_blur(
    images: Float[Tensor, "image channel height width"], sigma: float | int
) -> Float[Tensor, "image channel height width"]:
    r"""Blur every channel of every image with an isotropic Gaussian of ``sigma`` pixels.

    Weights proportional to :math:`\exp(-k^2 / 2\sigma^2)` for :math:`|k| \le 4\sigma`, summing to 1, applied along the
    height and then along the width. Terms are added in a fixed order by plain products and sums, so the result is the
    same bit for bit on every machine.

    Args:
        images: floating point, axes (image, channel, height, width); any range.
        sigma: standard deviation in pixels; the paper takes 1 and 2 at 32 x 32. 0 gives the images back.

    Returns:
        New images of the same shape, dtype and device, without a gradient. The CPU computes them.

    Raises:
        LitBumpError: if sigma is negative or not finite.

    Example:
        >>> flat = torch.full((1, 1, 4, 4), 0.5)
        >>> bool(torch.allclose(gaussian_blur(flat, 3.0), flat))
        True

    """
    weights = _kernel(sigma)
    result = images.detach().cpu().to(torch.float64 if images.dtype == torch.float64 else torch.float32, copy=True)
    if len(weights) > 1:
        pixels = result.numpy()
        for start in range(0, len(pixels), _CHUNK):
            part = pixels[start : start + _CHUNK]
            part[:] = _blur_rows(_blur_rows(part, weights), weights)
    return result.to(images)


def _kernel(sigma: float | int) -> list[float]:
    """Return the weight of the centre and of each distance, up to 4 sigma.

    Args:
        sigma: standard deviation in pixels.

    Returns:
        Weights at distance 0, 1, ...; the centre plus twice the others is 1.

    Raises:
        LitBumpError: if sigma is negative or not finite.

    """
    if not (math.isfinite(sigma) and sigma >= 0):
        raise LitBumpError(f"sigma={sigma} of the Gaussian blur: give a number of pixels, at least 0")
    radius = int(4 * sigma + 0.5)
    if radius == 0:
        return [1.0]
    weights = np.exp(-0.5 * (np.arange(radius + 1) / sigma) ** 2)
    weights /= weights[0] + 2 * weights[1:].sum()
    return [float(weight) for weight in weights]


def _blur_rows(
    images: Float[np.ndarray, "image channel height width"], weights: list[float]
) -> Float[np.ndarray, "image channel width height"]:
    """Blur along the height and swap the two axes, so that twice is both axes and the old order.

    Args:
        images: axes (image, channel, height, width).
        weights: of :func:`_kernel`.

    Returns:
        Blurred images, height and width swapped.

    """
    rows = images.transpose(2, 3, 0, 1)  # (height, width, image, channel): a shift along the height is one block
    n = rows.shape[0]
    radius = len(weights) - 1
    position = np.arange(-radius, n + radius) % max(2 * (n - 1), 1)
    padded = np.ascontiguousarray(rows)[np.minimum(position, 2 * (n - 1) - position) if n > 1 else 0 * position]
    total = padded[radius : radius + n] * images.dtype.type(weights[0])
    pair = np.empty_like(total)
    for distance in range(1, radius + 1):
        before, after = padded[radius - distance :][:n], padded[radius + distance :][:n]
        np.add(before, after, out=pair)
        pair *= images.dtype.type(weights[distance])
        total += pair
    blurred: npt.NDArray[Any] = total.transpose(2, 3, 1, 0)
    return blurred
