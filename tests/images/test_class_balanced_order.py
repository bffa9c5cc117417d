"""Laws of the balanced order: a permutation whose every beginning has equal classes as far as can be."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.images.class_balanced_order import class_balanced_order


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(st.integers(0, 4), max_size=60), seed=st.integers(0, 99))
def test_every_beginning_is_balanced(labels: list[int], seed: int) -> None:
    order = class_balanced_order(torch.tensor(labels, dtype=torch.int64), seed=seed).tolist()
    assert sorted(order) == list(range(len(labels)))
    total = [labels.count(label) for label in range(5)]
    taken = [0] * 5
    for position in order:
        taken[labels[position]] += 1
        open_classes = [taken[label] for label in range(5) if taken[label] < total[label]]
        assert max(taken) <= min(open_classes, default=len(labels)) + 1


def test_the_seed_decides() -> None:
    labels = torch.arange(100) % 10
    assert torch.equal(class_balanced_order(labels, seed=0), class_balanced_order(labels, seed=0))
    assert not torch.equal(class_balanced_order(labels, seed=0), class_balanced_order(labels, seed=1))
