"""WRN-28-10: blocks, relatives and the exact number of parameters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lit_bump.errors import LitBumpError
from lit_bump.networks.wide_resnet import PreActivationBlock, WideResNet28x10


def test_paper_size() -> None:
    with torch.device("meta"):
        network = WideResNet28x10()
    assert sum(parameter.numel() for parameter in network.parameters()) == 36_479_194
    assert network.num_features == 640


def test_wrn_28_1_has_its_published_size() -> None:
    with torch.device("meta"):
        network = WideResNet28x10(width=16)
    assert sum(parameter.numel() for parameter in network.parameters()) == 369_498  # 0.4 M in the paper of 2017


def test_no_dropout_and_no_convolution_bias() -> None:
    network = WideResNet28x10(width=2)
    assert not any(isinstance(layer, nn.Dropout) for layer in network.modules())
    assert all(layer.bias is None for layer in network.modules() if isinstance(layer, nn.Conv2d))


def test_last_map_is_eight_by_eight_and_rectified() -> None:
    last = WideResNet28x10(width=2, depth=10).feature_map(torch.rand(1, 3, 32, 32))
    assert last.shape == (1, 8, 8, 8)
    assert last.min() >= 0


def test_equal_widths_pass_the_raw_input_on() -> None:
    block = PreActivationBlock(4, 4, 1).eval()
    nn.init.zeros_(block.conv2.weight)
    images = torch.randn(1, 4, 8, 8)
    assert torch.equal(block(images), images)


def test_changed_widths_pass_the_rectified_input_on() -> None:
    block = PreActivationBlock(4, 6, 2).eval()
    nn.init.zeros_(block.conv2.weight)
    images = torch.randn(1, 4, 8, 8)
    assert block.shortcut is not None
    assert torch.allclose(block(images), block.shortcut(torch.relu(block.bn1(images))))


@pytest.mark.parametrize("depth", [4, 12, 27, -2])
def test_depth_that_is_no_wide_resnet_is_refused(depth: int) -> None:
    with pytest.raises(LitBumpError, match=rf"depth={depth}: give 6 n \+ 4"):
        WideResNet28x10(width=2, depth=depth)
