"""Encoders of every kind become one module, whose parts are found wherever a callable keeps them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import MethodEncoder, NormalisedEncoder, SubmoduleEncoder, as_encoder, measure_profile
from lit_bump.measure.encoder import reachable_modules
from tests.measure.tiny_encoders import NETS, Tiny, few, random_images, seeded, state_digest

GLOBAL_NET = seeded(Tiny).train()
HOLDER = types.ModuleType("holder")
HOLDER.net = GLOBAL_NET  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["stage", "stage.1", "pool"])
def test_a_submodules_output_is_its_output_and_no_hook_stays(name: str) -> None:
    net = seeded(Tiny).eval()
    before = state_digest(net)
    encoder = SubmoduleEncoder(net, name)
    seen: list[Tensor] = []
    images = random_images()
    output = encoder(images)
    assert state_digest(net) == before
    handle = net.get_submodule(name).register_forward_hook(lambda module, args, out: seen.append(out.clone()))
    net(images)
    handle.remove()
    if name != "stage.1":  # what follows writes into it
        assert torch.equal(output, seen[0])
    profile = measure_profile(SubmoduleEncoder(net, "stage"), random_images(), few())
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=0.05)
    assert state_digest(net) == before


def test_no_hook_stays_after_an_error() -> None:
    class Broken(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            super().forward(images)
            raise RuntimeError("broken head")

    net = seeded(Broken)
    with pytest.raises(RuntimeError, match="broken head"):
        SubmoduleEncoder(net, "stage")(random_images())
    assert not net.get_submodule("stage")._forward_hooks


def test_unknown_names_come_with_the_nearest() -> None:
    net = seeded(Tiny)
    with pytest.raises(LitBumpError, match=r"Tiny has no submodule 'stages' \(did you mean 'stage'\?\)"):
        SubmoduleEncoder(net, "stages")
    with pytest.raises(LitBumpError, match=r"Tiny has no submodule ''"):
        SubmoduleEncoder(net, "")
    with pytest.raises(LitBumpError, match=r"no method 'forward_feature' \(did you mean 'forward_features'\?\)"):
        MethodEncoder(net, "forward_feature")


def test_a_submodule_that_never_runs_is_said() -> None:
    with pytest.raises(LitBumpError, match="forward of Tiny never calls its submodule 'head'"):
        SubmoduleEncoder(seeded(Tiny), "head")(random_images())


def test_a_module_without_forward_has_its_part_run_directly() -> None:
    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = NETS["gelu"]()

    net = seeded(Training).eval()
    images = random_images()
    assert torch.equal(SubmoduleEncoder(net, "backbone")(images), net.get_submodule("backbone")(images))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("net.1", lambda net: net.net[:2]),
        ("stages.0.1", lambda net: net.stages[0][:2]),
        ("by_name.a.1", lambda net: net.by_name["a"][:2]),
        ("stages.0", lambda net: net.stages[0]),
        ("by_name.a.1.0", lambda net: nn.Sequential(net.by_name["a"][0], net.by_name["a"][1][0])),
    ],
)
def test_a_module_without_forward_keeps_what_comes_before_its_nested_part(
    name: str, expected: Callable[[nn.Module], nn.Module]
) -> None:
    def chain() -> nn.Sequential:
        return nn.Sequential(nn.InstanceNorm2d(3), nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh()), nn.Flatten())

    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = chain()
            self.stages = nn.ModuleList([chain()])
            self.by_name = nn.ModuleDict({"a": chain()})

    net = seeded(Training).eval()
    images = random_images()
    assert torch.equal(SubmoduleEncoder(net, name)(images), expected(net)(images))


def test_a_method_and_a_bound_method_are_the_same_encoder() -> None:
    net = seeded(lambda: Tiny(features=False)).train()
    before = state_digest(net)
    named = measure_profile(MethodEncoder(net, "forward_features"), random_images(), few())
    bound = measure_profile(net.forward_features, random_images(), few())  # type: ignore[arg-type]
    closed = measure_profile(lambda images: net.forward_features(images), random_images(), few())  # type: ignore[operator]
    assert (named.ratio == bound.ratio).all()
    assert (named.ratio == closed.ratio).all()
    assert named.encoder_digest == bound.encoder_digest == closed.encoder_digest
    assert state_digest(net) == before


def test_normalisation_is_the_same_inside_and_folded_by_hand() -> None:
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    net = seeded(NETS["gelu"])
    folded = seeded(NETS["gelu"])
    conv = folded.get_submodule("0")
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    with torch.no_grad():
        conv.weight /= torch.tensor(std).view(1, 3, 1, 1)
        conv.bias -= (conv.weight * torch.tensor(mean).view(1, 3, 1, 1)).sum(dim=(1, 2, 3))
    protocol = few(precision="float64")
    inside = measure_profile(NormalisedEncoder(net, mean, std), random_images(), protocol)
    by_hand = measure_profile(folded, random_images(), protocol)
    np.testing.assert_allclose(inside.ratio, by_hand.ratio, rtol=1e-4)
    np.testing.assert_allclose(inside.prediction, by_hand.prediction, rtol=1e-5)


def test_half_the_deviation_is_half_the_ladder() -> None:
    net = seeded(NETS["gelu"])
    images = random_images() * 0.5 + 0.25
    protocol = few(precision="float64")
    halved = few(precision="float64", etas=[eta / 2 for eta in protocol.etas])
    plain = measure_profile(NormalisedEncoder(net, [0.5] * 3, [0.5] * 3), images, protocol)
    other = measure_profile(NormalisedEncoder(net, [0.5] * 3, [0.25] * 3), 0.5 + (images - 0.5) / 2, halved)
    np.testing.assert_allclose(other.ratio, plain.ratio, rtol=1e-6)


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        ([0.5], [0.5, 0.5], "give one of each a channel"),
        ([], [], "give one of each a channel"),
        ([0.5], [0.0], "std positive"),
        ([0.5], [-1.0], "std positive"),
    ],
)
def test_wrong_normalisation_is_refused(mean: list[float], std: list[float], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        NormalisedEncoder(nn.Flatten(), mean, std)


def test_wrong_channels_are_refused() -> None:
    with pytest.raises(LitBumpError, match="mean and std have 1 channels, the images 3"):
        measure_profile(NormalisedEncoder(nn.Flatten(), [0.5], [0.5]), random_images(), few())


@dataclass(slots=True)
class Slotted:
    """A callable that keeps its net in a slot."""

    net: nn.Module

    def __call__(self, images: Tensor) -> Tensor:
        """Return features."""
        features: Tensor = self.net(images)
        return features


class Plain:
    """A callable that keeps its net in an attribute, and a method."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def __call__(self, images: Tensor) -> Tensor:
        """Return features."""
        return self.features(images)

    def features(self, images: Tensor) -> Tensor:
        """Return features."""
        features: Tensor = self.net(images)
        return features


