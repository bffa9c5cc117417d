"""The loader of the training set: its order depends on (seed, epoch) alone, and it can go on from inside an epoch.

Paper: A.2 "Training" (every random draw in training is seeded). Needs torch and NumPy; Lightning is not imported, but
its conventions are kept: ``set_epoch`` before each epoch, and ``state_dict`` / ``load_state_dict`` of a loader.
The sampler is a ``DistributedSampler``, so Lightning takes it as it is and puts no other in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, DistributedSampler

from lit_bump.datamodules.array_dataset import ArrayDataset, Batch, as_it_is
from lit_bump.images.random_words import random_words


class EpochSampler(DistributedSampler[Any]):
    """Yield this rank's share of the epoch's order, as indices ``epoch * n + i``.

    The order of an epoch is drawn anew from (seed, epoch), cut into equal shares by taking every ``num_replicas``-th
    entry; where the images do not divide, the first ones of the order are seen twice (as in ``DistributedSampler``).
    Each pass moves on to the next epoch, unless ``set_epoch`` names another.

    Args:
        dataset: the training set.
        seed: seed of the order alone.
        num_replicas: number of ranks.
        rank: which share, from 0.

    """

    def __init__(self, dataset: ArrayDataset, *, seed: int, num_replicas: int = 1, rank: int = 0) -> None:
        super().__init__(dataset, num_replicas=num_replicas, rank=rank, shuffle=True, seed=seed)
        self.n_skipped = 0

    def __iter__(self) -> Iterator[int]:
        """Yield the indices of the current epoch and move on to the next one.

        Yields:
            ``epoch * n + i``.

        """
        epoch, n = self.epoch, len(self.dataset)  # type: ignore[arg-type]
        order = np.argsort(random_words([epoch], n, seed=self.seed, stream="order of the epoch")[0], kind="stable")
        share = np.resize(order, self.total_size)[self.rank :: self.num_replicas] + epoch * n
        skipped, self.n_skipped = self.n_skipped, 0
        self.epoch = epoch + 1
        yield from share[skipped:].tolist()


class TrainingLoader(DataLoader[Batch]):
    """Load batches of the training set, know how far it got, and go on from there.

    It is built like any ``DataLoader``, so Lightning can build it again with another sampler (``overfit_batches``).
    """

    _epoch = 0
    _n_done = 0
    _resumed: tuple[int, int] | None = None

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        """Yield the batches of one epoch.

        The epoch is fixed when the first batch is asked for: Lightning makes the iterator of a resumed run before it
        knows the epoch.

        Yields:
            float32 images in [0, 1], axes (image, channel, height, width), and int64 labels.

        """
        self._n_done = 0
        if isinstance(self.sampler, EpochSampler):
            self._epoch = self.sampler.epoch
            if self._resumed is not None and self._resumed[0] == self._epoch:
                self._n_done = self._resumed[1]
            self._resumed = None
            self.sampler.n_skipped = self._n_done * (self.batch_size or 1)
        for batch in super().__iter__():
            self._n_done += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Return where the loader stands.

        Returns:
            The epoch and the batches of it that were handed out; a finished epoch is the start of the next.

        """
        if self._n_done >= len(self):
            return {"epoch": self._epoch + 1, "batches": 0}
        return {"epoch": self._epoch, "batches": self._n_done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from where a loader stood: the next pass starts at that batch of that epoch.

        Args:
            state: of :meth:`state_dict`.

        """
        if isinstance(self.sampler, EpochSampler):
            self.sampler.set_epoch(state["epoch"])
            self._resumed = (state["epoch"], state["batches"])


def training_loader(
    dataset: ArrayDataset, *, seed: int, num_replicas: int = 1, rank: int = 0, **options: Any
) -> TrainingLoader:
    """Load augmented batches in a seeded order; the global random state is neither read nor advanced.

    Args:
        dataset: the training set.
        seed: seed of the order.
        num_replicas: number of ranks.
        rank: which share of the order is loaded, from 0.
        options: of ``DataLoader``: batch size, workers, pinned memory, whether the last short batch is dropped.

    Returns:
        A loader whose passes are the epochs.

    """
    return TrainingLoader(
        dataset,
        sampler=EpochSampler(dataset, seed=seed, num_replicas=num_replicas, rank=rank),
        collate_fn=as_it_is,
        generator=torch.Generator(),  # without one, each pass would draw a number from the global generator
        **options,
    )
