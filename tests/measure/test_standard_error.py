"""The standard error against the spread that repeated draws really have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lit_bump.measure import Protocol, measure_profile
from lit_bump.measure.standard_error import ratio_standard_error
from tests.measure.tiny_encoders import NETS, few, random_images, seeded
from tests.reference import delta_method_error


def _correlated(rng: np.random.Generator, n_draws: int, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return D, ``(draw, pair, rung)``, and S, ``(draw, pair)``: rung 0 proportional to S, rung 1 loosely so."""
    s = rng.gamma(4.0, size=(n_draws, n_pairs))
    loose = 0.6 * s + rng.gamma(4.0, size=s.shape)
    return np.stack([3 * s, loose], axis=-1), s


@pytest.mark.parametrize(("n_pairs", "n_jvp"), [(200, 200), (200, 50), (64, 16)])
def test_error_is_the_spread_of_repeated_draws(n_pairs: int, n_jvp: int) -> None:
    displacement, sensitivity = _correlated(np.random.default_rng(0), 4000, n_pairs)
    head = sensitivity[:, :n_jvp]
    ratio = displacement.mean(axis=1) / head.mean(axis=1)[:, None]
    error = ratio_standard_error(displacement, head, ratio)
    spread = ratio.std(axis=0, ddof=1)
    for rung in (0, 1):
        if n_pairs == n_jvp and rung == 0:
            assert spread[0] < 1e-12
            assert error[:, 0].max() < 1e-12
            continue
        assert np.sqrt(np.square(error[:, rung]).mean()) == pytest.approx(spread[rung], rel=0.06)
        truth = 3.0 if rung == 0 else 1.6
        covered = (np.abs(ratio[:, rung] - truth) < 1.645 * error[:, rung]).mean()
        assert covered == pytest.approx(0.9, abs=0.03)


def test_error_is_the_delta_method_on_the_covariance_of_the_two_means() -> None:
    displacement, sensitivity = _correlated(np.random.default_rng(1), 3, 12)
    for n_jvp in (12, 5, 2):
        head = sensitivity[:, :n_jvp]
        ratio = displacement.mean(axis=1) / head.mean(axis=1)[:, None]
        error = ratio_standard_error(displacement, head, ratio)
        for i in range(3):
            expected = delta_method_error(displacement[i, :, 1].tolist(), head[i].tolist(), eta=1.0)
            assert error[i, 1] == pytest.approx(expected, rel=1e-10)


def test_error_scales_with_the_ratio_and_not_with_units() -> None:
    displacement, sensitivity = _correlated(np.random.default_rng(2), 2, 30)
    ratio = displacement.mean(axis=1) / sensitivity[:, :9].mean(axis=1)[:, None]
    error = ratio_standard_error(displacement, sensitivity[:, :9], ratio)
    scaled = ratio_standard_error(1e-20 * displacement, 1e9 * sensitivity[:, :9], 1e-29 * ratio)
    np.testing.assert_allclose(scaled, 1e-29 * error, rtol=1e-9)


def test_large_offsets_do_not_cancel() -> None:
    noise = np.random.default_rng(3).standard_normal((1, 100, 1))
    displacement = 1.0 + 1e-9 * noise
    error = ratio_standard_error(displacement, np.ones((1, 50)), np.ones((1, 1)))
    assert error[0, 0] == pytest.approx(1e-9 * noise.std(ddof=1) / 10, rel=1e-5)


@pytest.mark.parametrize(("n_pairs", "n_jvp"), [(1, 1), (5, 1)])
def test_error_of_a_single_draw_is_unknown(n_pairs: int, n_jvp: int) -> None:
    error = ratio_standard_error(np.ones((2, n_pairs, 3)), np.ones((2, n_jvp)), np.ones((2, 3)))
    assert np.isnan(error).all()


def test_error_of_an_undefined_ratio_is_nan() -> None:
    ratio = np.array([[np.nan, 1.0]])
    displacement = np.ones((1, 4, 2))
    displacement[0, 0, 1] = np.inf
    assert np.isnan(ratio_standard_error(displacement, np.ones((1, 4)), ratio)).all()
    assert np.isnan(ratio_standard_error(np.zeros((1, 4, 2)), np.zeros((1, 4)), np.full((1, 2), np.nan))).all()


@pytest.mark.parametrize("estimator", ["matched", "paper"])
def test_error_of_a_measured_encoder_is_its_spread_over_seeds(estimator: str) -> None:
    net = seeded(NETS["gelu"])
    with torch.no_grad():
        net[0].weight.mul_(4)  # type: ignore[index]
    values: dict[str, Any] = {
        "n_pairs": 24,
        "n_jvp": 24 if estimator == "matched" else 8,
        "estimator": estimator,
        "etas": [0.5, 3.0],
    }
    profiles = [measure_profile(net, random_images(1), few(n_noise=1, seed=seed, **values)) for seed in range(40)]
    spread = np.std([p.ratio[0] for p in profiles], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([np.square(p.standard_error[0]) for p in profiles], axis=0))
    np.testing.assert_allclose(claimed, spread, rtol=0.35)  # 40 draws know a spread to 11 %


def test_more_pairs_shrink_the_error() -> None:
    net = seeded(NETS["gelu"])
    errors = [
        measure_profile(net, random_images(1), Protocol((3.0,), n_pairs=n, n_jvp=n, estimator="matched")).standard_error
        for n in (50, 200)
    ]
    assert float(errors[0][0, 0] / errors[1][0, 0]) == pytest.approx(2.0, rel=0.35)
