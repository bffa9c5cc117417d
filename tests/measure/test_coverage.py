"""Intervals of whole measurements hold the truth as often as they say (the small form of benchmarks/coverage.py)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from jaxtyping import Float

from benchmarks.coverage import CASES, Case, Coverage, coverage, shown_image, truth
from lit_bump.measure import image_group
from lit_bump.measure.control_variate import RatioEstimate, controlled_ratio
from lit_bump.measure.prediction import LocalPrediction

N_REPEATS = 200
SMALL: dict[str, Case] = {
    "whole Jacobian": replace(CASES["gelu"], etas=(1.0, 3.0, 15.0), n_truth=20_000),
    "sketch": replace(CASES["sketched, 4 rows"], etas=(1.0, 3.0, 15.0), n_truth=20_000),
    "large steps": replace(CASES["heavy tail"], etas=(12.0, 30.0), n_truth=40_000),
}


@lru_cache
def _known(name: str) -> tuple[np.ndarray, np.ndarray]:
    return truth(SMALL[name], shown_image())


def _found(name: str, *, target: float = 0.08, n_repeats: int = N_REPEATS, coarse: bool = False) -> Coverage:
    return coverage(SMALL[name], target=target, n_repeats=n_repeats, coarse=coarse, known=_known(name))


@pytest.mark.parametrize("name", ["whole Jacobian", "sketch"])
def test_nine_intervals_in_ten_hold_the_truth(name: str) -> None:
    found = _found(name)
    assert 0.86 <= found.pooled <= 0.94
    assert (np.abs(found.bias) < 0.3 * found.spread).all()


def test_nine_intervals_in_ten_hold_the_truth_in_low_precision() -> None:
    found = _found("large steps", target=0.04, coarse=True)
    assert found.coarse.min() > 0.5
    assert 0.86 <= found.pooled <= 0.94


def test_a_wrong_standard_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(
        displacement: Float[np.ndarray, " pair"],
        correction: Float[np.ndarray, " corrected"],
        eta: float,
        prediction: LocalPrediction,
        control: Float[np.ndarray, " known"],
    ) -> RatioEstimate:
        right = controlled_ratio(displacement, correction, eta, prediction, control)
        return replace(right, standard_error=right.standard_error / 2)

    monkeypatch.setattr(image_group, "controlled_ratio", half)
    assert _found("whole Jacobian", n_repeats=100).pooled < 0.8
