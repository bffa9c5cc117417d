"""Laws of the noise rule: what rounding could fake is discarded, what it could not is kept, the method is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lit_bump.measure import Profile, Protocol, Reason, measure_profile
from lit_bump.measure.displacement import Rows, displacements
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.ladder import ladder
from lit_bump.measure.noise import float64_twin, noise_energy, rounding_energy
from lit_bump.measure.numerics import exact_numerics
from tests.measure.tiny_encoders import NETS, few, random_images, seeded

SIZE = (3, 8, 8)
LADDER = ladder(SIZE)


def _quick(**values: object) -> Protocol:
    return Protocol.from_dict({**Protocol.quick(SIZE, n_pairs=4).to_dict(), "n_noise": 2, **values})


def _offset(net: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda images: 1e-3 * net(images) + 1000


def _no_false_bump(profile: Profile, truth: np.ndarray) -> None:
    """Whatever is kept is right to what the rule allows: noise of 5 % of the response."""
    kept = profile.reason == Reason.KEPT
    assert (profile.reason[:, 0] == Reason.NOISE).all()
    assert np.isfinite(profile.ratio[kept]).all()
    assert np.isnan(profile.ratio[~kept]).all()
    np.testing.assert_allclose(profile.ratio[kept], truth[kept], rtol=0.3)


def test_an_offset_of_a_thousand_loses_the_small_rungs() -> None:
    net = seeded(NETS["batchnorm_maxpool"])
    truth = measure_profile(net, random_images(2), _quick(precision="float64"))
    _no_false_bump(measure_profile(_offset(net), random_images(2), _quick()), truth.ratio)
    exact = measure_profile(_offset(net), random_images(2), _quick(precision="float64"))
    assert exact.n_kept()[2:].min() == 2  # the same encoder in float64 keeps them


def test_an_encoder_that_cannot_leave_float32_loses_them_too_and_says_how() -> None:
    net = seeded(NETS["batchnorm_maxpool"])
    truth = measure_profile(net, random_images(2), _quick(precision="float64"))

    def single(images: Tensor) -> Tensor:
        features: Tensor = net(images)
        return (1e-3 * features + 1000).float()

    profile = measure_profile(single, random_images(2), _quick())
    assert profile.noise_method.startswith("repeatability (no float64 twin: the encoder returns torch.float32")
    _no_false_bump(profile, truth.ratio)


@pytest.mark.parametrize("cast", ["first", "last"])
def test_an_encoder_that_casts_down_inside_and_up_again_is_no_twin(cast: str) -> None:
    weights = torch.randn(20, 192, generator=torch.Generator().manual_seed(0)) / 14

    def sneaky(images: Tensor) -> Tensor:
        if cast == "first":
            features = torch.tanh(images.float().flatten(1) @ weights.T)
        else:
            features = torch.tanh(images.flatten(1) @ weights.to(images.dtype).T).float()
        return 1e-3 * features.to(images.dtype) + 1000

    profile = measure_profile(sneaky, random_images(2), _quick())
    assert profile.noise_method == "repeatability (no float64 twin: steps of 1e-06 are lost inside the encoder)"
    assert (profile.reason[:, 0] == Reason.NOISE).all()


@pytest.mark.parametrize("name", list(NETS))
def test_an_ordinary_encoder_has_a_twin_also_on_black_images(name: str) -> None:
    images = random_images(2)
    images[0] = 0.0
    assert measure_profile(seeded(NETS[name]), images, _quick()).noise_method == "float64 twin"


def test_an_encoder_that_refuses_float64_says_so() -> None:
    def refusing(images: Tensor) -> Tensor:
        if images.dtype != torch.float32:
            raise TypeError("expected float32 images\nsecond line")
        return 1e-3 * images.flatten(1).tanh() + 1000

    profile = measure_profile(refusing, random_images(1), _quick())
    assert profile.noise_method == "repeatability (no float64 twin: expected float32 images)"
    assert (profile.reason[:, 0] == Reason.NOISE).all()
    assert (profile.reason[:, -1] == Reason.KEPT).all()


def test_float64_needs_no_twin() -> None:
    profile = measure_profile(seeded(NETS["gelu"]), random_images(1), _quick(precision="float64"))
    assert profile.noise_method == "repeatability (measured in float64: there is no twin)"
    assert (profile.reason == Reason.KEPT).all()


def _deep_narrow() -> nn.Module:
    """Return a VGG-like net whose default initialisation shrinks the signal at every layer."""
    layers: list[nn.Module] = [nn.Conv2d(3, 4, 3, padding=1)]
    for _ in range(7):
        layers += [nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def test_a_deep_narrow_net_at_initialisation_shows_no_false_bump() -> None:
    net = seeded(_deep_narrow, seed=1)
    profile = measure_profile(net, random_images(4), _quick(n_pairs=8, n_jvp=8))
    assert profile.prediction.max() < 1e-8
    assert (profile.reason[:, :3] == Reason.NOISE).all()
    assert profile.n_kept()[-1] == 4
    assert profile.bump().verdict != "bump"
    truth = measure_profile(net, random_images(4), _quick(n_pairs=8, n_jvp=8, precision="float64"))
    kept = profile.reason == Reason.KEPT
    np.testing.assert_allclose(profile.ratio[kept], truth.ratio[kept], rtol=0.3)
    raw = profile.response / (np.square(profile.etas) * profile.prediction[:, None])
    assert raw[:, 0].min() > 1.5  # what the rule protects from


@pytest.mark.parametrize("twin", [True, False])
@pytest.mark.parametrize("name", ["batchnorm_maxpool", "attention", "gelu"])
def test_the_estimate_is_the_true_noise_within_a_factor(name: str, twin: bool) -> None:
    net = seeded(NETS[name]).eval()
    images = random_images(2)
    etas = (1e-3, 1e-1)
    cpu = torch.device("cpu")
    with exact_numerics(cpu, torch.float32):
        single = FrozenEncoder(net, torch.float32, cpu, channels_last=True)
        double = FrozenEncoder(net, torch.float64, cpu, channels_last=False)
        other = float64_twin(single, images)[0] if twin else None
        assert (other is not None) == twin
        estimate = noise_energy(single, other, images, etas, 4, seed=0, chunk=32)
        truth = _true_noise(single, double, images, etas)
    assert (estimate > truth / 8).all()
    assert (estimate < truth * 60).all()


def _true_noise(single: FrozenEncoder, double: FrozenEncoder, images: Tensor, etas: tuple[float, ...]) -> np.ndarray:
    """Return mean |delta_32 - delta_64|^2 over other directions than the estimate's, by definition."""
    generator = torch.Generator().manual_seed(5)
    rows = []
    for image in images:
        energies = []
        for eta in etas:
            u = torch.randn(40, *image.shape, generator=generator)
            u /= u.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
            base = image.expand(40, *image.shape)
            low = single(base + eta * u) - single(base)
            torch.set_default_dtype(torch.float64)
            high = double(base.double() + eta * u.double()) - double(base.double())
            torch.set_default_dtype(torch.float32)
            energies.append(float((low.double() - high).square().sum(dim=1).mean()))
        rows.append(energies)
    return np.array(rows)


