"""Laws of the shapes as a data module: its options reach the drawing, and its probes follow its seed."""

from __future__ import annotations

import pytest
import torch

from lit_bump.datamodules import ShapesDataModule
from lit_bump.errors import LitBumpError
from lit_bump.images.drawn_shapes import SHAPE_CLASSES, draw_shapes
from lit_bump.probes import named_probe_set


def test_it_serves_the_drawn_images() -> None:
    data = ShapesDataModule(n_train=30, n_test=12, shapes_seed=2, augment=False)
    data.setup("fit")
    train, test = draw_shapes(30, seed=2), draw_shapes(12, seed=2, split="test")
    assert torch.equal(data._sets["train"].images, train[0])
    ((images, labels),) = data.test_dataloader()
    assert torch.equal(images, test[0] / 255)
    assert torch.equal(labels, test[1])
    assert (data.num_classes, data.class_names, data.input_size) == (10, SHAPE_CLASSES, (3, 32, 32))


def test_probes_follow_the_seed_of_the_drawing() -> None:
    assert ShapesDataModule().probe_set("shapes8") == named_probe_set("shapes8")
    assert ShapesDataModule(shapes_seed=2).probe_set("shapes8b1") == named_probe_set("shapes8b1", shapes_seed=2)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(LitBumpError, match="n_train=0: give a whole number of at least 1"):
        ShapesDataModule(n_train=0)
    with pytest.raises(LitBumpError, match="n_test=0: give"):
        ShapesDataModule(n_test=0)
    with pytest.raises(LitBumpError, match="shapes_seed=-1 is not a seed"):
        ShapesDataModule(shapes_seed=-1)
