"""Random crop and horizontal flip of a whole batch, from one random word an image.

Paper: A.2 "Training" ("random crop and horizontal flip augmentation"): the usual CIFAR form, 4 zero pixels on each
side, then a crop of the old size. Needs NumPy alone: torch would spread so small a job over all threads and wait.
What happens to image i in epoch e depends on (seed, e, i) alone, not on the batch, the worker, the rank or the state of
a generator; so a resumed run goes on as if never stopped.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped
from numpy.lib.stride_tricks import sliding_window_view

from lit_bump.images.random_words import Words, random_words

_PADDING = 4


def augmentation_words(n: int, epoch: int, *, seed: int) -> Words:
    """Draw the random word of each of the ``n`` training images for one epoch.

    Args:
        n: number of training images.
        epoch: which visit to the training set, from 0.
        seed: seed of the augmentation alone.

    Returns:
        One 64-bit word an image.

    """
    words: Words = random_words([epoch], n, seed=seed, stream="augmentation")[0]
    return words


def cropped_and_flipped(
    images: Shaped[np.ndarray, "image channel height width"], words: Shaped[np.ndarray, " image"]
) -> Shaped[np.ndarray, "image channel height width"]:
    """Shift each image by up to 4 pixels either way, zeros coming in, and mirror half of them.

    Args:
        images: of any type, axes (image, channel, height, width).
        words: one random 64-bit word an image.

    Returns:
        New images of the same shape and type. Word w shifts down by ``4 - w % 9`` and right by ``4 - (w // 9) % 9``,
        and mirrors where its highest bit is set.

    """
    n, channels, height, width = images.shape
    shifts = 2 * _PADDING + 1
    down = (words % np.uint64(shifts)).astype(np.intp)
    right = (words // np.uint64(shifts) % np.uint64(shifts)).astype(np.intp)
    mirrored = (words >> np.uint64(63)).astype(np.bool_)
    padded = np.zeros((n, channels, height + 2 * _PADDING, width + 2 * _PADDING), dtype=images.dtype)
    padded[:, :, _PADDING:-_PADDING, _PADDING:-_PADDING] = images
    windows = sliding_window_view(padded, (height, width), axis=(2, 3))  # no copy; axes 2 and 3 are the shifts
    crops = windows[np.arange(n), :, down, right]
    crops[mirrored] = crops[mirrored, :, :, ::-1]
    return np.ascontiguousarray(crops)
