"""The ladder: the paper's figures, and equal amplitude per pixel at any other size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lit_bump.errors import LitBumpError
from lit_bump.measure.ladder import ladder, logarithmic_etas


@pytest.mark.parametrize("size", [(3, 224, 224), (1, 28, 28), (3, 8, 8), (3, 64, 64), (4, 33, 21)])
def test_every_size_has_the_amplitude_per_pixel_of_the_papers(size: tuple[int, int, int]) -> None:
    per_pixel = np.array(ladder(size)) / math.sqrt(math.prod(size))
    np.testing.assert_allclose(per_pixel, np.array(ladder((3, 224, 224))) / math.sqrt(150528))


def test_the_cifar_ladder_is_the_papers_rounded_one() -> None:
    np.testing.assert_allclose(np.log10(ladder((3, 32, 32))), np.linspace(-2.85, 1.15, 17))
    exact = -2 + 0.5 * math.log10(3072 / 150528)
    assert math.log10(ladder((3, 32, 32))[0]) == pytest.approx(exact, abs=0.006)


def test_rungs_are_plain_floats_in_order() -> None:
    etas = logarithmic_etas(-3.0, 1.0, 9)
    assert all(type(eta) is float for eta in etas)
    assert (etas[0], etas[-1]) == pytest.approx((1e-3, 10.0))
    np.testing.assert_allclose(np.diff(np.log10(etas)), 0.5)
    assert logarithmic_etas(-1.0, -1.0, 1) == (0.1,)


def test_nonsense_is_refused() -> None:
    with pytest.raises(LitBumpError, match="n_rungs is 0"):
        logarithmic_etas(-1.0, 1.0, 0)
    with pytest.raises(LitBumpError, match="the first must be the smaller"):
        logarithmic_etas(1.0, -1.0, 3)
    with pytest.raises(LitBumpError, match=r"input_size is \(3, 0, 3\)"):
        ladder((3, 0, 3))
