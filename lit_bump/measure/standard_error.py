"""Means over direction pairs, and the standard error of their ratio.

Paper: eq. 1; the error itself is not in the paper. Needs NumPy alone.
A pair (u, -u) is one draw: its two displacements are averaged first, since they are not independent.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

FloatArray = np.ndarray


def ratio_standard_error(
    displacement: Float[FloatArray, "image pair rung"],
    sensitivity: Float[FloatArray, "image jvp"],
    ratio: Float[FloatArray, "image rung"],
) -> Float[FloatArray, "image rung"]:
    r"""Return the standard error of every ratio, by the delta method over pairs.

    With :math:`\bar D` the mean over N pairs and :math:`\bar S` the mean over the first M of them,

    .. math:: (se / r)^2 = Var(D) / (N \bar D^2) + Var(S) / (M \bar S^2) - 2 Cov(D, S) / (N \bar D \bar S),

    the covariance of the two means being Cov(D, S) / N because every one of the M pairs is among the N. Matched
    directions (M = N) on the plateau, where D is proportional to S, give exactly 0.

    Args:
        displacement: D of every pair.
        sensitivity: squared length of J u of the first pairs.
        ratio: the ratios themselves.

    Returns:
        Standard errors, ``(image, rung)``; NaN where they cannot be known: fewer than two pairs, or an undefined ratio.

    Example:
        >>> s = np.array([[1.0, 2.0, 3.0]])
        >>> d = 0.25 * s[:, :, None]  # a linear encoder at eta = 0.5
        >>> ratio_standard_error(d, s, np.ones((1, 1)))
        array([[0.]])

    """
    n_pairs, n_jvp = displacement.shape[1], sensitivity.shape[1]
    if min(n_pairs, n_jvp) < 2:
        return np.full_like(ratio, np.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        d = displacement / displacement.mean(axis=1, keepdims=True) - 1.0
        s = (sensitivity / sensitivity.mean(axis=1, keepdims=True) - 1.0)[:, :, None]
        head = displacement[:, :n_jvp] / displacement.mean(axis=1, keepdims=True)
        head = head - head.mean(axis=1, keepdims=True)
        if n_pairs == n_jvp:  # the same quantity, without the cancellation of three large terms
            variance = np.square(d - s).sum(axis=1) / (n_pairs - 1) / n_pairs
        else:
            variance = (
                np.square(d).sum(axis=1) / (n_pairs - 1) / n_pairs
                + np.square(s).sum(axis=1) / (n_jvp - 1) / n_jvp
                - 2.0 * (head * s).sum(axis=1) / (n_jvp - 1) / n_pairs
            )
        error = np.asarray(np.abs(ratio) * np.sqrt(np.maximum(variance, 0.0)))
    return np.where(np.isfinite(ratio) & np.isfinite(error), error, np.nan)
