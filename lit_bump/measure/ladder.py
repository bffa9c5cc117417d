"""The ladder: the perturbation sizes eta at which a response profile is measured.

Paper: A.2 "Protocol": 17 logarithmic rungs over four decades, 10^-2..10^2 at 3x224x224, 10^-2.85..10^1.15 at 3x32x32.
Needs nothing but NumPy. The second range is the first one at the same amplitude per pixel: eta scales as sqrt(d).
"""

from __future__ import annotations

import math

import numpy as np

from lit_bump.errors import LitBumpError

N_RUNGS = 17
REFERENCE_DIM = 3 * 224 * 224  # the input size at which the paper states its ladder
REFERENCE_LOG10_ETAS = (-2.0, 2.0)
CIFAR_SIZE = (3, 32, 32)
CIFAR_LOG10_ETAS = (-2.85, 1.15)  # the paper's rounded figures; the exact rule gives -2.845 and 1.155


def logarithmic_etas(log10_first: float, log10_last: float, n_rungs: int = N_RUNGS) -> tuple[float, ...]:
    """Return ``n_rungs`` logarithmically spaced perturbation sizes, ends included.

    Args:
        log10_first: log10 of the smallest eta (L2, [0, 1] pixels).
        log10_last: log10 of the largest eta.
        n_rungs: number of rungs, at least 1.

    Returns:
        Increasing perturbation sizes.

    Raises:
        LitBumpError: if there is no rung or the ends are not increasing.

    Example:
        >>> [round(eta, 3) for eta in logarithmic_etas(-1.0, 1.0, 3)]
        [0.1, 1.0, 10.0]

    """
    if n_rungs < 1:
        raise LitBumpError(f"n_rungs is {n_rungs}; a ladder needs at least 1 rung")
    if n_rungs > 1 and not log10_first < log10_last:
        raise LitBumpError(f"the ladder runs from 10^{log10_first} to 10^{log10_last}; the first must be the smaller")
    return tuple(float(eta) for eta in 10.0 ** np.linspace(log10_first, log10_last, n_rungs))


def ladder(input_size: tuple[int, int, int], n_rungs: int = N_RUNGS) -> tuple[float, ...]:
    """Return the paper's ladder for inputs of any size, at equal amplitude per pixel.

    Args:
        input_size: channels, height and width of the images.
        n_rungs: number of rungs; the paper takes 17.

    Returns:
        Increasing perturbation sizes (L2, [0, 1] pixels) over four decades.

    Raises:
        LitBumpError: if a size is below 1.

    Example:
        >>> round(ladder((3, 224, 224))[0], 4), round(ladder((3, 32, 32))[-1], 2)
        (0.01, 14.13)

    """
    if len(input_size) != 3 or min(input_size) < 1:
        raise LitBumpError(f"input_size is {input_size}; give (channels, height, width), each at least 1")
    if tuple(input_size) == CIFAR_SIZE:
        first, last = CIFAR_LOG10_ETAS
    else:
        shift = 0.5 * math.log10(math.prod(input_size) / REFERENCE_DIM)
        first, last = (end + shift for end in REFERENCE_LOG10_ETAS)
    return logarithmic_etas(first, last, n_rungs)
