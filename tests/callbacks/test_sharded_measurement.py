"""Images are shared out whole, in order and evenly, whatever the number of processes."""

from __future__ import annotations

import pytest

from lit_bump.callbacks.sharded_measurement import shard


@pytest.mark.parametrize("n_images", [1, 2, 7, 32])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 64])
def test_shards_are_consecutive_and_even(n_images: int, world_size: int) -> None:
    shards = [shard(n_images, rank, world_size) for rank in range(world_size)]
    assert [image for start, stop in shards for image in range(start, stop)] == list(range(n_images))
    sizes = {stop - start for start, stop in shards}
    assert max(sizes) - min(sizes) <= 1