class ByName:
    """A callable whose method names a global."""

    def __call__(self, images: Tensor) -> Tensor:
        """Return features."""
        return torch.stack([GLOBAL_NET(image[None])[0] for image in images])


def _applied(net: nn.Module, images: Tensor) -> Tensor:
    features: Tensor = net(images)
    return features


def _named_global(images: Tensor) -> Tensor:
    return torch.cat([GLOBAL_NET(image[None]) for image in images])


def _named_in_a_module(images: Tensor) -> Tensor:
    features: Tensor = HOLDER.net(images)
    return features


def _default(images: Tensor, net: nn.Module = GLOBAL_NET) -> Tensor:
    features: Tensor = net(images)
    return features


def _keyword(images: Tensor, *, net: nn.Module = GLOBAL_NET) -> Tensor:
    features: Tensor = net(images)
    return features


@functools.wraps(_named_global)
def _wrapped(images: Tensor) -> Tensor:
    return _named_global(images)


def _through_two(net: nn.Module) -> Callable[[Tensor], Tensor]:
    def inner(images: Tensor) -> Tensor:
        features: Tensor = net(images)
        return features

    return lambda images: inner(images) * 2


CALLABLES: dict[str, Callable[[Tensor], Tensor]] = {
    "closure": _through_two(GLOBAL_NET),
    "partial": functools.partial(_applied, GLOBAL_NET),
    "partial of a method": functools.partial(Plain(GLOBAL_NET).features),
    "object": Plain(GLOBAL_NET),
    "method of an object": Plain(GLOBAL_NET).features,
    "object with slots": Slotted(GLOBAL_NET),
    "object whose method names a global": ByName(),
    "list in a closure": (lambda nets: lambda images: sum(net(images) for net in nets))([GLOBAL_NET]),
    "dict in a closure": (lambda nets: lambda images: nets["a"](images))({"a": GLOBAL_NET}),
    "global in inner code": _named_global,
    "attribute of a module": _named_in_a_module,
    "default": _default,
    "keyword default": _keyword,
    "wrapped": _wrapped,
}


@pytest.mark.parametrize("kind", list(CALLABLES))
def test_modules_are_found_wherever_a_callable_keeps_them(kind: str) -> None:
    assert reachable_modules(CALLABLES[kind]) == [GLOBAL_NET]
    before = state_digest(GLOBAL_NET)
    measure_profile(CALLABLES[kind], random_images(1), few(n_pairs=1, n_noise=1))
    assert state_digest(GLOBAL_NET) == before
    assert all(part.training for part in GLOBAL_NET.modules())


def test_a_closure_is_measured_like_its_module() -> None:
    plain = measure_profile(GLOBAL_NET, random_images(), few())
    profile = measure_profile(lambda images: GLOBAL_NET(images), random_images(), few())
    assert (profile.ratio == plain.ratio).all()
    assert profile.noise_method == "float64 twin"
    assert profile.encoder_digest == plain.encoder_digest


@pytest.mark.parametrize("layer", [nn.Linear(7, 2), nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())])
def test_an_encoder_that_refuses_the_size_of_the_images_is_said(layer: nn.Module) -> None:
    with pytest.raises(LitBumpError, match=r"^the encoder refuses images of size \(3, 16, 16\): .+\Z"):
        measure_profile(layer, random_images(1, (3, 16, 16)), few((3, 16, 16)))


def test_a_module_is_its_own_encoder() -> None:
    net = seeded(Tiny)
    assert as_encoder(net) is net
    assert as_encoder(nn.DataParallel(net)) is net


def test_a_plain_function_is_recorded_by_its_name() -> None:
    def edges(images: Tensor) -> Tensor:
        return images.diff(dim=-1)

    assert measure_profile(edges, random_images(), few()).encoder_digest.endswith("edges")
