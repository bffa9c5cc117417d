"""Laws of the blur: it is scipy's with the mirror boundary, at any sigma and size."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from lit_bump.errors import LitBumpError
from lit_bump.images.gaussian_blur import gaussian_blur


@settings(max_examples=60, deadline=None)
@given(
    sigma=st.floats(0, 6),
    size=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 20), st.integers(1, 20)),
    seed=st.integers(0, 1000),
)
def test_blur_is_scipys(sigma: float, size: tuple[int, int, int, int], seed: int) -> None:
    images = torch.rand(size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    expected = gaussian_filter(images.numpy(), sigma, mode="mirror", axes=(2, 3))
    np.testing.assert_allclose(gaussian_blur(images, sigma).numpy(), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("sigma", [1, 2, 12])
def test_float32_blur_of_many_images_is_scipys(sigma: float) -> None:
    images = torch.rand(130, 3, 32, 32, generator=torch.Generator().manual_seed(0))  # more than one chunk
    blurred = gaussian_blur(images, sigma)
    assert blurred.dtype == torch.float32
    for i in (0, 127, 128, 129):
        expected = gaussian_filter(images[i].double().numpy(), sigma, mode="mirror", axes=(1, 2))
        np.testing.assert_allclose(blurred[i].numpy(), expected, atol=1e-6, rtol=0)


def test_the_kernel_grows_with_sigma() -> None:
    point = torch.zeros(1, 1, 201, 201)
    point[0, 0, 100, 100] = 1
    reached = [int((gaussian_blur(point, sigma)[0, 0, 100] > 0).sum()) for sigma in (1, 2, 4, 8)]
    assert reached == [9, 17, 33, 65]


def test_zero_sigma_is_the_identity_and_a_copy() -> None:
    images = torch.rand(2, 3, 5, 5)
    blurred = gaussian_blur(images, 0)
    assert torch.equal(blurred, images)
    assert blurred.data_ptr() != images.data_ptr()


def test_the_input_is_left_alone() -> None:
    images = torch.rand(2, 3, 9, 9)
    copy = images.clone()
    gaussian_blur(images, 1.5)
    assert torch.equal(images, copy)


def test_images_do_not_mix() -> None:
    images = torch.rand(4, 3, 8, 8)
    assert torch.equal(gaussian_blur(images, 1)[2:3], gaussian_blur(images[2:3], 1))
    assert gaussian_blur(images[:0], 1).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("sigma", [-0.1, math.nan, math.inf])
def test_other_sigmas_are_refused(sigma: float) -> None:
    with pytest.raises(LitBumpError, match=rf"sigma={sigma} of the Gaussian blur"):
        gaussian_blur(torch.zeros(1, 1, 4, 4), sigma)
