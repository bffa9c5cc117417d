"""Laws of the noise images: uniform, and a function of (seed, split, index)."""

from __future__ import annotations

import hashlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.errors import LitBumpError
from lit_bump.images.uniform_noise import noise_images


@settings(max_examples=20, deadline=None)
@given(
    indices=st.lists(st.integers(0, 10**9), max_size=4),
    size=st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7)),
    seed=st.integers(0, 1000),
)
def test_an_image_depends_on_its_index_alone(indices: list[int], size: tuple[int, int, int], seed: int) -> None:
    images = noise_images(indices, seed=seed, size=size)
    assert images.shape == (len(indices), *size)
    assert images.dtype == torch.float32
    for image, index in zip(images, indices, strict=True):
        assert torch.equal(image, noise_images([index], seed=seed, size=size)[0])


def test_pixels_are_uniform_and_independent() -> None:
    pixels = noise_images(range(600), seed=0).flatten(1).double()  # more than one chunk
    assert float(pixels.min()) >= 0
    assert float(pixels.max()) < 1
    assert float(pixels.mean()) == pytest.approx(0.5, abs=1e-3)
    assert float(pixels.var()) == pytest.approx(1 / 12, abs=1e-3)
    neighbours = torch.corrcoef(torch.stack([pixels[:, :-1].flatten(), pixels[:, 1:].flatten()]))[0, 1]
    assert abs(float(neighbours)) < 5e-3


def test_training_and_test_noise_share_no_image() -> None:
    train, test = (noise_images(range(64), seed=0, split=split).flatten(1) for split in ("train", "test"))
    assert float(torch.cdist(train, test).min()) > 10


def test_the_noise_is_the_same_on_every_machine() -> None:
    digest = hashlib.sha256(noise_images(range(4), seed=0).numpy().astype("<f4").tobytes()).hexdigest()
    assert digest == "b01b0224b03aaee866860f85249ed6c06ae6ea3cfb8d3ce614b1c49047e5f0ef"


def test_global_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    noise_images(range(2), seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_bad_input_is_refused() -> None:
    with pytest.raises(LitBumpError, match=r"size=\(3, 0, 32\).*at least 1"):
        noise_images([0], seed=0, size=(3, 0, 32))
    with pytest.raises(LitBumpError, match="index -1"):
        noise_images([-1], seed=0)
    with pytest.raises(LitBumpError, match="seed=-1"):
        noise_images([], seed=-1)
