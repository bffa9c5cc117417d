r"""One ratio and its standard error from the displacements of n pairs, with what the Jacobian knows as control variate.

Paper: eq. 1; the estimator is ours (docs/estimators.md has the derivation). Needs NumPy alone.
Up to the peak the displacement follows :math:`\|J u\|^2`, whose mean over the sphere is known nearly exactly. With c
that quantity, mu its mean and b the slope of the regression of D on c over the pairs,
:math:`\bar D + b (\mu - \bar c)` has only the variance that c does not explain: none for an affine encoder, whose ratio
is 1 exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from lit_bump.measure.bump import NORMAL_QUANTILE
from lit_bump.measure.prediction import LocalPrediction

FloatArray = np.ndarray
KURTOSIS_COST = 2  # times fewer degrees of freedom in the variance of residuals of kurtosis 5 than of normal ones
FEW_PAIRS = 32  # from here on the intervals of a rung's own spread cover (measured: docs/estimators.md)
FLAT = 1e-4  # relative spread up to which a control is all rounding, as of an isometry: a slope on it would be noise
LEAST_FIT = 6  # pairs from which on a slope is fitted; below, the ratio of the two means is taken, which is positive


@dataclass(frozen=True)
class RatioEstimate:
    """Hold a ratio, and where its error comes from.

    Args:
        ratio: r.
        standard_error: scaled so that 1.645 of it is the half-width of a 90 % interval also for few pairs (Student's
            t); NaN where it cannot be known.
        n_pairs: pairs used.
        n_fine: those of them that were evaluated in float32.
        spread: standard deviation of one pair's contribution.
        correction_spread: standard deviation of one pair's correction; 0 where there is none.
        prediction_variance: the part of the variance that more pairs do not reduce.
        is_raised: whether the spread is that of the rung above (``with_unseen``).

    """

    ratio: float
    standard_error: float
    n_pairs: int
    n_fine: int
    spread: float = math.nan
    correction_spread: float = 0.0
    prediction_variance: float = 0.0
    is_raised: bool = False

    @property
    def pairs_variance(self) -> float:
        """The part of the variance that more pairs reduce."""
        return self.spread**2 / self.n_pairs + self.correction_spread**2 / self.n_fine

    @property
    def is_coarse(self) -> bool:
        """Whether low precision was used."""
        return self.correction_spread > 0

    @classmethod
    def undefined(cls, n_pairs: int, n_fine: int) -> RatioEstimate:
        """Return the estimate of a ratio that is not defined."""
        return cls(math.nan, math.nan, n_pairs, n_fine)


def controlled_ratio(
    displacement: Float[FloatArray, " pair"],
    correction: Float[FloatArray, " corrected"],
    eta: float,
    prediction: LocalPrediction,
    control: Float[FloatArray, " known"],
) -> RatioEstimate:
    r"""Return r of one image and rung.

    The control is :math:`\|J u\|^2` where it is known for every pair, and :math:`\|A u\|^2` else. The standard error
    sums the influence of every pair on the ratio through all three means: displacement, prediction and correction.

    Args:
        displacement: D of the first pairs, in whatever precision.
        correction: D in float32 less D, for the first of them; empty where D is in float32.
        eta: size of the step.
        prediction: of this image.
        control: :math:`\|A u\|^2` of at least as many pairs.

    Returns:
        The estimate; NaN in its errors for fewer than three pairs.

    """
    n, m = displacement.size, prediction.squares.size
    n_fine = correction.size or n
    scale = prediction.value
    if not (scale > 0 and np.isfinite(displacement).all() and math.isfinite(scale)):
        return RatioEstimate.undefined(n, n_fine)
    y = displacement / (eta * eta * scale)
    delta = correction / (eta * eta * scale)
    is_matched = n <= m
    c = (prediction.squares[:n] if is_matched else control[:n]) / scale
    mean = 1.0 if is_matched else prediction.captured / scale
    centred = c - c.mean()
    spread = float(centred @ centred)
    weight, leverage = np.full(n, 1.0 / n), np.full(n, 1.0 / n)
    if n >= LEAST_FIT and spread > n * (FLAT * float(c.mean())) ** 2:
        slope, freedom = float(centred @ y) / spread, n - 2
        weight = weight + (mean - c.mean()) * centred / spread
        leverage = leverage + np.square(centred) / spread
    else:
        slope, freedom = float(y.mean() / c.mean()) if is_matched and c.mean() > 0 else 0.0, n - 1  # ratio of the means
    ratio = float(y.mean() + slope * (mean - c.mean()) + (delta.mean() if delta.size else 0.0))
    if n < 3 or m < 2:
        return RatioEstimate(ratio, math.nan, n, n_fine)

    # influence of every pair on the ratio, in the form of a jackknife
    residual = y - y.mean() - slope * centred
    own = weight * residual / np.maximum(1.0 - leverage, 0.1) * math.sqrt((n - 1) / n)
    through_prediction = -(ratio - slope * is_matched) * _influence(prediction.remainders / scale)
    through_correction = _influence(delta) if delta.size > 1 else np.zeros(0)
    total = np.zeros(max(n, m))
    total[:n] += own
    total[:m] += through_prediction
    total[: delta.size] += through_correction
    variance = float(total @ total)
    parts = [float(part @ part) for part in (own, through_prediction, through_correction)]
    factor = _student_factor(parts, [freedom / KURTOSIS_COST, float(m - 1), float(max(delta.size - 1, 1))])
    return RatioEstimate(
        ratio,
        factor * math.sqrt(variance),
        n,
        n_fine,
        spread=math.sqrt(n * parts[0]),
        correction_spread=math.sqrt(delta.size * parts[2]),
        prediction_variance=parts[1],
    )


def with_unseen(estimates: Sequence[RatioEstimate], etas: Sequence[float]) -> list[RatioEstimate]:
    """Return the estimates of one image's rungs of few pairs with no smaller spread than the rung above implies.

    A few pairs may meet no border of an activation region, and then state no error at all. More pairs of the rung above
    do. Of a smooth encoder the spread grows as the square of eta, and of others more slowly, so that the spread above,
    times the squared ratio of the sizes, is what can be expected at least.

    Args:
        estimates: of the rungs, from the smallest.
        etas: their sizes.

    Returns:
        The same, some with a larger spread and standard error.

    """
    result = list(estimates)
    for rung in range(len(result) - 2, -1, -1):
        own, unseen = result[rung], result[rung + 1].spread * (etas[rung] / etas[rung + 1]) ** 2
        if own.n_pairs < FEW_PAIRS and unseen > own.spread:  # neither is NaN
            variance = own.standard_error**2 + (unseen**2 - own.spread**2) / own.n_pairs
            result[rung] = replace(own, spread=unseen, standard_error=math.sqrt(variance), is_raised=True)
    return result


def _influence(values: Float[FloatArray, " draw"]) -> Float[FloatArray, " draw"]:
    """Return the influence of every draw on the mean; the squares sum to the mean's estimated variance."""
    n = values.size
    return np.asarray((values - values.mean()) / math.sqrt(n * (n - 1)))


def _student_factor(variances: list[float], freedoms: list[float]) -> float:
    """Return by how much a 90 % interval is wider than the normal one (degrees of freedom after Satterthwaite)."""
    total = sum(variances)
    if total == 0:
        return 1.0
    freedom = max(1.0, 1.0 / sum((v / total) ** 2 / f for v, f in zip(variances, freedoms, strict=True)))
    return student_quantile(freedom) / NORMAL_QUANTILE


def student_quantile(freedom: float) -> float:
    """Return the 95 % point of Student's t, by its expansion in 1 / freedom (below 0.5 % off from 3 on).

    Args:
        freedom: degrees of freedom, at least 1.

    Returns:
        The quantile; 1.645 for infinitely many.

    Example:
        >>> [round(student_quantile(f), 2) for f in (6.0, 30.0, 1e9)]
        [1.94, 1.7, 1.64]

    """
    z = NORMAL_QUANTILE
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**k for k, term in enumerate(terms, start=1))
