"""A seeded order of labelled images in which every beginning holds all classes as equally as can be.

Paper: A.2 "Protocol" (seeded 32-image draws from the test and train splits). Needs NumPy and torch.
A probe set is the beginning of it, and so is a smaller training set: hence the training probes of a run that trains on
a part of the data are images of that part.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lit_bump.images.random_words import random_order


def class_balanced_order(labels: Int64[Tensor, " image"], *, seed: int) -> Int64[Tensor, " image"]:
    """Return the positions of all images, first one of each class, then a second one of each, and so on.

    Which images of a class come first, and the order of the classes in each round, are drawn from the seed.

    Args:
        labels: class of each image.
        seed: seed of this draw alone; the global generators are neither read nor advanced.

    Returns:
        A permutation of the positions, the same on every machine.

    Example:
        >>> labels = torch.arange(40) % 4
        >>> labels[class_balanced_order(labels, seed=0)[:8]].bincount().tolist()
        [2, 2, 2, 2]

    """
    drawn = random_order(len(labels), seed=seed, stream="class-balanced order")
    classes = labels.numpy()[drawn]
    round_ = np.empty(len(drawn), dtype=np.int64)
    for label in np.unique(classes):
        members = classes == label
        round_[members] = np.arange(members.sum())
    return torch.from_numpy(drawn[np.argsort(round_, kind="stable")])