def test_the_estimate_is_never_below_the_rounding_of_the_features() -> None:
    features = torch.tensor([[1.0, 0.0, -3.0], [1000.0, 0.5, 0.0]])
    ulp = np.array([[2.0**-23, 0.0, 2.0**-22], [2.0**-14, 2.0**-24, 0.0]])
    np.testing.assert_allclose(rounding_energy(features), (2 * np.square(ulp) / 12).sum(axis=1))
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        values = torch.tensor([[1.5]], dtype=dtype)
        assert rounding_energy(values)[0] == pytest.approx(torch.finfo(dtype).eps ** 2 / 6)


def test_the_base_feature_has_the_batch_shape_of_the_perturbed_ones() -> None:
    """An encoder whose rounding depends on the batch size must not see that as a displacement."""

    def shape_dependent(images: Tensor) -> Tensor:
        return images.flatten(1) + 1e-6 * len(images)

    net = seeded(lambda: nn.Sequential(nn.Flatten()))
    cpu = torch.device("cpu")
    with exact_numerics(cpu, torch.float64):
        frozen = FrozenEncoder(_Function(shape_dependent), torch.float64, cpu, channels_last=False)
        plain = FrozenEncoder(net, torch.float64, cpu, channels_last=False)
        images = random_images(3).double()
        for chunk in (1, 4, 7, 64):
            measured, expected = (
                displacements(encoder, images, (1e-3,), Rows.grid(3, 5, 1), seed=0, chunk=chunk)
                for encoder in (frozen, plain)
            )
            np.testing.assert_allclose(measured, expected, rtol=1e-6)


class _Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        return self.function(images)


def test_a_looser_rule_keeps_more() -> None:
    net = seeded(NETS["gelu"])

    def encoder(images: Tensor) -> Tensor:
        features: Tensor = net(images)
        return 0.1 * features + 10

    kept = [
        int((measure_profile(encoder, random_images(2), _quick(noise_tolerance=share)).reason == Reason.KEPT).sum())
        for share in (1e-5, 0.05, 10.0)
    ]
    assert kept[0] < kept[1] < kept[2]


def test_noise_is_reported_for_kept_rungs_too() -> None:
    profile = measure_profile(seeded(NETS["gelu"]), random_images(2), few())
    assert (profile.noise > 0).all()
    assert (profile.noise[:, 1:] < 0.01 * profile.response[:, 1:]).all()
