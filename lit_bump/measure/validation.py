"""What is refused before anything is measured: wrong images, stochastic encoders, features that depend on neighbours.

Paper: A.2 (raw [0, 1] pixels). Needs torch alone.
A stochastic encoder makes r grow as 1 / eta^2 at the small rungs, which looks like a discovery; so does a BatchNorm
that uses the statistics of its batch.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.errors import LitBumpError
from lit_bump.measure.displacement import padded, squared_length
from lit_bump.measure.frozen_encoder import FrozenEncoder

FloatArray = np.ndarray
TOLERANCE = 1e-4  # relative difference of two features of one image that rounding cannot explain
ENOUGH_ROWS = 32  # rows that are compared at least, however small the batch
PIXEL_SLACK = 1e-5  # beyond [0, 1]: what rounding leaves after a resize or a blur; for probe sets and attacks as well


def validated_images(images: Tensor) -> Float[Tensor, "image channel height width"]:
    """Return images as they are, or say what is wrong with them.

    Args:
        images: floating-point images in [0, 1] pixels, ``(image, channel, height, width)``.

    Returns:
        The same images, as an ordinary tensor also where they were made in inference mode.

    Raises:
        LitBumpError: if they are no such tensor; the observed range and the cure are named.

    """
    if not isinstance(images, Tensor):
        raise LitBumpError(f"images are {type(images).__name__}; give a float tensor (image, channel, height, width)")
    if images.dim() != 4 or images.numel() == 0:
        raise LitBumpError(f"images have shape {tuple(images.shape)}; give (image, channel, height, width), none empty")
    if not images.is_floating_point():
        raise LitBumpError(
            f"images are {images.dtype}; give floating-point pixels in [0, 1] (divide 8-bit ones by 255)"
        )
    low, high = float(images.detach().min()), float(images.detach().max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise LitBumpError("images hold NaN or infinite pixels")
    if low < -PIXEL_SLACK or high > 1 + PIXEL_SLACK:
        cure = (
            "divide by 255"
            if low >= 0 and high > 2
            else "give raw pixels and fold the normalisation in by mean= and std="
        )
        raise LitBumpError(f"images run from {low:.3g} to {high:.3g}, outside [0, 1]: {cure}")
    with torch.inference_mode(False):
        return images.clone() if images.is_inference() else images.detach()


def check_encoder(
    encoder: FrozenEncoder, images: Float[Tensor, "image channel height width"], chunk: int
) -> Float[FloatArray, " image"]:
    """Run the encoder twice on the same images and once beside other images; refuse one that answers differently.

    Args:
        encoder: the encoder.
        images: the probe images, in its dtype and on its device.
        chunk: batch size of the measurement.

    Returns:
        Energy of the difference between the two runs for every image: 0 for a deterministic computation.

    Raises:
        LitBumpError: if the encoder is stochastic, or if an image's features depend on the rest of its batch.

    """
    energies = [_repeat_energy(encoder, part, chunk) for part in torch.split(images, chunk)]
    for _ in range(ENOUGH_ROWS // chunk):  # dropout on a few features of a few images may well repeat itself once
        _repeat_energy(encoder, images[:chunk], chunk)
    _check_neighbours(encoder, images[:1], chunk)
    return np.asarray(torch.cat(energies).cpu().numpy())


def _repeat_energy(encoder: FrozenEncoder, part: Tensor, chunk: int) -> Tensor:
    # of the difference between two runs on the same images
    batch = padded(part, chunk)
    first, second = encoder(batch).clone(), encoder(batch)
    energy, scale = squared_length(first - second), squared_length(first)
    if bool((energy > TOLERANCE**2 * scale).any()):
        size = float((energy / scale).sqrt().max())
        raise LitBumpError(
            f"the encoder is stochastic: two runs on the same images differ by {size:.1e} of the feature's length; "
            "switch off dropout, noise layers and test-time augmentation inside it"
        )
    return energy[: len(part)]


def _check_neighbours(encoder: FrozenEncoder, image: Tensor, chunk: int) -> None:
    batch = padded(image, max(2, min(chunk, 8))).clone()
    others = batch.clone()
    others[1:] = (batch[1:] < 0.5).to(batch.dtype)  # every pixel of the neighbours moves by at least a half
    try:
        alone, beside = encoder(batch)[:1].clone(), encoder(others)[:1]
    except (RuntimeError, ValueError):
        if chunk > 1:
            raise
        return  # an encoder, or a memory, for one image at a time: there are no neighbours
    if bool((squared_length(alone - beside) > TOLERANCE**2 * squared_length(alone)).any()):
        raise LitBumpError(
            "the features of an image depend on the other images of its batch (a BatchNorm that uses batch "
            "statistics?); measure the encoder in evaluation mode"
        )
