"""The CIFAR form of ResNet-18: stem, maps and the exact number of parameters."""

from __future__ import annotations

import torch
from torch import nn

from lit_bump.networks.resnet import ResNet18


def test_paper_size() -> None:
    with torch.device("meta"):
        network = ResNet18()
    assert sum(parameter.numel() for parameter in network.parameters()) == 11_173_962
    assert network.num_features == 512


def test_stem_keeps_the_resolution() -> None:
    network = ResNet18(width=2)
    assert (network.conv1.kernel_size, network.conv1.stride, network.conv1.bias) == ((3, 3), (1, 1), None)
    assert not any(isinstance(layer, nn.MaxPool2d) for layer in network.modules())


def test_last_map_is_four_by_four() -> None:
    network = ResNet18(width=2)
    assert network.feature_map(torch.rand(1, 3, 32, 32)).shape == (1, 16, 4, 4)


def test_shortcut_is_the_identity_unless_the_shape_changes() -> None:
    network = ResNet18(width=2)
    stages = (network.layer1, network.layer2, network.layer3, network.layer4)
    assert [len(block.shortcut) for stage in stages for block in stage] == [0, 0, 2, 0, 2, 0, 2, 0]  # type: ignore[arg-type]
