"""Profiles of every family of architectures agree with obvious float64 code, without a user's action."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from lit_bump.encoders import load_encoder
from lit_bump.measure import Protocol, antipodal_directions, measure_profile

FAMILIES = {
    "torchvision ViT": "random:torchvision:vit_b_16@size=32",
    "timm ViT": "random:timm:test_vit@size=32",
    "ConvNeXt": "random:timm:test_convnext@size=32",
    "Swin": "random:torchvision:swin_t@size=32",
    "MLP-Mixer": "random:timm:mixer_s32_224@size=64",
    "ResNet-50": "random:torchvision:resnet50@size=32",
}
STEP = 1e-5  # of central differences, whose error is then far below float32's rounding


@pytest.mark.parametrize("family", FAMILIES)
def test_profile_agrees_with_float64(family: str) -> None:
    encoder = load_encoder(FAMILIES[family])
    size = encoder.input_size
    image = torch.rand(*size, generator=torch.Generator().manual_seed(0))
    ladder = Protocol.paper(size).etas
    protocol = Protocol(etas=(ladder[4], ladder[10], ladder[14]), n_pairs=3, n_jvp=3, estimator="matched", n_noise=1)
    profile = measure_profile(encoder, image[None], protocol, progress=False)
    exact = copy.deepcopy(encoder).double()
    u = antipodal_directions(3, image.numel(), seed=0, image=0).double().view(-1, *size)
    with torch.no_grad():
        base = exact(image[None].double())
        ahead, behind = (exact(image.double() + sign * STEP * u) for sign in (1, -1))
        prediction = ((ahead - behind) / (2 * STEP)).square().sum(1).mean()
        response = [float((exact(image.double() + eta * u) - base).square().sum(1).mean()) for eta in protocol.etas]
    np.testing.assert_allclose(profile.prediction, float(prediction), rtol=1e-3)
    np.testing.assert_allclose(profile.response[0], response, rtol=2e-3)
    np.testing.assert_allclose(
        profile.ratio[0], np.array(response) / (np.square(protocol.etas) * float(prediction)), rtol=2e-3
    )
