"""Limits of the axis of r: they hold what is drawn, and never close in on noise."""

from __future__ import annotations

import pytest

from lit_bump.figures.curve_style import ratio_limits


@pytest.mark.parametrize("ratios", [[], [float("nan")], [1.0, 1.3], [float("inf"), 0.0, -1.0]])
def test_limits_are_never_closer_than_a_half_and_two(ratios: list[float]) -> None:
    assert ratio_limits(ratios) == (0.5, 2.0)


def test_limits_hold_all_ratios_but_wild_ones() -> None:
    low, high = ratio_limits([0.2, 17.0])
    assert low < 0.2
    assert high > 17.0
    assert ratio_limits([1e-30, 1e30]) == (1e-2, 1e4)
