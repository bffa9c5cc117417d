"""The prediction: products over the first directions estimate the exact trace, tr G / d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lit_bump.measure import Protocol, measure_profile
from lit_bump.measure.encoder import as_encoder
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.numerics import exact_numerics
from lit_bump.measure.prediction import LocalPrediction, local_predictions
from tests.measure.tiny_encoders import NETS, random_images, seeded
from tests.reference import trace_prediction


def test_prediction_estimates_the_exact_trace() -> None:
    net = seeded(NETS["gelu"])
    images = random_images(1)
    protocol = Protocol(etas=(0.1,), n_pairs=400, n_jvp=400, estimator="matched", precision="float64")
    profile = measure_profile(net, images, protocol)
    exact = trace_prediction(seeded(NETS["gelu"]).eval().double(), images[0])
    error = float(profile.prediction[0]) / np.sqrt(400)  # a relative spread below 1
    assert abs(float(profile.prediction[0]) - exact) < 4 * error


def _predicted(net: Callable[[Tensor], Tensor], images: Tensor, n_jvp: int = 8, **settings: Any) -> LocalPrediction:
    """Return the prediction of the first image, in float64."""
    frozen = FrozenEncoder(as_encoder(net), torch.float64, images.device, channels_last=False)
    values: dict[str, Any] = {"seed": 0, "chunk": 64, **settings}
    return local_predictions(frozen, images.double(), n_jvp, **values)[0]


class _Doubled(torch.autograd.Function):
    """Twice a tensor, with a reverse derivative as wrong as ``factor`` says; 2 is right, NaN raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, factor: float) -> Tensor:
        return 2.0 * values

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        if np.isnan(ctx.factor):
            raise NotImplementedError("no reverse derivative here")
        return ctx.factor * gradient.roll(1, dims=-1), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return 2.0 * tangent


def _custom(net: nn.Module, factor: float) -> Callable[[Tensor], Tensor]:
    """Return tanh of a net's features, doubled by an operation of its own."""

    def encoder(images: Tensor) -> Tensor:
        doubled: Tensor = _Doubled.apply(net(images), factor)
        return doubled.tanh()

    return encoder


class _Stated(nn.Module):
    """A function of images and the parameters of a net, so that it is moved to another dtype with it."""

    def __init__(self, net: nn.Module, function: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.net, self.function = net, function

    def forward(self, images: Tensor) -> Tensor:
        """Return the function's value."""
        return self.function(self.net, images)


def _mean_is(values: list[float], expected: float) -> bool:
    """Return whether repeated values have a mean, within four standard errors."""
    return bool(abs(np.mean(values) - expected) < 4 * np.std(values, ddof=1) / np.sqrt(len(values)) + 1e-12)


@pytest.mark.parametrize(("size", "n_sketch"), [((3, 8, 8), 32), ((1, 3, 3), 5)])
def test_a_whole_jacobian_gives_the_exact_trace(size: tuple[int, int, int], n_sketch: int) -> None:
    images = random_images(1, size)
    n_features = 16 if size == (3, 8, 8) else 40  # fewer than the sketch takes, or more than pixels
    net = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(images[0].numel(), n_features), nn.Tanh())).double()
    exact = trace_prediction(net, images[0])
    prediction = _predicted(net, images, n_sketch=n_sketch, target=0.01)
    assert prediction.captured == pytest.approx(exact, rel=1e-9)
    assert prediction.value == pytest.approx(exact, rel=1e-6)  # directions are unit vectors to float32 rounding
    assert prediction.standard_error < 1e-6 * exact
    np.testing.assert_allclose(prediction.remainders, 0.0, atol=1e-6 * exact)


@pytest.mark.parametrize("n_sketch", [0, 2, 8])
def test_a_sketched_prediction_is_unbiased_and_its_error_is_its_spread(n_sketch: int) -> None:
    net, images = seeded(NETS["gelu"]).double(), random_images(1)
    exact = trace_prediction(net, images[0])
    found = [_predicted(net, images, n_jvp=16, n_sketch=n_sketch, seed=seed) for seed in range(40)]
    assert _mean_is([prediction.value for prediction in found], exact)
    spread = np.std([prediction.value for prediction in found], ddof=1)
    stated = np.sqrt(np.mean([prediction.standard_error**2 for prediction in found]))
    assert stated == pytest.approx(spread, rel=0.4)


def test_a_larger_sketch_leaves_a_smaller_remainder() -> None:
    net, images = seeded(NETS["gelu"]).double(), random_images(1)
    errors = [_predicted(net, images, n_jvp=64, n_sketch=n).standard_error for n in (0, 4, 16)]
    assert errors[0] > errors[1] > errors[2] > 0


