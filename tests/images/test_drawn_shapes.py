"""Laws of the drawn shapes: a function of (seed, split, index), balanced, and the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from lit_bump.errors import LitBumpError
from lit_bump.images.drawn_shapes import SHAPE_CLASSES, SHAPE_SIZE, draw_shapes, draw_shapes_at


def test_first_images_do_not_depend_on_the_number() -> None:
    many, labels = draw_shapes(300, seed=4)  # more than one chunk
    few, few_labels = draw_shapes(37, seed=4)
    assert torch.equal(many[:37], few)
    assert torch.equal(labels[:37], few_labels)
    chosen, _ = draw_shapes_at([299, 5, 251], seed=4)
    assert torch.equal(chosen, many[[299, 5, 251]])


def test_images_are_bytes_and_classes_take_turns() -> None:
    images, labels = draw_shapes(40, seed=0)
    assert images.dtype == torch.uint8
    assert images.shape == (40, *SHAPE_SIZE)
    assert labels.dtype == torch.int64
    assert labels.tolist() == list(range(len(SHAPE_CLASSES))) * 4
    assert len(SHAPE_CLASSES) == 10


def test_seeds_and_splits_share_no_image() -> None:
    sets = [
        draw_shapes(200, seed=0)[0],
        draw_shapes(200, seed=0, split="test")[0],
        draw_shapes(200, seed=1)[0],
        draw_shapes(200, seed=1, split="test")[0],
    ]
    assert len({image.numpy().tobytes() for images in sets for image in images}) == 800


def test_pictures_are_the_same_on_every_machine() -> None:
    images, _ = draw_shapes(100, seed=0)
    assert (
        hashlib.sha256(images.numpy().tobytes()).hexdigest()
        == "a5e9798b93079820bdaf23bae68e17fd6a394040f8553ab1da623d2c5a91c9e1"
    )


def test_each_shape_stands_out_and_differs_from_the_others() -> None:
    """The mean image of a class, shape against ground, differs from that of every other class."""
    images, labels = draw_shapes(1000, seed=0)
    grey = images.float().mean(1) / 255
    contrast = (grey - grey.flatten(1).median(1).values[:, None, None]).abs()
    means = torch.stack([contrast[labels == label].mean(0) for label in range(10)])
    assert float(contrast.mean()) > 0.05
    assert float(torch.pdist(means.flatten(1)).min()) > 0.1


def test_global_states_are_left_alone() -> None:
    before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    draw_shapes(3, seed=0)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert str(np.random.get_state()) == before[1]  # noqa: NPY002


def test_bad_input_is_refused() -> None:
    with pytest.raises(LitBumpError, match="n=-1 drawn images"):
        draw_shapes(-1, seed=0)
    with pytest.raises(LitBumpError, match="seed=-1 is not a seed"):
        draw_shapes(0, seed=-1)
    with pytest.raises(LitBumpError, match="index -5"):
        draw_shapes_at([-5], seed=0)
    assert draw_shapes(0, seed=0)[0].shape == (0, *SHAPE_SIZE)
