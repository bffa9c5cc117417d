"""A band about a median profile: the quartiles over images, or the confidence interval of the median itself.

Paper: none; its medians have no error bars. Needs NumPy and ``measure``. The interval is found as those of ``Bump``
are, by drawing images with replacement, so that curve and table never disagree.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from lit_bump.measure.bump import CONFIDENCE, N_RESAMPLES, median_over_images
from lit_bump.measure.profile import Profile

FloatArray = np.ndarray
Band = Literal["none", "quartiles", "confidence"]
_NORMAL_QUANTILE = 1.6449  # of (1 + CONFIDENCE) / 2


def median_band(profile: Profile, band: Band) -> tuple[Float[FloatArray, " rung"], Float[FloatArray, " rung"]]:
    """Return the lower and the upper edge of a band.

    Args:
        profile: of any number of images; one alone has an interval from its standard errors, but no quartiles.
        band: ``quartiles`` of the images, or ``confidence`` for the 90 % interval of their median.

    Returns:
        Ratios, NaN where no image is kept, and everywhere for ``none``.

    """
    low, high = np.full((2, profile.etas.size), np.nan)
    if band == "quartiles" and profile.n_images > 1:
        low, high = profile.quantiles([0.25, 0.75])
    elif band == "confidence" and profile.n_images == 1:
        half = _NORMAL_QUANTILE * profile.standard_error[0]
        low, high = profile.ratio[0] - half, profile.ratio[0] + half
    elif band == "confidence":
        kept = profile.n_kept() > 0
        drawn = np.random.default_rng(profile.protocol.seed).integers(
            profile.n_images, size=(N_RESAMPLES, profile.n_images)
        )
        medians = median_over_images(profile.ratio[drawn][:, :, kept])
        low[kept], high[kept] = np.nanquantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return low, high
