"""Laws of the loader: an order that depends on (seed, epoch), fair shares for ranks, and going on from anywhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lit_bump.datamodules.array_dataset import ArrayDataset
from lit_bump.datamodules.training_loader import EpochSampler, TrainingLoader, training_loader

N = 23


def numbered(augmentation_seed: int | None = None) -> ArrayDataset:
    """Return images of random bytes, labelled with their own number."""
    images = torch.randint(0, 256, (N, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return ArrayDataset(images, torch.arange(N), augmentation_seed)


def passes(loader: TrainingLoader, n: int = 1) -> list[list[tuple[Tensor, Tensor]]]:
    """Return the batches of n epochs."""
    return [list(loader) for _ in range(n)]


def order(batches: list[tuple[Tensor, Tensor]]) -> list[int]:
    """Return the numbers of the images in a pass."""
    return [int(label) for _, labels in batches for label in labels]


def same(one: list[tuple[Tensor, Tensor]], other: list[tuple[Tensor, Tensor]]) -> bool:
    """Compare two passes.

    Returns:
        Whether they hold the same batches.

    """
    return len(one) == len(other) and all(
        torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(one, other, strict=True)
    )


def test_an_epoch_shows_every_image_once_and_epochs_differ() -> None:
    first, second = passes(training_loader(numbered(), seed=0, batch_size=5), 2)
    assert [len(labels) for _, labels in first] == [5, 5, 5, 5, 3]
    assert sorted(order(first)) == sorted(order(second)) == list(range(N))
    assert order(first) != order(second)


def test_a_rerun_is_identical_and_another_seed_is_not() -> None:
    one, same_seed, other = (passes(training_loader(numbered(seed), seed=seed, batch_size=5), 2) for seed in (0, 0, 1))
    assert all(same(a, b) for a, b in zip(one, same_seed, strict=True))
    assert order(one[0]) != order(other[0])


def test_batches_do_not_depend_on_the_number_of_workers() -> None:
    alone = passes(training_loader(numbered(7), seed=0, batch_size=5), 3)
    loader = training_loader(numbered(7), seed=0, batch_size=5, num_workers=2, persistent_workers=True)
    assert all(same(a, b) for a, b in zip(alone, passes(loader, 3), strict=True))


def test_each_image_is_augmented_anew_in_each_epoch() -> None:
    dataset = numbered(7)
    seen: list[dict[int, Tensor]] = []
    for batches in passes(training_loader(dataset, seed=0, batch_size=N), 2):
        ((images, labels),) = batches
        seen.append({int(label): image for image, label in zip(images, labels, strict=True)})
    assert sum(torch.equal(seen[0][i], seen[1][i]) for i in range(N)) < 3


@settings(max_examples=40, deadline=None)
@given(n_ranks=st.integers(1, 5), epoch=st.integers(0, 1000))
def test_ranks_share_the_order_without_overlap(n_ranks: int, epoch: int) -> None:
    shares = []
    for rank in range(n_ranks):
        sampler = EpochSampler(numbered(), seed=0, num_replicas=n_ranks, rank=rank)
        sampler.set_epoch(epoch)
        shares.append([index - epoch * N for index in sampler])
        assert len(shares[-1]) == len(sampler)
    everything = sorted(index for share in shares for index in share)
    assert sorted(set(everything)) == list(range(N))
    assert len(everything) - N < n_ranks


def test_ranks_see_other_augmentations() -> None:
    batches = [
        next(iter(training_loader(numbered(7), seed=0, num_replicas=2, rank=rank, batch_size=12)))[0] for rank in (0, 1)
    ]
    assert not any(torch.equal(a, b) for a, b in zip(*batches, strict=True))


@pytest.mark.parametrize(("n_done", "workers"), [(0, 0), (1, 0), (4, 0), (5, 0), (7, 0), (7, 2)])
def test_a_loader_goes_on_from_where_another_stood(n_done: int, workers: int) -> None:
    """Five batches an epoch: at the start, inside, at the last batch, at the end, in the second epoch."""
    expected = [batch for batches in passes(training_loader(numbered(7), seed=0, batch_size=5), 3) for batch in batches]
    stopped = training_loader(numbered(7), seed=0, batch_size=5)
    n_left = n_done
    while n_left > 0:
        for _ in stopped:
            n_left -= 1
            if n_left == 0:
                break
    resumed = training_loader(numbered(7), seed=0, batch_size=5, num_workers=workers)
    resumed.load_state_dict(stopped.state_dict())
    assert len(resumed) == 5
    rest = [batch for batches in passes(resumed, 3) for batch in batches][: 15 - n_done]
    assert same(rest, expected[n_done:])


def test_a_resumed_epoch_that_is_not_the_one_asked_for_is_shown_whole() -> None:
    loader = training_loader(numbered(), seed=0, batch_size=5)
    loader.load_state_dict({"epoch": 1, "batches": 2})
    loader.sampler.set_epoch(2)  # type: ignore[attr-defined]
    assert len(list(loader)) == 5


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    passes(training_loader(numbered(7), seed=0, batch_size=5), 2)
    assert torch.equal(torch.get_rng_state(), before)
