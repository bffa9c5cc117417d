"""Networks by name: the classes that they stand for, and hints for wrong names."""

from __future__ import annotations

import pytest

from lit_bump.errors import LitBumpError
from lit_bump.networks import VGG16, ResNet18, WideResNet28x10
from lit_bump.networks.network_registry import NETWORKS, build_network


def test_names_stand_for_the_three_families() -> None:
    assert {"resnet18": ResNet18, "vgg16": VGG16, "wrn28x10": WideResNet28x10} == NETWORKS


def test_arguments_reach_the_network() -> None:
    network = build_network("wrn28x10", width=3, depth=10, num_classes=4)
    assert (network.num_features, network.num_classes) == (12, 4)


def test_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(LitBumpError, match=r"there is no network 'resnet_18' \(did you mean 'resnet18'\?\)"):
        build_network("resnet_18")


def test_unknown_argument_gives_the_nearest() -> None:
    with pytest.raises(LitBumpError, match=r"network 'vgg16' takes no argument 'widht' \(did you mean 'width'\?\)"):
        build_network("vgg16", widht=8)
