"""Laws of the faster forward: it is the same function, it is checked, and where it cannot be had nothing changes."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lit_bump.measure import Protocol, compiled_encoder, measure_profile
from lit_bump.measure.compiled_encoder import compile_encoder, pays
from lit_bump.measure.frozen_encoder import FrozenEncoder
from tests.measure.tiny_encoders import NETS, few, random_images, seeded

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_encoder, "_said", set())


@pytest.fixture
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folded: object) -> Callable[[Tensor], Tensor]:
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(compiled_encoder, "_compiled", refuse)


def _with_statistics(net: nn.Module) -> nn.Module:
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.uniform_(-0.5, 0.5)  # type: ignore[union-attr]
            part.running_var.uniform_(0.2, 2.0)  # type: ignore[union-attr]
            if part.affine:
                nn.init.uniform_(part.weight, 0.5, 1.5)
                nn.init.uniform_(part.bias, -0.5, 0.5)
    return net.eval()


class Branching(nn.Module):
    """Use a convolution's output twice, so that its BatchNorm may not be folded."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        map_ = self.convolution(images)
        features: Tensor = (self.norm(map_) + map_).relu().flatten(1)
        return features


FOLDED: dict[str, Callable[[], nn.Module]] = {
    "bias": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()),
    "no bias": lambda: nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Flatten()),
    "not affine": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False), nn.Flatten()),
    "grouped": lambda: nn.Sequential(nn.Conv2d(3, 6, 3, groups=3, stride=2), nn.BatchNorm2d(6), nn.Flatten()),
    "norm first": lambda: nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3), nn.Flatten()),
    "branching": Branching,
}


@pytest.mark.filterwarnings("ignore:the encoder cannot be compiled")
@pytest.mark.usefixtures("_no_compiler")
@pytest.mark.parametrize("name", list(FOLDED))
def test_folding_leaves_the_function_as_it_is(name: str) -> None:
    net = seeded(lambda: _with_statistics(FOLDED[name]())).double()
    images = random_images(5).double()
    encoder = FrozenEncoder(net, torch.float64, CPU, channels_last=True)
    plain = encoder(images)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    assert compile_encoder(encoder, images, 5) == "folded"
    assert encoder._faster is not None
    torch.testing.assert_close(encoder(images), plain, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(encoder(images[:2]), plain[:2], rtol=1e-12, atol=1e-12)  # another shape: the plain one
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


@pytest.mark.slow
def test_a_compiled_measurement_is_the_plain_one() -> None:
    net, images = seeded(NETS["batchnorm_maxpool"]), random_images(2)
    protocol = Protocol.quick((3, 8, 8), n_pairs=8)
    plain = measure_profile(net, images, protocol, compiled=False)
    compiled = measure_profile(net, images, protocol, compiled=True)
    assert (plain.context["engine"], compiled.context["engine"]) == ("eager", "compiled")
    np.testing.assert_allclose(compiled.ratio[:, 3:], plain.ratio[:, 3:], rtol=1e-3)
    assert compiled.encoder_digest == plain.encoder_digest


@pytest.mark.usefixtures("_no_compiler")
def test_without_a_compiler_the_folded_one_is_measured_and_that_is_said_once() -> None:
    net, images = seeded(NETS["batchnorm_maxpool"]), random_images(2)
    plain = measure_profile(net, images, few(), compiled=False)
    with pytest.warns(UserWarning, match=r"cannot be compiled \(No working C\+\+ compiler found\)"):
        folded = measure_profile(net, images, few(), compiled=True)
    assert folded.context["engine"] == "folded"
    np.testing.assert_allclose(folded.ratio, plain.ratio, rtol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure_profile(net, images, few(), compiled=True)


def test_an_encoder_that_looks_at_values_is_measured_as_it_is() -> None:
    def deciding(images: Tensor) -> Tensor:
        return images.flatten(1) * (2.0 if float(images.mean()) > 0.45 else 3.0)

    images = random_images(2)
    with pytest.warns(UserWarning, match="no faster form of the encoder can be exported"):
        profile = measure_profile(deciding, images, few(n_pairs=2), compiled=True)
    assert profile.context["engine"] == "eager"


def test_a_graph_that_holds_a_decision_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    net = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 5)))
    encoder = FrozenEncoder(net, torch.float32, CPU, channels_last=False)
    monkeypatch.setattr(compiled_encoder, "_folded", lambda encoder, example: lambda images: encoder(example))
    with pytest.warns(UserWarning, match="differs from the plain one by up to"):
        assert compile_encoder(encoder, random_images(3), 3) == "eager"
    assert encoder._faster is None


def test_caches_filled_while_exporting_do_not_stay() -> None:
    class Caching(nn.Module):
        scale: Tensor | None = None

        def forward(self, images: Tensor) -> Tensor:
            """Return the features."""
            if self.scale is None:
                self.scale = torch.full((1,), 2.0)
            return images.flatten(1) * self.scale

    net = Caching()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile = measure_profile(net, random_images(2), few(), compiled=True)
    assert net.scale is None
    np.testing.assert_allclose(profile.ratio, 1.0, atol=1e-3)


def test_little_work_is_not_compiled() -> None:
    net = seeded(NETS["batchnorm_maxpool"])
    encoder = FrozenEncoder(net, torch.float32, CPU, channels_last=True)
    assert not pays(encoder, random_images(1), 1e3)
    assert pays(encoder, random_images(1), 1e12)
