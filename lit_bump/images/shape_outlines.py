"""The ten outlines of the drawn shapes, as distances in pixels: negative inside, positive outside.

Not in the paper. Needs NumPy alone. A distance clipped to half a pixel either side is the anti-aliased coverage, so it
has to be right near the outline only. Plain sums, products, square roots and comparisons: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Outline = Callable[[Array, Array, Array], Array]  # x, y in the frame of the shape, and its radius

_FIFTHS = (  # unit vectors every 72 degrees, rounded
    (np.float32(1.0), np.float32(0.0)),
    (np.float32(0.30901699), np.float32(0.95105652)),
    (np.float32(-0.80901699), np.float32(0.58778525)),
    (np.float32(-0.80901699), np.float32(-0.58778525)),
    (np.float32(0.30901699), np.float32(-0.95105652)),
)
_HALF = np.float32(0.5)
_ROOT3_HALF = np.float32(0.8660254)


def _disk(x: Array, y: Array, radius: Array) -> Array:
    return np.asarray(np.sqrt(x * x + y * y) - radius)


def _ring(x: Array, y: Array, radius: Array) -> Array:
    half = np.float32(0.2) * radius
    return np.asarray(np.abs(_disk(x, y, radius - half)) - half)


def _square(x: Array, y: Array, radius: Array) -> Array:
    return np.asarray(np.maximum(np.abs(x), np.abs(y)) - np.float32(0.85) * radius)


def _square_outline(x: Array, y: Array, radius: Array) -> Array:
    half = np.float32(0.18) * radius
    return np.asarray(np.abs(_square(x, y, radius) + half) - half)


def _triangle(x: Array, y: Array, radius: Array) -> Array:
    side = np.maximum(_ROOT3_HALF * np.abs(x) + _HALF * y, -y)
    return np.asarray(side - np.float32(0.58) * radius)


def _plus(x: Array, y: Array, radius: Array) -> Array:
    across, along = np.abs(x), np.abs(y)
    width = np.float32(0.34) * radius
    bars = np.minimum(np.maximum(across - radius, along - width), np.maximum(along - radius, across - width))
    return np.asarray(bars)


def _star(x: Array, y: Array, radius: Array) -> Array:
    """Return the distance to a pentagram: a point is in it when at most one of its five lines is crossed.

    Args:
        x: position across.
        y: position along.
        radius: size of the shape.

    Returns:
        The second largest of the distances to the five lines.

    """
    largest = np.full_like(x, -np.inf)
    second = largest
    for right, up in _FIFTHS:
        line = right * x + up * y
        second = np.maximum(second, np.minimum(largest, line))
        largest = np.maximum(largest, line)
    return np.asarray(second - np.float32(0.38) * radius)


def _crescent(x: Array, y: Array, radius: Array) -> Array:
    bite = _disk(x - np.float32(0.5) * radius, y, np.float32(0.8) * radius)
    return np.asarray(np.maximum(_disk(x, y, radius), -bite))


def _striped_disk(x: Array, y: Array, radius: Array) -> Array:
    return np.asarray(np.maximum(_disk(x, y, radius), _stripes(x, np.float32(0.66) * radius)))


def _checkered_square(x: Array, y: Array, radius: Array) -> Array:
    period = np.float32(0.85) * radius
    quarter = np.float32(0.25) * period
    across, along = _stripes(x + quarter, period), _stripes(y + quarter, period)
    checkers = np.maximum(np.minimum(across, along), -np.maximum(across, along))
    return np.asarray(np.maximum(_square(x, y, radius), -checkers))


def _stripes(x: Array, period: Array) -> Array:
    """Return the distance to stripes across x, half of a period wide, one of them around 0.

    Args:
        x: position across.
        period: distance from one stripe to the next.

    Returns:
        Negative inside a stripe.

    """
    turns = x / period
    return np.asarray((np.abs(turns - np.rint(turns)) - np.float32(0.25)) * period)


OUTLINES: dict[str, Outline] = {
    "disk": _disk,
    "ring": _ring,
    "square": _square,
    "square outline": _square_outline,
    "triangle": _triangle,
    "plus": _plus,
    "star": _star,
    "crescent": _crescent,
    "striped disk": _striped_disk,
    "checkered square": _checkered_square,
}
