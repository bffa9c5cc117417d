"""The CIFAR form of VGG-16: layers and the exact number of parameters."""

from __future__ import annotations

import torch
from torch import nn

from lit_bump.networks.vgg import VGG16


def test_paper_size() -> None:
    with torch.device("meta"):
        network = VGG16()
    assert sum(parameter.numel() for parameter in network.parameters()) == 14_728_266
    assert network.num_features == 512


def test_thirteen_convolutions_with_bias_and_one_linear_layer() -> None:
    network = VGG16(width=2)
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert len(convolutions) == 13
    assert all(layer.bias is not None for layer in convolutions)
    assert sum(isinstance(layer, nn.Linear) for layer in network.modules()) == 1
    assert not any(isinstance(layer, nn.Dropout) for layer in network.modules())


def test_last_map_is_one_by_one() -> None:
    assert VGG16(width=2).feature_map(torch.rand(1, 3, 32, 32)).shape == (1, 16, 1, 1)


def test_signal_survives_the_way_up() -> None:
    torch.manual_seed(0)
    network = VGG16(width=8).eval()  # BatchNorm at its start is the identity: the signal is that of the weights alone
    features = network.forward_features(torch.rand(8, 3, 32, 32))
    assert 0.01 < features.std().item() < 100
