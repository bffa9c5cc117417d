"""Profiles of every family of architectures agree with the obvious float64 implementation, without a user's action."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from lit_bump.encoders import load_encoder
from lit_bump.measure import Protocol, measure_profile
from tests.reference import reference_profile

FAMILIES = {
    "torchvision ViT": "random:torchvision:vit_b_16@size=32",
    "timm ViT": "random:timm:test_vit@size=32",
    "ConvNeXt": "random:timm:test_convnext@size=32",
    "Swin": "random:torchvision:swin_t@size=32",
    "MLP-Mixer": "random:timm:mixer_s32_224@size=64",
    "ResNet-50": "random:torchvision:resnet50@size=32",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_profile_agrees_with_the_reference(family: str) -> None:
    encoder = load_encoder(FAMILIES[family])
    size = encoder.input_size
    images = torch.rand(1, *size, generator=torch.Generator().manual_seed(0))
    ladder = Protocol.paper(size).etas
    protocol = Protocol(etas=(ladder[4], ladder[10], ladder[14]), n_pairs=3, n_jvp=3, estimator="matched", n_noise=1)
    profile = measure_profile(encoder, images, protocol, progress=False)
    expected = reference_profile(copy.deepcopy(encoder).double(), images, protocol)
    np.testing.assert_allclose(profile.ratio, expected.ratio, rtol=2e-3)
    np.testing.assert_allclose(profile.prediction, expected.prediction, rtol=1e-3)