@pytest.mark.parametrize("factor", [0.0, -3.0])
@pytest.mark.parametrize("n_sketch", [2, 8])
def test_a_wrong_reverse_derivative_costs_products_and_no_bias(factor: float, n_sketch: int) -> None:
    linear = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 12))).double()
    images = random_images(1)
    exact = trace_prediction(lambda x: (2 * linear(x)).tanh(), images[0])
    module = _Stated(linear, lambda net, x: _custom(net, factor)(x))
    found = [_predicted(module, images, n_jvp=16, n_sketch=n_sketch, seed=seed) for seed in range(40)]
    assert found[0].n_vjps > 0
    assert _mean_is([prediction.value for prediction in found], exact)


def test_an_encoder_without_a_reverse_derivative_is_measured_by_products_alone() -> None:
    linear = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 12)))
    images = random_images(2)
    protocol = Protocol(etas=(0.1, 1.0), estimator="controlled", target_se=0.1, n_pairs=64)
    without, with_it = (
        measure_profile(_Stated(linear, lambda net, x, f=factor: _custom(net, f)(x)), images, protocol)  # type: ignore[misc]
        for factor in (float("nan"), 2.0)
    )
    assert (without.n_vjps == 0).all()
    assert (with_it.n_vjps > 0).all()
    assert np.isfinite(without.ratio).all()
    assert (np.abs(without.prediction / with_it.prediction - 1) < 4 * without.prediction_error).any()


def _in_place(net: nn.Module, images: Tensor) -> Tensor:
    features: Tensor = net(images.mul_(2.0).sub_(0.5))
    return features


class _DoubledOneByOne(_Doubled):
    generate_vmap_rule = False


def _not_mapped(net: nn.Module, images: Tensor) -> Tensor:
    features: Tensor = _DoubledOneByOne.apply(net(images), 2.0)
    return features.tanh()


@pytest.mark.parametrize("name", [*NETS, "in place", "not to be mapped"])
def test_products_of_shared_points_are_those_of_single_ones(name: str) -> None:
    odd = {"in place": _in_place, "not to be mapped": _not_mapped}
    module = seeded(NETS[name]) if name in NETS else _Stated(seeded(NETS["gelu"]), odd[name])
    frozen = FrozenEncoder(module.eval(), torch.float64, torch.device("cpu"), channels_last=False)
    images = random_images(2).double()
    given = torch.randn(2, 5, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kept_images, kept = images.clone(), given.clone()
    with exact_numerics(torch.device("cpu"), torch.float64):
        together = frozen.derivatives(images, given)
        apart = torch.stack([frozen.derivative(images, given[:, k]) for k in range(5)], dim=1)
    torch.testing.assert_close(together, apart, rtol=1e-9, atol=1e-12)
    assert frozen._shares_primal is (name != "not to be mapped")
    assert bool((images == kept_images).all())
    assert bool((given == kept).all())


def test_an_encoder_that_writes_into_its_input_has_the_exact_prediction() -> None:
    net, images = seeded(NETS["gelu"]).double(), random_images(1)
    exact = trace_prediction(lambda x: net(2.0 * x - 0.5), images[0])
    assert _predicted(_Stated(net, _in_place), images, n_sketch=32).value == pytest.approx(exact, rel=1e-5)


def test_an_encoder_that_cannot_be_mapped_has_an_unbiased_prediction() -> None:
    net, images = seeded(NETS["gelu"]).double(), random_images(1)
    exact = trace_prediction(lambda x: (2.0 * net(x)).tanh(), images[0])
    found = [_predicted(_Stated(net, _not_mapped), images, n_sketch=4, seed=seed).value for seed in range(20)]
    assert _mean_is(found, exact)


def test_products_do_not_depend_on_chunk_or_company() -> None:
    net, images = seeded(NETS["gelu"]).double(), random_images(3)
    frozen = FrozenEncoder(net, torch.float64, images.device, channels_last=False)
    settings: dict[str, Any] = {"n_sketch": 4, "target": 0.05, "seed": 0}
    together = local_predictions(frozen, images.double(), 64, chunk=64, **settings)
    for chunk in (1, 7):
        for number, prediction in enumerate(together):
            alone = local_predictions(
                frozen, images[number : number + 1].double(), 64, chunk=chunk, first_image=number, **settings
            )[0]
            assert alone.value == pytest.approx(prediction.value, rel=1e-9)
            np.testing.assert_allclose(alone.squares, prediction.squares, rtol=1e-9)
            assert (alone.n_jvps, alone.n_vjps) == (prediction.n_jvps, prediction.n_vjps)
