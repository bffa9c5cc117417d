"""Random 64-bit words that depend on (seed, stream, index) only: the source of every drawn or noise image.

Paper: A.2 ("all random draws in training, data construction, and measurement are seeded"). Needs NumPy alone.
The words are the raw output of Philox, whose stream NumPy keeps fixed; the methods of ``Generator`` may change between
releases, so everything here is made from the raw words by exact arithmetic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lit_bump.errors import LitBumpError

Words = npt.NDArray[np.uint64]


def checked_seed(seed: int, name: str = "seed") -> int:
    """Return ``seed`` if it is a whole number from 0 to 2^64 - 1.

    Args:
        seed: what the user gave.
        name: what the user calls it, for the message.

    Returns:
        The seed as a Python integer.

    Raises:
        LitBumpError: if it is not a whole number in that range.

    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise LitBumpError(f"{name}={seed!r} is not a seed: give a whole number from 0 to 2**64 - 1")
    return int(seed)


def random_words(indices: Iterable[int], n_words: int, *, seed: int, stream: str) -> Words:
    """Draw ``n_words`` words for each index; row i depends on the seed, the stream and ``indices[i]`` alone.

    Philox is a counter-based generator: the key is made from (seed, stream), the index is a part of the counter, so
    any row can be drawn without the rows before it, in any process, and rows of distinct indices never overlap.

    Args:
        indices: non-negative whole numbers, in any order.
        n_words: words a row, at least 1.
        seed: seed of this draw alone; the global generators are neither read nor advanced.
        stream: name of the purpose; two purposes with one seed get unrelated words.

    Returns:
        Array ``(index, word)`` of uniform 64-bit words.

    Raises:
        LitBumpError: if an index is negative, or if the seed is not a whole number from 0 to 2^64 - 1.

    Example:
        >>> rows = random_words([5, 3], 4, seed=0, stream="example")
        >>> bool((rows[1] == random_words([3], 4, seed=0, stream="example")[0]).all())
        True

    """
    key = np.frombuffer(hashlib.sha256(f"{checked_seed(seed)}/{stream}".encode()).digest()[:16], dtype="<u8")
    rows = [int(index) for index in indices]
    if rows and min(rows) < 0:
        raise LitBumpError(f"index {min(rows)} of a random image is negative: count from 0")
    words = np.empty((len(rows), n_words), dtype=np.uint64)
    generator = np.random.Philox(counter=[0, 0, 0, 0], key=key)
    state: Any = generator.state
    for row, index in enumerate(rows):
        state["state"]["counter"][:] = (0, index, 0, 0)
        state["buffer_pos"] = 4  # the buffer of the row before is used up
        generator.state = state
        words[row] = generator.random_raw(n_words)
    return words


def unit_interval(words: Words) -> npt.NDArray[np.float64]:
    """Turn words into uniform numbers in [0, 1), exactly: the upper 53 bits, divided by 2^53.

    Args:
        words: uniform 64-bit words of any shape.

    Returns:
        Array of the same shape.

    """
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def small_integers(words: Words, bits: int) -> npt.NDArray[Any]:
    """Cut words into unsigned integers of 8 or 32 bits, in the same order on every machine.

    Args:
        words: array ``(index, word)``.
        bits: width of the integers, 8 or 32.

    Returns:
        Array ``(index, integer)`` with ``64 / bits`` integers a word.

    """
    return np.ascontiguousarray(words.astype("<u8")).view(f"<u{bits // 8}")


def random_order(n: int, *, seed: int, stream: str) -> npt.NDArray[np.int64]:
    """Return the numbers 0 to n - 1 in a seeded random order that is the same on every machine.

    Args:
        n: how many numbers.
        seed: seed of this draw alone.
        stream: name of the purpose, as in :func:`random_words`.

    Returns:
        A permutation; its first k entries are a draw of k without replacement.

    """
    if n == 0:
        return np.empty(0, dtype=np.int64)
    return np.argsort(random_words([0], n, seed=seed, stream=stream)[0], kind="stable")
