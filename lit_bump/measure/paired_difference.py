"""How much higher, and how much further out, one bump is than another on the same images.

Paper: section 3 "Controlled training conditions" compares such profiles by eye (figs. 2a, 2b). Needs NumPy alone.
Images differ far more than two networks do on one image, so the images are drawn together for both profiles: what they
share (the image, and the directions where the protocols have one seed) cancels in the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lit_bump.errors import LitBumpError
from lit_bump.measure.bump import (
    MIN_KEPT_SHARE,
    N_RESAMPLES,
    Interval,
    central_interval,
    curve_shapes,
    median_over_images,
)
from lit_bump.measure.profile import Profile

FloatArray = np.ndarray


@dataclass(frozen=True)
class PairedDifference:
    """Hold by how much the median profile of one encoder differs from another's.

    Args:
        log_height: natural logarithm of the second height over the first.
        log_height_interval: its 90 % interval over the images; an interval without 0 tells the two apart.
        log10_eta: decades by which the second peak is further out; NaN where one of them has no interior maximum.
        log10_eta_interval: its 90 % interval.
        n_images: number of images.

    """

    log_height: float
    log_height_interval: Interval
    log10_eta: float
    log10_eta_interval: Interval
    n_images: int

    def __str__(self) -> str:
        """Return both factors with their intervals, in one line."""
        low, high = (math.exp(end) for end in self.log_height_interval)
        text = f"{math.exp(self.log_height):.3g} [{low:.3g}, {high:.3g}] times as high"
        if math.isfinite(self.log10_eta):
            low, high = (10**end for end in self.log10_eta_interval)
            text += f", {10**self.log10_eta:.3g} [{low:.3g}, {high:.3g}] times as far out"
        return f"{text} ({self.n_images} images)"


def paired_difference(first: Profile, second: Profile, *, seed: int = 0) -> PairedDifference:
    """Return by how much a second bump differs from a first one, on the same images.

    Args:
        first: a profile of at least two images.
        second: of the same images; its ladder may be another one.
        seed: of the resampling; the global random streams are left alone.

    Returns:
        Differences of height and place, as they are read from the medians by ``Bump``; NaN where one is undefined.

    Raises:
        LitBumpError: if the images differ, or there is a single one.

    Example:
        >>> from lit_bump.measure import Protocol, measure_profile
        >>> import torch
        >>> images = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> profile = measure_profile(lambda x: x**2, images, Protocol.quick((1, 4, 4)))
        >>> paired_difference(profile, profile).log_height_interval
        (0.0, 0.0)

    """
    if first.image_digests != second.image_digests:
        raise LitBumpError("the profiles are of other images: measure both encoders on the same probe set")
    n_images = first.n_images
    if n_images < 2:
        raise LitBumpError("the profiles are of a single image, which cannot be resampled: give at least 2")
    drawn = np.random.default_rng(seed).integers(n_images, size=(N_RESAMPLES, n_images))
    drawn = np.concatenate([np.arange(n_images)[None], drawn])  # the images as they are, then the resamples
    height, place = (b - a for a, b in zip(_shapes(first, drawn), _shapes(second, drawn), strict=True))
    return PairedDifference(
        log_height=float(height[0]),
        log_height_interval=central_interval(height[1:]),
        log10_eta=float(place[0]),
        log10_eta_interval=central_interval(place[1:]),
        n_images=n_images,
    )


def _shapes(
    profile: Profile, drawn: np.ndarray
) -> tuple[Float[FloatArray, " resample"], Float[FloatArray, " resample"]]:
    """Return log height and log10 place of the median over each draw of images."""
    kept = np.isfinite(profile.ratio).mean(axis=0) >= MIN_KEPT_SHARE
    if kept.sum() < 3:
        nothing = np.full(len(drawn), np.nan)
        return nothing, nothing
    medians = median_over_images(profile.ratio[:, kept][drawn])
    shapes = curve_shapes(np.log10(profile.etas[kept]), medians)
    return np.log(shapes["height"]), shapes["place"]
