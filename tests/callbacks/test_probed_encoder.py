"""Phi is found in any training module, by method, by name or by call, and a wrong name says what there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from lit_bump.callbacks.probed_encoder import encoder_name, probed_encoder
from lit_bump.errors import LitBumpError
from tests.callbacks.tiny_run import PlainModule, TinyModule, tiny_probe

IMAGES = tiny_probe().images


def test_forward_features_is_the_default() -> None:
    module = TinyModule().eval()
    assert torch.equal(probed_encoder(module)(IMAGES), module.forward_features(IMAGES))


@pytest.mark.parametrize("module", [TinyModule().eval(), PlainModule().eval()])
def test_a_submodule_or_a_method_is_found_by_its_dotted_name(module: TinyModule) -> None:
    expected = module.backbone(IMAGES)
    assert torch.equal(probed_encoder(module, "backbone")(IMAGES), expected)
    assert torch.equal(probed_encoder(module, "backbone.4")(IMAGES), expected)
    assert torch.equal(probed_encoder(module, "backbone.forward")(IMAGES), expected)


@pytest.mark.parametrize("kind", ["module", "bound method", "function"])
def test_any_callable_will_do(kind: str) -> None:
    module = PlainModule().eval()
    encoders: dict[str, Callable[..., Any]] = {
        "module": module.backbone,
        "bound method": module.backbone.forward,
        "function": lambda images: module.backbone(images),
    }
    encoder = probed_encoder(module, encoders[kind])
    assert torch.equal(encoder(IMAGES), module.backbone(IMAGES))
    assert module.backbone[0].weight is next(encoder.parameters())


def test_mean_and_std_become_part_of_the_encoder() -> None:
    module = TinyModule().eval()
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.5)
    normalised = (IMAGES - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    encoder = probed_encoder(module, mean=mean, std=std)
    torch.testing.assert_close(encoder(IMAGES), module.forward_features(normalised))


def test_a_module_whose_child_has_the_method_is_told_its_name() -> None:
    parent = PlainModule()
    parent.net = TinyModule()
    with pytest.raises(LitBumpError, match=r"give encoder='net\.forward_features'"):
        probed_encoder(parent)
    assert torch.equal(
        probed_encoder(parent.eval(), "net.forward_features")(IMAGES), parent.net.forward_features(IMAGES)
    )


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ("backbon", "PlainModule has no submodule or method 'backbon'.*'backbone'"),
        ("backbone.99", r"no submodule or method 'backbone\.99'"),
        ("", "no submodule or method ''"),
    ],
)
def test_an_unknown_name_gets_the_nearest(encoder: str, message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        probed_encoder(PlainModule(), encoder)


def test_names_for_records_do_not_depend_on_the_process() -> None:
    assert encoder_name(None) == "forward_features"
    assert encoder_name("backbone.1") == "backbone.1"
    assert encoder_name(nn.Flatten()) == "Flatten"
    assert "0x" not in encoder_name(lambda images: images)
