"""Laws of the ball: starts lie in it, steps have their length whatever the gradient, projections keep both limits."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.attacks.norm_ball import Norm, ascent_step, projected, random_start

NORMS = get_args(Norm)


def size(perturbation: torch.Tensor, norm: str) -> torch.Tensor:
    """Return the norm of every image's perturbation, in float64."""
    sizes: torch.Tensor = perturbation.double().flatten(1).norm(dim=1, p=2 if norm == "L2" else float("inf"))
    return sizes


@settings(deadline=None)
@given(st.sampled_from(NORMS), st.floats(1e-6, 4.0), st.integers(0, 2**31), st.sampled_from([(1, 1, 1), (3, 5, 4)]))
def test_start_lies_in_the_ball(norm: Norm, eps: float, seed: int, shape: tuple[int, int, int]) -> None:
    start = random_start(torch.zeros(6, *shape), norm, eps, seed=seed)
    assert bool((size(start, norm) <= eps * (1 + 1e-5)).all())


def test_start_fills_the_ball_uniformly() -> None:
    # In d dimensions the share of the volume within radius s is s^d: for d = 4, half of it lies within 2^(-1/4).
    start = random_start(torch.zeros(20_000, 1, 2, 2), "L2", 1.0, seed=0)
    assert float((size(start, "L2") < 0.5**0.25).double().mean()) == pytest.approx(0.5, abs=0.02)
    start = random_start(torch.zeros(20_000, 1, 1, 1), "Linf", 1.0, seed=0)
    assert float(start.double().var()) == pytest.approx(1 / 3, rel=0.03)


def test_start_depends_on_its_seed_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = random_start(torch.zeros(2, 3, 4, 4), "L2", 1.0, seed=7)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one, random_start(torch.rand(2, 3, 4, 4), "L2", 1.0, seed=7))
    assert not torch.equal(one, random_start(torch.zeros(2, 3, 4, 4), "L2", 1.0, seed=8))


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e-12, 1.0, 1e30])
def test_step_has_its_whole_length_for_any_gradient(scale: float) -> None:
    gradient = scale * torch.randn(3, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    gradient[2] = 0
    for norm in NORMS:
        step = ascent_step(gradient, norm, 0.25)
        assert size(step, norm).tolist() == pytest.approx([0.25, 0.25, 0], rel=1e-5)
        assert bool(((step * gradient.sign()) >= 0).all())


def test_step_of_a_gradient_that_is_not_finite_is_none() -> None:
    gradient = torch.ones(2, 1, 2, 2)
    gradient[0, 0, 0, 0] = float("nan")
    for norm in NORMS:
        step = ascent_step(gradient, norm, 1.0)
        assert bool((step[0] == 0).all())
        assert bool((step[1] > 0).all())


@settings(deadline=None)
@given(st.sampled_from(NORMS), st.floats(1e-4, 3.0), st.floats(1e-3, 100.0), st.integers(0, 2**31))
def test_projection_keeps_ball_and_pixel_range_and_is_idempotent(
    norm: Norm, eps: float, scale: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(4, 3, 5, 5, generator=generator)
    once = projected(scale * torch.randn(4, 3, 5, 5, generator=generator), images, norm, eps)
    assert bool((size(once, norm) <= eps * (1 + 1e-5)).all())
    assert bool((images + once >= -1e-6).all() and (images + once <= 1 + 1e-6).all())
    torch.testing.assert_close(projected(once, images, norm, eps), once, rtol=1e-5, atol=1e-7)


def test_projection_leaves_what_is_inside() -> None:
    images = torch.full((1, 1, 2, 2), 0.5)
    inside = torch.tensor([[[[0.1, -0.1], [0.0, 0.2]]]])
    for norm in NORMS:
        assert torch.equal(projected(inside, images, norm, 0.3), inside)
