"""Whether a profile has a peak, has none, or cannot tell; and when in training the peak has formed.

Paper: section 3, figs. 1c and 2c. Needs NumPy and ``measure``. ``none`` of a ``Bump`` says that no peak is established;
that there is none needs more: its interval must leave no room for one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lit_bump.claims.finding import Part, Verdict
from lit_bump.measure import Bump, Formation, Profile

NO_PEAK = 2.0  # the interval of the largest ratio must stay below it; trained networks peak at several times that
EARLY = 0.5  # share of training: at steady growth the log height would be half-way only there


def in_short(bump: Bump) -> str:
    """Return a bump in words, without why it is not one: the claim's text says what was asked.

    Args:
        bump: of any verdict.

    Returns:
        One line.

    """
    return str(bump if bump.verdict == "undefined" else replace(bump, reason=""))


def no_peak(label: str, profile: Profile | None, probe: str, *, may_rise: bool = False) -> Part:
    """Judge that there is no interior peak.

    Args:
        label: of the condition.
        profile: what was measured, or None.
        probe: name of the probe set, or the step.
        may_rise: whether a rise to the end of the ladder counts as no peak, as at initialisation.

    Returns:
        Text and verdict.

    """
    if profile is None:
        return f"{label}, {probe}: not measured", "undecided"
    bump = profile.bump()
    verdict: Verdict = "undecided"
    if bump.verdict == "bump":
        verdict = "does not hold"
    elif (bump.verdict == "none" and bump.height_interval[1] < NO_PEAK) or (bump.verdict == "rising" and may_rise):
        verdict = "holds"
    return f"{label}, {probe}: {in_short(bump)}", verdict


def has_peak(label: str, profile: Profile | None, probe: str) -> Part:
    """Judge that there is an interior peak.

    Args:
        label: of the condition.
        profile: what was measured, or None.
        probe: name of the probe set.

    Returns:
        Text and verdict; a peak beyond the ladder is undecided.

    """
    if profile is None:
        return f"{label}, {probe}: not measured", "undecided"
    bump = profile.bump()
    verdict: Verdict = "undecided"
    if bump.verdict == "bump":
        verdict = "holds"
    elif bump.verdict == "none" and bump.height_interval[1] < NO_PEAK:
        verdict = "does not hold"
    return f"{label}, {probe}: {in_short(bump)}", verdict


def forms_early(label: str, formation: Formation | None) -> Part:
    """Judge that the bump forms before the middle of training and is then kept.

    It is followed at the rung of its final peak: formed is where the log ratio there has reached half of its final
    value. Where a random network's rise reaches that rung, this rule takes it for a bump; the text therefore also says
    from which step on there is an interior peak.

    Args:
        label: of the condition.
        formation: medians over training, or None.

    Returns:
        Text and verdict; undecided without a bump at the end.

    """
    if formation is None or len(formation) < 3:
        return f"{label}: no formation measured", "undecided"
    final = formation.profiles[-1]
    bump = final.bump()
    if bump.verdict != "bump":
        return f"{label}: no bump at the end to form ({bump.verdict})", "undecided"
    rung = int(np.nanargmax(final.median()))
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = np.log([profile.median()[rung] for profile in formation.profiles])
    half = heights[-1] / 2
    formed = ~(heights < half) & np.isfinite(heights)
    first = int(np.argmax(formed))
    step, last = formation.steps[first], formation.steps[-1]
    share = step / last
    kept = formation.steps[_first_of_the_rest([bump.verdict == "bump" for bump in formation.bumps()])]
    text = (
        f"{label}: an interior peak from step {kept:,} on, {kept / last:.1%} of {last:,}; "
        f"half of the log height at eta {final.etas[rung]:.3g} at step {step:,}, {share:.1%}"
    )
    lost = [step for step, there in zip(formation.steps[first:], formed[first:], strict=True) if not there]
    if lost:
        return f"{text}; below it again at {', '.join(f'{step:,}' for step in lost)}", "does not hold"
    if first == 0:
        return f"{text}: it was there from the start", "does not hold"
    return f"{text}; kept", "holds" if share < EARLY and math.isfinite(half) else "does not hold"


def _first_of_the_rest(there: list[bool]) -> int:
    """Return the first place from which on all are true; the last one is."""
    return max((place + 1 for place, one in enumerate(there) if not one), default=0)
