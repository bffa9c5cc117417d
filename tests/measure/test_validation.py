"""What is refused before anything is measured, each in one line with the cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import measure_profile
from lit_bump.measure.validation import validated_images
from tests.conftest import RunPython
from tests.measure.tiny_encoders import Tiny, few, process_state, random_images, seeded

IMAGES: list[tuple[Any, str]] = [
    (255 * random_images(), r"images run from .* to 25\d, outside \[0, 1\]: divide by 255"),
    ((random_images() - 0.5) / 0.25, r"images run from -.* to .*, outside \[0, 1\]: give raw pixels .* mean= and std="),
    (random_images() + 0.5, r"outside \[0, 1\]: give raw pixels"),
    (random_images().fill_(torch.nan), "images hold NaN or infinite pixels"),
    (random_images().fill_(torch.inf), "images hold NaN or infinite pixels"),
    ((255 * random_images()).to(torch.uint8), r"images are torch.uint8; give floating-point pixels in \[0, 1\]"),
    (random_images().bool(), r"images are torch.bool"),
    (random_images()[0], r"images have shape \(3, 8, 8\); give \(image, channel, height, width\)"),
    (random_images()[:0], r"images have shape \(0, 3, 8, 8\).*none empty"),
]


@pytest.mark.parametrize(("images", "message"), IMAGES)
def test_wrong_images_are_refused(images: Any, message: str) -> None:
    with pytest.raises(LitBumpError, match=message) as caught:
        validated_images(images)
    assert "\n" not in str(caught.value)


def test_the_whole_range_is_accepted_and_what_rounding_leaves() -> None:
    images = random_images()
    images[0, 0, 0, :2] = torch.tensor([0.0, 1.0])
    assert torch.equal(validated_images(images), images)
    images[0, 0, 0, :2] = torch.tensor([-1e-7, 1 + 2e-7])
    assert torch.equal(validated_images(images), images)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_images_of_any_floating_dtype_are_measured(dtype: torch.dtype) -> None:
    profile = measure_profile(seeded(Tiny), random_images().to(dtype), few())
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=0.05)


def test_images_with_a_gradient_and_in_any_layout_are_accepted() -> None:
    net, images = seeded(Tiny), random_images()
    plain = measure_profile(net, images, few())
    turned = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).requires_grad_()
    np.testing.assert_allclose(measure_profile(net, turned, few()).ratio, plain.ratio, rtol=1e-3)


class _Noisy(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.net = Tiny()
        self.kind = kind

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.net(images)
        if self.kind == "dropout":
            return nn.functional.dropout(features, 0.1, training=True)
        return features + 1e-3 * torch.randn_like(features)


@pytest.mark.parametrize("chunk", [1, 3, None])
@pytest.mark.parametrize("kind", ["dropout", "noise"])
def test_a_stochastic_encoder_is_refused(kind: str, chunk: int | None) -> None:
    before = process_state()
    with pytest.raises(LitBumpError, match="the encoder is stochastic: two runs on the same images differ"):
        measure_profile(seeded(lambda: _Noisy(kind)), random_images(), few(), chunk=chunk)
    assert process_state() == before


def _batch_statistics(images: Tensor) -> Tensor:
    return nn.functional.batch_norm(images, None, None, training=True).flatten(1)


@pytest.mark.parametrize("images", [random_images(), torch.full((2, 3, 8, 8), 0.5), torch.zeros(1, 3, 8, 8)])
@pytest.mark.parametrize("chunk", [1, 2, 7, None])
def test_features_that_depend_on_the_neighbours_are_refused(chunk: int | None, images: Tensor) -> None:
    ramp = torch.linspace(0, 1e-3, 64).view(1, 1, 8, 8)  # a batch without any variance has no statistics
    with pytest.raises(LitBumpError, match="depend on the other images of its batch"):
        measure_profile(_batch_statistics, (images + ramp).clamp(0, 1), few(), chunk=chunk)


OUTPUTS: list[tuple[Callable[[Tensor], Any], str]] = [
    (lambda x: {"features": x, "logits": x}, r"returned dict with keys \['features', 'logits'\], not a tensor; pick"),
    (lambda x: (x, x), "returned tuple, not a tensor; pick one"),
    (lambda x: None, "returned NoneType, not a tensor"),
    (lambda x: x.flatten(1).argmax(dim=1), r"returned torch.int64; features must be floating-point"),
    (lambda x: torch.view_as_complex(x.reshape(len(x), -1, 2)), r"returned torch.complex64"),
    (lambda x: x.mean(), r"returned shape \(\) for"),
    (lambda x: x.flatten(1).mean(dim=0), r"returned shape \(192,\) for"),
    (lambda x: x[:, :0].flatten(1), r"returned shape \(\d+, 0\): there are no features in it"),
]


@pytest.mark.parametrize(("encoder", "message"), OUTPUTS)
def test_outputs_that_are_no_features_are_refused(encoder: Callable[[Tensor], Any], message: str) -> None:
    with pytest.raises(LitBumpError, match=message) as caught:
        measure_profile(encoder, random_images(), few())
    assert "\n" not in str(caught.value)


def test_an_encoder_for_one_image_at_a_time_is_measured_with_chunk_one() -> None:
    def single(images: Tensor) -> Tensor:
        (image,) = images.flatten(1)
        features: Tensor = image[None].sin()
        return features

    profile = measure_profile(single, random_images(), few(), chunk=1)
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=0.01)


def test_weights_without_values_are_refused() -> None:
    with torch.device("meta"):
        net = Tiny()
    with pytest.raises(LitBumpError, match=r"stem.0.weight of the encoder is on the meta device.*load the weights"):
        measure_profile(net, random_images(), few())
    lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(3))
    with pytest.raises(LitBumpError, match=r"1.weight of the encoder has no shape yet: run the encoder once"):
        measure_profile(lazy, random_images(), few())


WITHOUT_SHAPE_CHECKS = """
import numpy as np, torch
from torch import nn
from lit_bump.measure import Protocol, measure_profile
from lit_bump.errors import LitBumpError

