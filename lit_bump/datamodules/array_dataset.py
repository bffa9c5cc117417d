"""A data set held in memory as two tensors, which hands out whole batches at once.

Paper: A.2 "Training". Needs torch and the augmentation beside it. Images stay as they are stored (one byte a colour
where they are bytes) and become float32 in [0, 1] batch by batch. Index ``epoch * n + i`` means image i as that epoch
sees it: the epoch travels with the index, so that workers started long ago need not be told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int64, Shaped
from torch import Tensor
from torch.utils.data import Dataset

from lit_bump.datamodules.batch_augmentation import augmentation_words, cropped_and_flipped
from lit_bump.images.random_words import Words

Batch = tuple[Tensor, Tensor]


class ArrayDataset(Dataset[Batch]):
    """Images and labels in memory; ``dataset[i]`` is one pair, ``__getitems__`` a batch of them.

    Args:
        images: uint8, or float32 in [0, 1]; axes (image, channel, height, width).
        labels: class of each image.
        augmentation_seed: crop and flip with this seed; without one, images are handed out as they are.

    """

    def __init__(
        self,
        images: Shaped[Tensor, "image channel height width"],
        labels: Int64[Tensor, " image"],
        augmentation_seed: int | None = None,
    ) -> None:
        self.images = images
        self.labels = labels
        self.augmentation_seed = augmentation_seed
        self._words: dict[int, Words] = {}

    def __len__(self) -> int:
        """Return the number of images.

        Returns:
            The count, without regard to epochs.

        """
        return len(self.images)

    def __getitem__(self, index: int) -> Batch:
        """Return one image and its label.

        Args:
            index: ``i``, or ``epoch * n + i``; -1 is the last image.

        Returns:
            float32 image in [0, 1], axes (channel, height, width), and an int64 label.

        Raises:
            IndexError: if the index is below ``-n``.

        """
        if index < -len(self):
            raise IndexError(f"index {index} of {len(self)} images")
        images, labels = self.__getitems__([index if index >= 0 else index + len(self)])
        return images[0], labels[0]

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        """Return a whole batch, which the loader takes as it is.

        Args:
            indices: each ``i``, or ``epoch * n + i``.

        Returns:
            float32 images in [0, 1], axes (image, channel, height, width), and int64 labels.

        """
        epochs, rows = np.divmod(np.asarray(indices, dtype=np.int64), len(self))
        images = self.images.numpy()[rows]
        if self.augmentation_seed is not None:
            words = np.empty(len(rows), dtype=np.uint64)
            for epoch in np.unique(epochs):
                seen = epochs == epoch
                words[seen] = self._words_of(int(epoch))[rows[seen]]
            images = cropped_and_flipped(images, words)
        if images.dtype == np.uint8:
            images = np.divide(images, np.float32(255), dtype=np.float32)
        return torch.from_numpy(images), torch.from_numpy(self.labels.numpy()[rows])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the words out of a copy for a worker.

        Returns:
            The attributes.

        """
        return {**self.__dict__, "_words": {}}

    def _words_of(self, epoch: int) -> Words:
        assert self.augmentation_seed is not None
        if epoch not in self._words:
            if len(self._words) > 1:  # this epoch and the one before are all that a loader asks for
                self._words.clear()
            self._words[epoch] = augmentation_words(len(self), epoch, seed=self.augmentation_seed)
        return self._words[epoch]


def as_unit_floats(images: Shaped[Tensor, ...]) -> Float32[Tensor, ...]:
    """Turn bytes into float32 in [0, 1]; floats pass.

    Args:
        images: uint8 or floating point, of any shape.

    Returns:
        float32 of the same shape.

    """
    if images.dtype == torch.uint8:
        return images.to(torch.float32).div_(255)
    return images.to(torch.float32)


def as_it_is(batch: Any) -> Any:
    """Return the batch: ``__getitems__`` has already put it together.

    Args:
        batch: images and labels.

    Returns:
        The same tuple.

    """
    return batch
