"""Laws of the data set: a batch is its images one by one, bytes become floats in [0, 1], the epoch is in the index."""

from __future__ import annotations

import pickle

import pytest
import torch

from lit_bump.datamodules.array_dataset import ArrayDataset, as_unit_floats
from lit_bump.images.drawn_shapes import draw_shapes


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("floats", [False, True])
def test_a_batch_is_its_images_one_by_one(seed: int | None, floats: bool) -> None:
    images, labels = draw_shapes(20, seed=0)
    dataset = ArrayDataset(as_unit_floats(images) if floats else images, labels, seed)
    indices = [3, 19, 20 + 3, 5 * 20 + 7, 3]
    batch, batch_labels = dataset.__getitems__(indices)
    assert batch.dtype == torch.float32
    assert batch_labels.tolist() == [int(labels[i % 20]) for i in indices]
    for image, index in zip(batch, indices, strict=True):
        assert torch.equal(image, dataset[index][0])
    assert torch.equal(batch[0], batch[2]) == (seed is None)
    assert torch.equal(batch[0], batch[4])


def test_without_augmentation_images_are_the_stored_ones() -> None:
    images, labels = draw_shapes(5, seed=0)
    dataset = ArrayDataset(images, labels)
    assert len(dataset) == 5
    assert torch.equal(torch.stack([dataset[i][0] for i in range(5)]), images / 255)
    assert torch.equal(dataset[-1][0], images[4] / 255)
    with pytest.raises(IndexError, match="index -6 of 5 images"):
        dataset[-6]


def test_a_batch_may_be_written_into() -> None:
    images, labels = draw_shapes(4, seed=0)
    floats = as_unit_floats(images)
    dataset = ArrayDataset(floats.clone(), labels)
    dataset.__getitems__([0, 1])[0].zero_()
    assert torch.equal(dataset.images, floats)


def test_a_copy_for_a_worker_gives_the_same() -> None:
    dataset = ArrayDataset(*draw_shapes(10, seed=0), augmentation_seed=1)
    dataset.__getitems__([0])
    assert torch.equal(pickle.loads(pickle.dumps(dataset))[17][0], dataset[17][0])
