"""Whether the bump mostly grows with evaluation blur and shrinks with training blur.

Paper: fig. 2b. Needs NumPy and ``measure``. The nine profiles share their images (blurred or not), so neighbouring
blurs are compared image by image: by the median, over images, of the log ratio of their heights. The intervals come
from drawing images with replacement, the same in all nine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lit_bump.claims.finding import Part, Verdict
from lit_bump.measure import Profile
from lit_bump.measure.bump import CONFIDENCE, N_RESAMPLES

FloatArray = np.ndarray
MOST = 0.5  # share of the comparisons; "mostly" is more than this, beyond the interval


def blur_parts(profiles: Mapping[str, Sequence[Profile]]) -> list[Part]:
    """Judge nine profiles.

    Args:
        profiles: by training blur, clean first; each on clean, blur 1 and blur 2.

    Returns:
        The table of heights, and a verdict on each direction.

    """
    bumps = {name: [profile.bump() for profile in row] for name, row in profiles.items()}
    table = "; ".join(
        f"trained on {name}: " + " / ".join(f"{bump.height:.3g} {bump.verdict}" for bump in row)
        for name, row in bumps.items()
    )
    text = f"max r on clean / blur 1 / blur 2, {table}"
    verdicts = [bump.verdict for row in bumps.values() for bump in row]
    counts = {len(profile.image_digests) for row in profiles.values() for profile in row}
    if len(counts) > 1:
        return [(f"{text}: measured on different numbers of images", "undecided")]
    if verdicts[0] != "bump" or not {"bump", "none"}.issuperset(verdicts):  # a rising profile has no known height
        return [(text, "undecided")]
    heights = np.array(
        [[_heights(profile) for profile in row] for row in profiles.values()]
    )  # training, evaluation, image
    evaluation, training = np.diff(heights, axis=1), -np.diff(heights, axis=0)
    return [
        (text, "holds"),
        _mostly("grows with evaluation blur", evaluation.reshape(-1, heights.shape[-1])),
        _mostly("shrinks with training blur", training.reshape(-1, heights.shape[-1])),
    ]


def _heights(profile: Profile) -> FloatArray:
    """Return the log of each image's largest ratio; NaN where it has none."""
    kept = np.where(np.isfinite(profile.ratio), profile.ratio, 0.0).max(axis=1)
    return np.asarray(np.log(kept, out=np.full(kept.shape, np.nan), where=kept > 0))


def _mostly(what: str, differences: FloatArray) -> Part:
    """Return text and verdict on differences of log heights, ``(comparison, image)``: most should be positive."""
    n_images = differences.shape[1]
    drawn = differences[:, np.random.default_rng(0).integers(n_images, size=(N_RESAMPLES, n_images))]
    right = int((np.nanmedian(differences, axis=1) > 0).sum())
    counts = (np.nanmedian(drawn, axis=2) > 0).sum(axis=0)
    tail = (1 - CONFIDENCE) / 2
    low, high = (int(count) for count in np.quantile(counts, [tail, 1 - tail], method="nearest"))
    enough = MOST * len(differences)
    verdict: Verdict = "holds" if low > enough else "does not hold" if high <= enough else "undecided"
    return f"{what} in {right} [{low}, {high}] of {len(differences)} comparisons", verdict
