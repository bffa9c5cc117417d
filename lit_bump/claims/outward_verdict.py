"""How far adversarial training has moved the peak, and by how much it has lowered the local prediction.

Paper: fig. 2a. Needs NumPy and ``measure``. Both networks are measured on the same images, so places and predictions
are compared image by image. A peak beyond the ladder gives a bound, and only where the profile still rises on its last
rung.
"""

from __future__ import annotations

import numpy as np

from lit_bump.claims.finding import Part, Verdict
from lit_bump.claims.peak_verdicts import in_short
from lit_bump.measure import Profile, paired_difference
from lit_bump.measure.bump import CONFIDENCE, N_RESAMPLES, median_over_images

FloatArray = np.ndarray


def moved_outward(name: str, clean: Profile, robust: Profile) -> list[Part]:
    """Judge an adversarially trained network against the clean one.

    Args:
        name: of the condition.
        clean: profile of the clean network.
        robust: profile of the other on the same images.

    Returns:
        Text and verdict of the place, and of the prediction.

    """
    if clean.image_digests != robust.image_digests:
        return [(f"{name}: measured on other images than the clean network", "undecided")]
    return [_place(name, clean, robust), _prediction(name, clean, robust)]


def _place(name: str, clean: Profile, robust: Profile) -> Part:
    before, after = clean.bump(), robust.bump()
    of_clean = f"the clean {before.eta:.3g}"
    if before.verdict != "bump":
        return f"{name}: {in_short(after)}; clean {in_short(before)}", "undecided"
    if after.verdict == "rising" and (last := _rises_to(robust)) is not None:
        factor = last / 10 ** before.log10_eta_interval[1]
        sure: Verdict = "holds" if factor > 1 else "undecided"
        return f"{name}: {in_short(after)}; the peak is more than {factor:.3g} times outward of {of_clean}", sure
    if after.verdict != "bump":
        return f"{name}: {in_short(after)}; clean {in_short(before)}", "undecided"
    difference = paired_difference(clean, robust)
    least, most = (10**end for end in difference.log10_eta_interval)
    verdict: Verdict = "holds" if least > 1 else "does not hold" if most < 1 else "undecided"
    factor = 10**difference.log10_eta
    return f"{name}: {in_short(after)}; {factor:.3g} [{least:.3g}, {most:.3g}] times outward of {of_clean}", verdict


def _rises_to(profile: Profile) -> float | None:
    """Return the last kept rung if the median is largest there."""
    curve = profile.median()
    kept = np.flatnonzero(np.isfinite(curve))
    return float(profile.etas[kept[-1]]) if kept.size and int(np.nanargmax(curve)) == kept[-1] else None


def _prediction(name: str, clean: Profile, robust: Profile) -> Part:
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = clean.prediction / robust.prediction
    factors = factors[~np.isnan(factors)]
    if not factors.size:
        return f"{name}: no local prediction", "undecided"
    drawn = factors[np.random.default_rng(0).integers(factors.size, size=(N_RESAMPLES, factors.size))]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(median_over_images(drawn[..., None])[:, 0], [tail, 1 - tail], method="nearest")
    verdict: Verdict = "holds" if low > 1 else "does not hold" if high < 1 else "undecided"
    return f"{name}: prediction {np.median(factors):.3g} [{low:.3g}, {high:.3g}] times lower", verdict
