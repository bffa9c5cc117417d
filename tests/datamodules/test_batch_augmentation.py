"""Laws of the augmentation: the usual crop and flip, the same one image at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.datamodules.batch_augmentation import augmentation_words, cropped_and_flipped

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def obvious(image: Array, word: int) -> Array:
    """Return one image cropped and flipped in the obvious way."""
    padded = np.pad(image, ((0, 0), (4, 4), (4, 4)))
    down, right = word % 9, word // 9 % 9
    crop = padded[:, down : down + image.shape[1], right : right + image.shape[2]]
    return crop[:, :, ::-1] if word >> 63 else crop


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_a_batch_is_augmented_as_each_image_alone(words: list[int], size: tuple[int, int]) -> None:
    images = np.random.default_rng(0).random((len(words), 3, *size), dtype=np.float32)
    result = cropped_and_flipped(images, np.array(words, dtype=np.uint64))
    assert result.dtype == images.dtype
    for image, word, augmented in zip(images, words, result, strict=True):
        np.testing.assert_array_equal(augmented, obvious(image, word))


def test_every_crop_and_flip_is_as_likely_as_any_other() -> None:
    words = augmentation_words(20_000, 0, seed=0)
    crops, flips = np.bincount((words % np.uint64(81)).astype(int), minlength=81), words >> np.uint64(63)
    assert ((crops - 20_000 / 81) ** 2 / (20_000 / 81)).sum() < 125  # chi-square with 80 degrees of freedom, p = 0.001
    assert float(flips.mean()) == pytest.approx(0.5, abs=0.012)


def test_words_differ_by_epoch_and_seed_and_begin_alike() -> None:
    words = augmentation_words(100, 0, seed=0)
    assert (words == augmentation_words(200, 0, seed=0)[:100]).all()
    assert not (words == augmentation_words(100, 1, seed=0)).any()
    assert not (words == augmentation_words(100, 0, seed=1)).any()
