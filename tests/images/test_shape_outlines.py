"""Laws of the outlines: inside is negative, nothing reaches far beyond the radius, and size scales the picture."""

from __future__ import annotations

import numpy as np
import pytest

from lit_bump.images.shape_outlines import OUTLINES, Outline


def field(outline: Outline, radius: float, scale: float = 1.0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return the distances on a fine grid that covers plus or minus 20 pixels."""
    grid = np.arange(-20, 20, 0.25, dtype=np.float32) * np.float32(scale)
    x, y = np.meshgrid(grid, grid)
    return np.asarray(outline(x[None], y[None], np.full((1, 1, 1), radius, dtype=np.float32))[0])


@pytest.mark.parametrize("name", OUTLINES)
def test_the_shape_lies_within_its_radius(name: str) -> None:
    distance = field(OUTLINES[name], 10)
    x = np.arange(-20, 20, 0.25)
    away = np.sqrt(x[:, None] ** 2 + x[None] ** 2)
    assert (distance[away > 12.5] > 0).all()
    area = float((distance < 0).mean()) * 40 * 40
    assert 60 < area < 330  # pixels, of a disk with 314


@pytest.mark.parametrize("name", OUTLINES)
def test_size_scales_the_shape(name: str) -> None:
    np.testing.assert_allclose(field(OUTLINES[name], 10), field(OUTLINES[name], 20, scale=2) / 2, atol=1e-4)


def test_rings_are_hollow_and_stripes_are_interrupted() -> None:
    centre = {name: float(field(outline, 10)[80, 80]) for name, outline in OUTLINES.items()}
    assert {name for name, distance in centre.items() if distance > 0} >= {"ring", "square outline", "crescent"}
    assert {name for name, distance in centre.items() if distance < 0} >= {"disk", "square", "triangle", "plus", "star"}
    row = field(OUTLINES["striped disk"], 10)[80] < 0
    assert int(np.abs(np.diff(row.astype(int))).sum()) >= 4


def test_a_star_has_five_points() -> None:
    x = np.cos(np.linspace(0, 2 * np.pi, 3600, endpoint=False, dtype=np.float32))
    y = np.sin(np.linspace(0, 2 * np.pi, 3600, endpoint=False, dtype=np.float32))
    inside = OUTLINES["star"](x[None, None] * 8, y[None, None] * 8, np.full((1, 1, 1), 10, dtype=np.float32))[0, 0] < 0
    assert int((inside & ~np.roll(inside, 1)).sum()) == 5
