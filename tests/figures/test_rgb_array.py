"""Rendered pixels: the figure's own size, a copy that the next drawing does not change."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from lit_bump.figures import rgb_array


def test_pixels_have_the_figures_size_and_their_own_memory() -> None:
    figure = Figure(figsize=(1, 2), dpi=50, facecolor="white")
    pixels = rgb_array(figure)
    assert pixels.shape == (100, 50, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.owndata
    figure.set_facecolor("black")
    assert (rgb_array(figure) == 0).all()
    assert (pixels == 255).all()
