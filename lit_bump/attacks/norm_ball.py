"""The geometry of an attack: a random point of the ball, a step uphill, and the way back into ball and pixel range.

Paper: fig. 2a. Source of the method: Madry et al. 2018 (PGD in an L2 or Linf ball). Needs torch alone.
Norms are taken over all pixels of one image, never over the batch. Perturbations are float32 or wider.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Norm = Literal["L2", "Linf"]


def random_start(
    images: Float[Tensor, "image channel height width"], norm: Norm, eps: float, *, seed: int
) -> Float[Tensor, "image channel height width"]:
    """Return perturbations drawn uniformly from the ball of radius ``eps``.

    Args:
        images: gives shape and device; the dtype is float32, or float64 where the images are.
        norm: of the ball.
        eps: its radius, in [0, 1] pixels.
        seed: of this draw alone; the global random streams are neither read nor advanced.

    Returns:
        One perturbation an image, inside of the ball; images are not looked at, so ``projected`` has to follow.

    Example:
        >>> start = random_start(torch.zeros(2, 3, 4, 4), "L2", 0.5, seed=0)
        >>> bool((start.flatten(1).norm(dim=1) <= 0.5).all())
        True

    """
    dtype = torch.promote_types(images.dtype, torch.float32)
    generator = torch.Generator(images.device).manual_seed(seed)
    if norm == "Linf":
        return eps * (2 * torch.rand(images.shape, generator=generator, device=images.device, dtype=dtype) - 1)
    direction = torch.randn(images.shape, generator=generator, device=images.device, dtype=dtype)
    share = torch.rand(len(images), generator=generator, device=images.device, dtype=dtype)
    radius = eps * share ** (1 / max(1, direction[0].numel() if len(images) else 1))
    return _per_image(radius, images) * _unit(direction)


def ascent_step(
    gradient: Float[Tensor, "image channel height width"], norm: Norm, step_size: float
) -> Float[Tensor, "image channel height width"]:
    """Return the step of a given length that raises the loss most, to first order.

    Args:
        gradient: of each image's own loss.
        norm: in which the length is measured.
        step_size: the length, in [0, 1] pixels.

    Returns:
        ``step_size`` times the sign (Linf) or the unit vector (L2) of the gradient: a whole step for the tiniest
        gradient, none where it is exactly zero or not finite.

    Example:
        >>> step = ascent_step(torch.full((1, 1, 2, 2), 1e-30), "L2", 1.0)
        >>> round(float(step.norm()), 6)
        1.0

    """
    gradient = gradient.to(torch.promote_types(gradient.dtype, torch.float32))
    usable = gradient.flatten(1).isfinite().all(dim=1)
    gradient = torch.where(_per_image(usable, gradient), gradient, 0.0)
    return step_size * (gradient.sign() if norm == "Linf" else _unit(gradient))


def projected(
    perturbation: Float[Tensor, "image channel height width"],
    images: Float[Tensor, "image channel height width"],
    norm: Norm,
    eps: float,
) -> Float[Tensor, "image channel height width"]:
    """Return the perturbations brought back into the ball, and the images plus them into [0, 1].

    Cutting at 0 and 1 only shortens a coordinate, since the image itself is within: the ball is not left again.

    Args:
        perturbation: any.
        images: in [0, 1] pixels.
        norm: of the ball.
        eps: its radius.

    Returns:
        Perturbations of norm at most eps, up to rounding.

    """
    if norm == "Linf":
        perturbation = perturbation.clamp(-eps, eps)
    else:
        length = perturbation.flatten(1).norm(dim=1)
        shrink = torch.where(length > eps, eps / length.clamp_min(torch.finfo(length.dtype).tiny), 1.0)
        perturbation = perturbation * _per_image(shrink, images)
    pixels = images.to(perturbation.dtype)
    return torch.minimum(torch.maximum(perturbation, -pixels), 1 - pixels)


def _unit(vectors: Tensor) -> Tensor:
    """Return vectors of length 1, or 0 where a vector is 0; squares of the tiniest entries do not underflow."""
    largest = vectors.flatten(1).abs().amax(dim=1) if vectors[0:1].numel() else vectors.flatten(1).sum(dim=1)
    scaled = vectors / _per_image(torch.where(largest > 0, largest, 1.0), vectors)
    length = scaled.flatten(1).norm(dim=1)
    return scaled / _per_image(torch.where(length > 0, length, 1.0), vectors)


def _per_image(values: Tensor, images: Tensor) -> Tensor:
    return values.view(-1, *[1] * (images.ndim - 1))
