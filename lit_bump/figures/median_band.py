"""A band about a median profile: the quartiles over images, or the confidence interval of the median itself.

Paper: none; its medians have no error bars. Needs NumPy and ``measure``. The interval is found as those of ``Bump``
are, by drawing images with replacement, so that curve and table never disagree.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from lit_bump.measure.profile import Profile

FloatArray = np.ndarray
Band = Literal["none", "quartiles", "confidence"]


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
    elif band == "confidence":
        low, high = profile.median_interval()
    return low, high
