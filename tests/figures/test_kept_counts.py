"""Counts of kept images: as many lines as curves that lost some, and no digit over another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lit_bump.figures import profile_panels
from lit_bump.figures.kept_counts import has_discarded
from lit_bump.measure import Profile
from tests.figures.drawn_profiles import drawn_profile
from tests.figures.printed_text import assert_readable


def longer(n_rungs: int) -> Profile:
    """Return a profile of 32 images on a ladder of many rungs, the first of which keep 1, 2, 3 ... images."""
    ratio = np.where(np.arange(n_rungs) >= np.arange(32)[:, None] // 3, 1.0, np.nan)
    return replace(drawn_profile(9.0, n_images=32, n_rungs=n_rungs), ratio=ratio)


def test_a_profile_that_lost_no_image_has_no_counts() -> None:
    assert not has_discarded(drawn_profile(1.0))
    assert has_discarded(drawn_profile(1.0, n_lost=1))


@pytest.mark.parametrize("n_rungs", [17, 29])
def test_digits_do_not_touch_on_long_ladders(n_rungs: int) -> None:
    figure = profile_panels({name: {"a": longer(n_rungs), "b": longer(n_rungs)} for name in "xyz"})
    assert_readable(figure)
    written = [int(text.get_text()) for text in figure.axes[0].texts]
    assert sorted(set(written)) == [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]


def test_room_for_counts_is_made_by_a_taller_figure() -> None:
    without, with_counts = (profile_panels({"": {"a": drawn_profile(9.0, n_lost=n)}}) for n in (0, 3))
    assert with_counts.get_size_inches()[1] > without.get_size_inches()[1]
    ticks = with_counts.axes[0].get_yticks()
    assert min(ticks) >= 0.5  # none beside the counts
