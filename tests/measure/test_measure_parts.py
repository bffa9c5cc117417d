"""Laws of a measurement in parts: each part is what it is whichever others are measured, and nothing stays changed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, measure_parts, measure_profile
from lit_bump.measure.frozen_encoder import OutOfMemoryError
from lit_bump.measure.image_group import measured_group
from tests.measure.tiny_encoders import Tiny, few, random_images, seeded, state_digest

PARTS = [(0, 2), (2, 4), (4, 5)]
CONTROLLED = Protocol(etas=few().etas, n_pairs=32, estimator="controlled", target_se=0.1, n_sketch=4)


@pytest.fixture
def net() -> nn.Module:
    """Return a seeded network in evaluation mode."""
    return seeded(Tiny).eval()


@pytest.mark.parametrize("protocol", [few(), CONTROLLED], ids=["matched", "controlled"])
@pytest.mark.parametrize("chunk", [3, None])
def test_a_part_has_the_same_numbers_whichever_others_are_measured(
    net: nn.Module, protocol: Protocol, chunk: int | None
) -> None:
    images = random_images(5)
    together = dict(zip(PARTS, measure_parts(net, images, protocol, PARTS, chunk=chunk, progress=False), strict=True))
    for some in ([PARTS[1]], [PARTS[2], PARTS[0]]):
        for part, profile in zip(some, measure_parts(net, images, protocol, some, chunk=chunk), strict=True):
            np.testing.assert_array_equal(profile.ratio, together[part].ratio)
            np.testing.assert_array_equal(profile.n_directions, together[part].n_directions)
            assert profile.image_digests == together[part].image_digests


def test_joined_parts_are_the_whole(net: nn.Module) -> None:
    images, protocol = random_images(5), few()
    joined = Profile.concatenate(list(measure_parts(net, images, protocol, PARTS)))
    whole = measure_profile(net, images, protocol)
    np.testing.assert_allclose(joined.ratio, whole.ratio, rtol=1e-4)
    assert joined.image_digests == whole.image_digests
    assert joined.encoder_digest == whole.encoder_digest


def test_a_closed_iterator_leaves_no_trace(net: nn.Module) -> None:
    net.train()
    before, precision = state_digest(net), torch.get_float32_matmul_precision()
    parts = measure_parts(net.eval(), random_images(5), few(), PARTS)
    next(parts)
    parts.close()  # type: ignore[attr-defined]
    net.train()
    assert state_digest(net) == before
    assert torch.get_float32_matmul_precision() == precision


def test_memory_that_runs_out_costs_no_part_twice(net: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def group(*args: object) -> object:
        if next(calls) == 2:
            raise OutOfMemoryError("full")
        return measured_group(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("lit_bump.measure.measurement.measured_group", group)
    profiles = list(measure_parts(net, random_images(5), few(), PARTS, chunk=16))
    assert [profile.n_images for profile in profiles] == [2, 2, 1]
    assert [profile.context["chunk"] for profile in profiles] == [16, 16, 8]


@pytest.mark.parametrize("part", [(0, 0), (-1, 2), (4, 6), (3, 2)])
def test_a_part_outside_of_the_set_is_refused(net: nn.Module, part: tuple[int, int]) -> None:
    with pytest.raises(LitBumpError, match=r"give 0 <= start < stop <= 5"):
        measure_parts(net, random_images(5), few(), [part])
