"""Laws of the normalisation layer: the inverse of mean and std, no clamp, clear refusals."""

from __future__ import annotations

import pytest
import torch

from lit_bump.errors import LitBumpError
from lit_bump.networks.normalisation import CIFAR_MEAN, CIFAR_STD, Normalise


def test_is_undone_by_std_and_mean() -> None:
    images = torch.rand(2, 3, 4, 5, dtype=torch.float64)
    layer = Normalise().double()
    mean, std = (torch.tensor(values, dtype=torch.float64).view(3, 1, 1) for values in (CIFAR_MEAN, CIFAR_STD))
    assert torch.allclose(layer(images) * std + mean, images, atol=1e-6)


def test_constants_are_those_of_all_pixels() -> None:
    assert CIFAR_STD == (0.2470, 0.2435, 0.2616)
    assert CIFAR_MEAN == (0.4914, 0.4822, 0.4465)


def test_does_not_clamp() -> None:
    layer = Normalise((0.0,), (1.0,))
    outside = torch.tensor([-0.5, 1.5]).view(2, 1, 1, 1)
    assert torch.equal(layer(outside), outside)


def test_constants_are_saved_and_move_with_the_module() -> None:
    layer = Normalise().to(torch.float64)
    assert set(layer.state_dict()) == {"mean", "std"}
    assert layer.mean.dtype == torch.float64
    assert not list(layer.parameters())


def test_prints_its_constants() -> None:
    assert str(Normalise()) == "Normalise(mean=(0.4914, 0.4822, 0.4465), std=(0.247, 0.2435, 0.2616))"


@pytest.mark.parametrize("shape", [(2, 1, 4, 4), (2, 4, 4, 3), (3, 4, 4)])
def test_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(LitBumpError, match=r"images have shape \(.*\): this network takes \(image, 3, height, width\)"):
        Normalise()(torch.rand(shape))


def test_integer_images_are_refused() -> None:
    with pytest.raises(LitBumpError, match=r"images are torch.uint8: give floats in \[0, 1\]"):
        Normalise()(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))


def test_constants_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LitBumpError, match="mean has 1 channels and std 2"):
        Normalise((0.5,), (0.2, 0.2))
    with pytest.raises(LitBumpError, match=r"std=\(0.0,\): give positive"):
        Normalise((0.5,), (0.0,))
