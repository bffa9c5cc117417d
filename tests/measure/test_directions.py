"""Laws of the directions: unit, antipodal, isotropic, and a function of (seed, image, pair) alone."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lit_bump.measure import measure_profile
from lit_bump.measure.directions import BLOCK_PAIRS, antipodal_directions, directions, directions_of_rows
from tests.measure.tiny_encoders import few, random_images


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 40), st.integers(0, 2**31), st.integers(0, 1000))
def test_rows_have_unit_length_and_exact_antipodes(n_pairs: int, dim: int, seed: int, image: int) -> None:
    u = antipodal_directions(n_pairs, dim, seed=seed, image=image)
    assert u.shape == (2 * n_pairs, dim)
    assert u.dtype == torch.float32
    torch.testing.assert_close(u.double().norm(dim=1), torch.ones(2 * n_pairs, dtype=torch.float64), atol=1e-6, rtol=0)
    assert torch.equal(u[:n_pairs], -u[n_pairs:])
    assert float(u.double().pow(3).sum(dim=0).abs().max()) < 1e-12  # an odd function cancels


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 12), st.integers(0, 99))
def test_any_range_is_the_same_part_of_the_same_draw(first: int, count: int, dim: int, seed: int) -> None:
    everything = directions(0, 101, dim, seed=seed, image=3)
    assert torch.equal(directions(first, first + count, dim, seed=seed, image=3), everything[first : first + count])


@pytest.mark.parametrize("n", [BLOCK_PAIRS - 1, BLOCK_PAIRS, BLOCK_PAIRS + 1, 2 * BLOCK_PAIRS])
def test_a_longer_draw_begins_with_the_shorter_one(n: int) -> None:
    assert torch.equal(directions(0, 100, 5, seed=1, image=0)[:n], directions(0, n, 5, seed=1, image=0))


def test_blocks_images_and_seeds_are_independent_draws() -> None:
    draws = [
        directions(0, BLOCK_PAIRS, 300, seed=0, image=0),
        directions(BLOCK_PAIRS, 2 * BLOCK_PAIRS, 300, seed=0, image=0),
        directions(0, BLOCK_PAIRS, 300, seed=0, image=1),
        directions(0, BLOCK_PAIRS, 300, seed=1, image=0),
    ]
    rows = torch.cat(draws)
    cosines = (rows @ rows.T - torch.eye(len(rows))).abs()
    assert float(cosines.max()) < 5 / np.sqrt(300)


def test_rows_of_a_list_are_the_directions_of_their_image_and_pair() -> None:
    image = torch.tensor([2, 2, 2, 3, 3])
    pair = torch.tensor([14, 14, 17, 0, 40])
    rows = directions_of_rows(image, pair, 7, seed=0)
    for row, i, k in zip(rows, image, pair, strict=True):
        assert torch.equal(row, directions(int(k), int(k) + 1, 7, seed=0, image=int(i))[0])


def test_global_random_streams_are_neither_read_nor_advanced() -> None:
    before = directions(0, 20, 6, seed=4, image=9)
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    random.seed(123)
    states = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())  # type: ignore[index]  # noqa: NPY002
    from lit_bump.measure.directions import _kept_block

    _kept_block.cache_clear()
    assert torch.equal(directions(0, 20, 6, seed=4, image=9), before)
    assert torch.equal(states[0], torch.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all()  # type: ignore[index]  # noqa: NPY002
    assert states[2] == random.getstate()


def test_the_draw_is_isotropic() -> None:
    d, n = 6, 4000
    u = directions(0, n, d, seed=0, image=0).double()
    second = u.T @ u / n  # I / d
    assert float((second - torch.eye(d, dtype=torch.float64) / d).abs().max()) < 5 * np.sqrt(2 / d**2 / n)
    fourth = u.pow(4).mean(dim=0)  # 3 / (d (d + 2))
    assert float((fourth - 3 / (d * (d + 2))).abs().max()) < 5 * float(u.pow(4).std()) / np.sqrt(n)
    assert float(u.mean(dim=0).abs().max()) < 5 / np.sqrt(n * d)


def test_a_changed_result_does_not_change_the_next_draw() -> None:
    drawn = directions(0, 3, 4, seed=0, image=0)
    kept = drawn.clone()
    drawn.zero_()
    assert torch.equal(directions(0, 3, 4, seed=0, image=0), kept)


def test_drawing_in_inference_mode_leaves_ordinary_tensors_to_others() -> None:
    from lit_bump.measure.directions import _kept_block

    _kept_block.cache_clear()
    with torch.inference_mode():
        directions(0, 3, 4, seed=8, image=0)
    assert not directions(0, 3, 4, seed=8, image=0).is_inference()


@pytest.mark.parametrize(("first", "last", "dim"), [(0, 0, 3), (-1, 2, 3), (2, 1, 3), (0, 1, 0)])
def test_empty_ranges_are_refused(first: int, last: int, dim: int) -> None:
    with pytest.raises(ValueError, match=rf"directions {first}\.\.{last} in {dim} dimensions"):
        directions(first, last, dim, seed=0, image=0)


class _LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remember the number of elements of the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(one, Tensor):
                self.n_elements = max(self.n_elements, one.numel())
        return result


def test_memory_is_bounded_by_the_chunk_and_not_by_the_number_of_directions() -> None:
    """Of more directions than fit into a chunk, no tensor ever holds all."""
    size, chunk = (3, 32, 32), 4
    dim = math.prod(size)
    largest = []
    for n_pairs in (BLOCK_PAIRS, 8 * BLOCK_PAIRS):
        with _LargestTensor() as seen:
            protocol = few(size, n_pairs, etas=[0.1])
            measure_profile(lambda images: images.flatten(1)[:, :4], random_images(1, size), protocol, chunk=chunk)
        largest.append(seen.n_elements)
    assert largest[0] == largest[1] <= max(BLOCK_PAIRS, 2 * chunk) * dim
