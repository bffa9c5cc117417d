r"""How many pairs every image and rung needs for the standard error that was asked for, and in which precision.

Paper: A.2 takes 1024 everywhere; most rungs need far fewer. Needs NumPy alone.
A decision rests on the pairs of its own image alone, so it is the same for every chunk and number of processes. With
coarse pairs of spread s at cost c, and float32 ones that correct them of spread t at cost 1, the cheapest n and p with
:math:`s^2 / n + t^2 / p = v` are in the ratio :math:`s / \sqrt{c} : t` (Giles' multilevel rule).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lit_bump.measure.control_variate import FEW_PAIRS, RatioEstimate

STEP = 4  # numbers of pairs are multiples of this
PAIRS_SHARE = 0.5  # of the squared target that the pairs get at least, whatever error the prediction has
MOST_GROWTH = 3  # times as many pairs in one round: the spread of a few is known roughly
NEGLIGIBLE = 0.25  # of the prediction's variance: pairs that add no more than this are enough
SLACK = 1.05  # so that a plan which comes out as expected meets the target
COARSE_COST = 0.3  # of a float32 evaluation; measured between 0.1 and 0.35


class Plan(NamedTuple):
    """Say how many pairs an image and rung is to have.

    Args:
        n_pairs: pairs in all, in low precision where the rung is coarse.
        n_fine: the first of them that are evaluated in float32.

    """

    n_pairs: int
    n_fine: int


def planned_pairs(estimate: RatioEstimate, target: float, most: int) -> Plan:
    """Return the numbers that bring the relative standard error to the target, or as near as one round may go.

    Args:
        estimate: from the pairs so far.
        target: standard error over ratio.
        most: pairs at most.

    Returns:
        Numbers, never below those that are there; the same where the target is met or the error is unknown.

    """
    now = Plan(estimate.n_pairs, estimate.n_fine)
    allowed = (target * estimate.ratio) ** 2
    if not math.isfinite(estimate.standard_error) or estimate.standard_error**2 <= allowed:
        return now
    if estimate.is_raised:  # from so many pairs on its own spread counts
        most = min(most, max(FEW_PAIRS, now.n_pairs))
    if estimate.pairs_variance < NEGLIGIBLE * estimate.prediction_variance:
        return now  # more pairs would not help
    allowed = max(allowed - estimate.prediction_variance, PAIRS_SHARE * allowed) / SLACK
    if not estimate.is_coarse:
        n_pairs = _rounded(estimate.spread**2 / allowed, now.n_pairs, most)
        return Plan(n_pairs, n_pairs)
    coarse, fine = _cheapest(estimate.spread, estimate.correction_spread, allowed)
    n_pairs = _rounded(coarse, now.n_pairs, most)
    return Plan(n_pairs, min(_rounded(fine, now.n_fine, most), n_pairs))


def coarse_pays(fine: RatioEstimate, coarse: RatioEstimate, target: float) -> bool:
    """Return whether low precision reaches the target at less cost.

    Args:
        fine: estimate from the pilot in float32.
        coarse: the same from the pilot in low precision with its correction.
        target: standard error over ratio.

    Returns:
        False also where either error is unknown.

    """
    allowed = (target * fine.ratio) ** 2
    allowed = max(allowed - fine.prediction_variance, PAIRS_SHARE * allowed)
    if not (math.isfinite(fine.standard_error) and math.isfinite(coarse.standard_error) and allowed > 0):
        return False
    n_pairs, n_fine = _cheapest(coarse.spread, coarse.correction_spread, allowed)
    return COARSE_COST * n_pairs + max(n_fine - fine.n_pairs, 0) < fine.spread**2 / allowed - fine.n_pairs


def _cheapest(spread: float, correction_spread: float, allowed: float) -> tuple[float, float]:
    if allowed <= 0:
        return math.inf, math.inf
    root = math.sqrt(COARSE_COST)
    both = spread * root + correction_spread
    return spread / root * both / allowed, correction_spread * both / allowed


def _rounded(wanted: float, now: int, most: int) -> int:
    limited = min(max(wanted, now + 1), MOST_GROWTH * now)  # the target is not met: some more in any case
    return max(now, min(most, math.ceil(limited / STEP) * STEP))
