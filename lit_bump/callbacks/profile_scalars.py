"""The scalars of a measurement and their tags, each defined here and nowhere else.

Paper: section 3 (height, place and width of the peak). They are read from the row of the formation table. Loggers get
finite numbers only; ``trainer.callback_metrics`` has every key from step 0 on, NaN where there is no peak, so that a
monitor finds it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lit_bump.callbacks.formation_table import Row

FIGURE_TAG = "bump/profile/{}"
TENSOR_TAG = "bump/tensor/{}"
LOG_STEP_TAG = "bump_vs_1000log10step/max_r/{}"
_TAGS = {
    "max_r": "bump/max_r/{}",
    "log10_eta": "bump/log10_peak_eta/{}",
    "width_decades": "bump/width_decades/{}",
}


def scalars(row: Row) -> dict[str, float]:
    """Return what loggers get: the height wherever it is defined, place and width only of a peak.

    Args:
        row: of the formation table.

    Returns:
        Finite numbers by tag.

    """
    names = _TAGS if row["verdict"] == "bump" else ("max_r",)
    values = {_TAGS[name].format(row["probe"]): float(row[name]) for name in names}
    return {tag: value for tag, value in values.items() if math.isfinite(value)}


def monitored(row: Row) -> dict[str, Tensor]:
    """Return what ``trainer.callback_metrics`` gets.

    Args:
        row: of the formation table.

    Returns:
        A number for every tag; NaN where it is undefined.

    """
    known = scalars(row)
    return {tag: torch.tensor(known.get(tag, math.nan)) for tag in scalar_tags(row["probe"])}


def unknown(label: str) -> dict[str, Tensor]:
    """Return NaN for every tag of a probe set that has not been measured yet.

    Args:
        label: of the probe set.

    Returns:
        NaN by tag.

    """
    return {tag: torch.tensor(math.nan) for tag in scalar_tags(label)}


def scalar_tags(label: str) -> tuple[str, ...]:
    """Return the tags that a probe set may have.

    Args:
        label: of the probe set.

    Returns:
        Height, place, width.

    Example:
        >>> scalar_tags("cifar32")[0]
        'bump/max_r/cifar32'

    """
    return tuple(tag.format(label) for tag in _TAGS.values())


def log_step(step: int) -> int:
    """Return the place of a step on a logarithmic axis, as a whole number: TensorBoard has no such axis itself.

    Args:
        step: optimiser step.

    Returns:
        ``1000 log10(1 + step)``, rounded.

    Example:
        >>> log_step(0), log_step(9), log_step(39100)
        (0, 1000, 4592)

    """
    return round(1000 * math.log10(1 + step))