import random
stream = random.getstate()
measure_profile(nn.Flatten(), torch.rand(1, 3, 4, 4), Protocol(etas=(0.1,), n_pairs=1, n_jvp=1))
assert random.getstate() == stream

few = dict(etas=(0.1, 1.0), n_pairs=2, n_jvp=2)
assert Protocol.from_dict({**few, "n_pairs": np.int64(2), "seed": np.int32(0)}) == Protocol(**few)
cases = [
    lambda: Protocol(**few, estimator="mached"),
    lambda: Protocol(**few, precision="float16"),
    lambda: Protocol(**few, seed=0.5),
    lambda: measure_profile(nn.Flatten(), torch.zeros(2, 3, 4, 4, dtype=torch.uint8), Protocol(**few)),
    lambda: measure_profile(nn.Flatten(), torch.zeros(3, 4, 4), Protocol(**few)),
    lambda: measure_profile(nn.Flatten(), np.zeros((1, 3, 4, 4)), Protocol(**few)),
    lambda: measure_profile("resnet18", torch.zeros(1, 3, 4, 4), Protocol(**few)),
]
for case in cases:
    try:
        case()
    except LitBumpError as error:
        print(error)
"""


def test_a_user_without_shape_checks_reads_our_own_lines(run_python: RunPython) -> None:
    done = run_python("-W", "error", "-c", WITHOUT_SHAPE_CHECKS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    starts = [
        "estimator is 'mached' (did you mean 'matched'?)",
        "precision is 'float16'; give 'float32', 'float64', 'auto'",
        "seed is 0.5; it must be a whole number",
        "images are torch.uint8; give floating-point pixels",
        "images have shape (3, 4, 4); give (image, channel, height, width)",
        "images are ndarray; give a float tensor",
        "the encoder is str, which cannot be called",
    ]
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start)
