"""Laws of the random words: a row depends on its seed, stream and index, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.errors import LitBumpError
from lit_bump.images.random_words import checked_seed, random_order, random_words, small_integers, unit_interval


@settings(max_examples=30, deadline=None)
@given(
    indices=st.lists(st.integers(0, 10**12), min_size=1, max_size=6),
    n_words=st.integers(1, 9),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_row_depends_on_its_index_alone(indices: list[int], n_words: int, seed: int) -> None:
    together = random_words(indices, n_words, seed=seed, stream="test")
    for row, index in zip(together, indices, strict=True):
        assert (row == random_words([index], n_words, seed=seed, stream="test")[0]).all()
        assert (row[:1] == random_words([index], 1, seed=seed, stream="test")[0]).all()


def test_seeds_streams_and_indices_are_unrelated() -> None:
    rows = [
        random_words([0], 64, seed=0, stream="a"),
        random_words([1], 64, seed=0, stream="a"),
        random_words([0], 64, seed=1, stream="a"),
        random_words([0], 64, seed=0, stream="b"),
    ]
    assert len(np.unique(np.concatenate(rows))) == 4 * 64


def test_words_are_the_same_on_every_machine() -> None:
    assert random_words([0, 1], 2, seed=0, stream="x").tolist() == [
        [15625176376778371362, 10358621741605127985],
        [11921441681679229150, 11512011354113400840],
    ]


def test_words_are_uniform() -> None:
    numbers = unit_interval(random_words(range(50), 1000, seed=3, stream="uniform"))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    assert ((counts - 2500) ** 2 / 2500).sum() < 45  # chi-square with 19 degrees of freedom, p = 0.0007


def test_small_integers_keep_the_order_of_the_bytes() -> None:
    word = np.array([[0x0807060504030201]], dtype=np.uint64)
    assert small_integers(word, 8).tolist() == [[1, 2, 3, 4, 5, 6, 7, 8]]
    assert small_integers(word, 32).tolist() == [[0x04030201, 0x08070605]]


@settings(max_examples=20, deadline=None)
@given(n=st.integers(0, 200), seed=st.integers(0, 100))
def test_random_order_is_a_permutation(n: int, seed: int) -> None:
    assert sorted(random_order(n, seed=seed, stream="test").tolist()) == list(range(n))


def test_random_order_is_the_same_on_every_machine() -> None:
    assert random_order(10, seed=0, stream="x").tolist() == [8, 3, 2, 4, 5, 1, 6, 7, 0, 9]


def test_global_state_is_left_alone() -> None:
    before = str(np.random.get_state())  # noqa: NPY002
    random_words(range(3), 4, seed=0, stream="test")
    assert str(np.random.get_state()) == before  # noqa: NPY002


@pytest.mark.parametrize("seed", [-1, 2**64, True])
def test_other_seeds_are_refused(seed: int) -> None:
    with pytest.raises(LitBumpError, match=rf"noise_seed={seed!r} is not a seed"):
        checked_seed(seed, "noise_seed")


def test_negative_indices_are_refused() -> None:
    with pytest.raises(LitBumpError, match="index -2 of a random image is negative"):
        random_words([0, -2], 1, seed=0, stream="test")
