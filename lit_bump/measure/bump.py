"""The bump of a response profile: is there one, how high, where, how wide.

Paper: section 3 "A characteristic bump after training" (plateau, rise, interior peak, decay); the paper reads it by
eye, so the definition below is ours and the only one: callback, files and figures use it. Needs NumPy alone.
Everything is read from the median profile over images; the intervals come from resampling the images, or from the
standard errors of a single one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

FloatArray = np.ndarray
Interval = tuple[float, float]
Verdict = Literal["bump", "rising", "none", "undefined"]

MARGIN = 1.1  # a rise above the plateau, or a fall after the peak, counts from 10 % on; also the level of the onset
CONFIDENCE = 0.9  # of every interval
NORMAL_QUANTILE = 1.6448536269514722  # of (1 + CONFIDENCE) / 2
N_RESAMPLES = 500
MIN_KEPT_SHARE = 0.5  # a rung whose median rests on fewer images is not used
_NAN_INTERVAL = (float("nan"), float("nan"))


@dataclass(frozen=True)
class Bump:
    """What a median profile shows. Fields that have no meaning for the verdict are NaN.

    Args:
        verdict: ``bump``: the largest ratio lies on an interior rung, and it exceeds both the plateau (1) and the last
            rung by 10 % at the lower end of its interval. ``rising``: it exceeds the plateau so, but the last kept rung
            is not below it: the ladder ends before the peak. ``none``: it does not exceed the plateau so.
            ``undefined``: fewer than three rungs are kept; or the largest ratio is on the first kept rung; or the
            plateau was never seen: rungs below the first kept one are discarded, the median there is not within 10 % of
            1, and no ratio is above both it and 1 by 10 %. A single image whose standard errors are unknown
            (fewer than two pairs) has no intervals: the verdict rests on its curve alone, and the reason says so.
        height: largest median ratio over the kept rungs; for every verdict but ``undefined``.
        eta: place of the peak (L2, [0, 1] pixels): vertex of the parabola through the largest rung and its neighbours
            in log eta and log ratio; for ``bump`` alone.
        log10_eta: its decimal logarithm.
        width_decades: decades of eta between the crossings of 1 + (height - 1) / 2; NaN where the ladder ends first.
        onset_eta: first eta at which the median ratio passes 1.1, by log-linear interpolation.
        decay: slope of log ratio against log eta from the peak to the last kept rung, negative; for ``bump`` alone.
        height_interval: 90 % interval of the height; this and the next three are NaN where they cannot be known.
        log10_eta_interval: 90 % interval of the place.
        width_interval: 90 % interval of the width.
        onset_interval: 90 % interval of the onset.
        reason: why the verdict is not ``bump``, and why there are no intervals, in words; empty for a ``bump`` with
            intervals.

    """

    verdict: Verdict
    height: float
    eta: float
    log10_eta: float
    width_decades: float
    onset_eta: float
    decay: float
    height_interval: Interval = _NAN_INTERVAL
    log10_eta_interval: Interval = _NAN_INTERVAL
    width_interval: Interval = _NAN_INTERVAL
    onset_interval: Interval = _NAN_INTERVAL
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return dict(self.__dict__)

    def __str__(self) -> str:
        """Return verdict, height and place with their intervals, where there are any, in one line."""
        if self.verdict == "undefined":
            return f"undefined: {self.reason}"
        text = f"{self.verdict}: max r {self.height:.3g}{_shown(self.height_interval)}"
        if self.verdict == "bump":
            low, high = self.log10_eta_interval
            text += f" at eta {self.eta:.3g}{_shown((10.0**low, 10.0**high))}"
        return text + (f" ({self.reason})" if self.reason else "")


def median_over_images(ratio: Float[FloatArray, "*resample image rung"]) -> Float[FloatArray, "*resample rung"]:
    """Return the median over the images whose ratio is defined; NaN where there is none.

    Args:
        ratio: ratios, NaN where discarded.

    Returns:
        Medians over the axis ``image``.

    Example:
        >>> median_over_images(np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]]))
        array([ 2., nan])

    """
    ordered = np.sort(ratio, axis=-2)  # NaN last
    count = np.isfinite(ratio).sum(axis=-2)
    low, high = np.maximum((count - 1) // 2, 0), np.maximum(count // 2, 0)
    high = np.minimum(high, ratio.shape[-2] - 1)
    pick = np.stack([low, high], axis=-2)
    return np.asarray(np.take_along_axis(ordered, pick, axis=-2).mean(axis=-2))


def describe_bump(
    etas: Float[FloatArray, " rung"],
    ratio: Float[FloatArray, "image rung"],
    standard_error: Float[FloatArray, "image rung"],
    *,
    seed: int = 0,
) -> Bump:
    """Return the bump of the median profile, with intervals.

    Args:
        etas: increasing perturbation sizes.
        ratio: ratios, NaN where discarded.
        standard_error: their standard errors; used for the intervals of a single image, which cannot be resampled, and
            which has none where they are NaN.
        seed: seed of the resampling; the global random streams are left alone.

    Returns:
        The description; see ``Bump`` for its one definition.

    """
    kept = np.isfinite(ratio).mean(axis=0) >= MIN_KEPT_SHARE
    if kept.sum() < 3:
        return _undefined(f"{int(kept.sum())} of {etas.size} rungs are kept in half of the images; 3 are needed")
    log_etas, ratio, standard_error = np.log10(etas[kept]), ratio[:, kept], standard_error[:, kept]
    curve = median_over_images(ratio)
    shapes = curve_shapes(log_etas, curve[None])
    has_intervals = len(ratio) > 1 or bool(np.isfinite(standard_error).all())
    medians = _resampled_medians(ratio, standard_error, seed) if has_intervals else curve[None]
    resampled = curve_shapes(log_etas, medians)
    peak, height = int(np.argmax(curve)), float(curve.max())
    # at the curve's own peak: the largest of many noisy rungs would exceed the plateau in every resample
    low = (1.0 - CONFIDENCE) / 2.0
    rise = float(np.nanquantile(medians[:, peak], low))
    fall = float(np.nanquantile(medians[:, peak] / medians[:, -1], low))
    onset = float(shapes["onset"][0])
    described = {
        "height": height,
        "onset_eta": 10.0**onset,
        "height_interval": central_interval(resampled["height"]) if has_intervals else _NAN_INTERVAL,
        "onset_interval": (
            central_interval(10.0 ** resampled["onset"]) if has_intervals and np.isfinite(onset) else _NAN_INTERVAL
        ),
    }
    no_interval = "" if has_intervals else "no interval: the standard errors of the one image are unknown"
    nothing: dict[str, Any] = dict.fromkeys(("eta", "log10_eta", "width_decades", "decay"), float("nan"))
    is_flat = rise < MARGIN or height < MARGIN
    plateau_unseen = not kept[0] and not 1.0 / MARGIN <= curve[0] <= MARGIN
    if (plateau_unseen and (is_flat or height / curve[0] < MARGIN)) or (peak == 0 and not is_flat):
        at_first = "the largest ratio is on the first kept rung: " if peak == 0 and not is_flat else ""
        return _undefined(f"{at_first}the ladder begins beyond the plateau")
    if is_flat:
        reason = f"the largest ratio is not above {MARGIN}" + (" within its interval" if has_intervals else "")
        return Bump(verdict="none", **described, **nothing, reason=_joined(reason, no_interval))
    if peak == curve.size - 1 or fall < MARGIN or height / curve[-1] < MARGIN:
        reason = "the largest ratio is at or near the last kept rung: the ladder ends before the decay"
        return Bump(verdict="rising", **described, **nothing, reason=_joined(reason, no_interval))
    place, width = float(shapes["place"][0]), float(shapes["width"][0])
    return Bump(
        verdict="bump",
        **described,
        eta=10.0**place,
        log10_eta=place,
        width_decades=width,
        decay=float(np.polyfit(log_etas[peak:], np.log10(curve[peak:]), 1)[0]),
        log10_eta_interval=central_interval(resampled["place"]) if has_intervals else _NAN_INTERVAL,
        width_interval=central_interval(resampled["width"]) if has_intervals and np.isfinite(width) else _NAN_INTERVAL,
        reason=no_interval,
    )


def _shown(interval: Interval) -> str:
    low, high = interval
    return f" [{low:.3g}, {high:.3g}]" if np.isfinite(interval).all() else ""


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _undefined(reason: str) -> Bump:
    nan = float("nan")
    return Bump("undefined", nan, nan, nan, nan, nan, nan, reason=reason)


def central_interval(values: Float[FloatArray, " resample"]) -> Interval:
    """Return the central interval, or NaN where fewer than half of the resamples have a value.

    Args:
        values: of all resamples; NaN where there is none.

    Returns:
        Lower and upper end, at ``CONFIDENCE``.

    """
    finite = values[np.isfinite(values)]
    if 2 * finite.size < values.size:
        return _NAN_INTERVAL
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(finite, [tail, 1.0 - tail])
    return float(low), float(high)


def median_interval(
    ratio: Float[FloatArray, "image rung"], standard_error: Float[FloatArray, "image rung"], *, seed: int
) -> Float[FloatArray, "2 rung"]:
    """Return the 90 % interval of the median of every rung, over images and directions together.

    Images are drawn with replacement. Each brings the error of its own directions with it, which no other image shares,
    so that the spread of the resamples holds both. A single image has the interval of its standard error.

    Args:
        ratio: ratios, NaN where discarded.
        standard_error: their standard errors, for a single image.
        seed: seed of the resampling; the global random streams are left alone.

    Returns:
        Lower and upper end; NaN where no image is kept, or where it cannot be known.

    """
    if len(ratio) == 1:
        return np.stack(
            [ratio[0] - NORMAL_QUANTILE * standard_error[0], ratio[0] + NORMAL_QUANTILE * standard_error[0]]
        )
    interval = np.full((2, ratio.shape[1]), np.nan)
    kept = np.isfinite(ratio).any(axis=0)
    if kept.any():
        medians = _resampled_medians(ratio[:, kept], standard_error[:, kept], seed)
        interval[:, kept] = np.nanquantile(medians, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0], axis=0)
    return interval


def _resampled_medians(
    ratio: Float[FloatArray, "image rung"], standard_error: Float[FloatArray, "image rung"], seed: int
) -> Float[FloatArray, "resample rung"]:
    """Return medians of images drawn with replacement; a single image is varied by its standard error instead."""
    rng = np.random.default_rng(seed)
    n_images, n_rungs = ratio.shape
    if n_images == 1:
        normal = rng.standard_normal((N_RESAMPLES, n_rungs))
        return np.asarray(np.maximum(ratio + standard_error * normal, np.finfo(np.float64).tiny))
    drawn = ratio[rng.integers(n_images, size=(N_RESAMPLES, n_images))]
    return np.asarray(median_over_images(drawn))


def curve_shapes(
    log_etas: Float[FloatArray, " rung"], curves: Float[FloatArray, "curve rung"]
) -> dict[str, Float[FloatArray, " curve"]]:
    """Return height, place, width and onset (log10 eta) of many curves; NaN where there is none."""
    curves = np.where(np.isfinite(curves), curves, 0.0)  # a resample without images at a rung: below every level
    row, last = np.arange(len(curves)), curves.shape[1] - 1
    peak = curves.argmax(axis=1)
    height = curves[row, peak]
    interior = (peak > 0) & (peak < last)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_curves = np.log10(curves)
        place = _parabola_vertex(log_etas, log_curves, np.clip(peak, 1, last - 1))
        level = np.log10(1.0 + (height - 1.0) / 2.0)
        column = np.arange(last + 1)
        below = log_curves < level[:, None]
        left = np.where(below & (column < peak[:, None]), column, -1).max(axis=1)
        right = np.where(below & (column > peak[:, None]), column, last + 1).min(axis=1)
        width = _crossing(log_etas, log_curves, right - 1, level) - _crossing(log_etas, log_curves, left, level)
        above = log_curves > np.log10(MARGIN)
        first = np.where(above.any(axis=1), above.argmax(axis=1), 0)
        onset = _crossing(log_etas, log_curves, first - 1, np.full(len(curves), np.log10(MARGIN)))
    return {
        "height": np.where(height > 0, height, np.nan),
        "place": np.where(interior, place, np.nan),
        "width": np.where(interior, width, np.nan),
        "onset": onset,
    }


def _parabola_vertex(
    x: Float[FloatArray, " rung"], y: Float[FloatArray, "curve rung"], middle: np.ndarray
) -> Float[FloatArray, " curve"]:
    """Return the abscissa of the vertex of the parabola through three neighbouring points."""
    row = np.arange(len(y))
    x0, x1, x2 = x[middle - 1], x[middle], x[middle + 1]
    rise, fall = y[row, middle] - y[row, middle - 1], y[row, middle] - y[row, middle + 1]
    numerator = np.square(x1 - x0) * fall - np.square(x1 - x2) * rise
    denominator = (x1 - x0) * fall - (x1 - x2) * rise
    vertex = x1 - 0.5 * np.where(denominator != 0, numerator / denominator, 0.0)
    return np.asarray(np.clip(np.where(np.isfinite(vertex), vertex, x1), x0, x2))


def _crossing(
    x: Float[FloatArray, " rung"], y: Float[FloatArray, "curve rung"], left: np.ndarray, level: np.ndarray
) -> Float[FloatArray, " curve"]:
    """Return where the segment from point ``left`` to the next crosses ``level``; NaN outside of the ladder."""
    row, inside = np.arange(len(y)), (left >= 0) & (left < len(x) - 1)
    at = np.clip(left, 0, len(x) - 2)
    share = (level - y[row, at]) / (y[row, at + 1] - y[row, at])
    return np.asarray(np.where(inside & np.isfinite(share), x[at] + share * (x[at + 1] - x[at]), np.nan))
