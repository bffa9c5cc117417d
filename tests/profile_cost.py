"""The fields of a Profile that say what it has cost, for profiles that are made up."""

from __future__ import annotations

from typing import Any

import numpy as np


def made_up_cost(shape: tuple[int, ...], n_forwards: int = 10, n_jvps: int = 12) -> dict[str, Any]:
    """Return the fields for a profile of ``(image, rung)``."""
    return {
        "n_coarse": np.zeros(shape, dtype=np.int64),
        "prediction_error": np.full(shape[0], 0.01),
        "n_forwards": np.full(shape[0], n_forwards),
        "n_jvps": np.full(shape[0], n_jvps),
        "n_vjps": np.zeros(shape[0], dtype=np.int64),
        "image_seconds": np.full(shape[0], 0.5),
    }
