"""What an attack may do to a model, and what is put back: modes, running statistics, gradients on and off."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lit_bump.attacks import attack_mode


def model() -> nn.Sequential:
    """Return a model in mixed modes: a frozen BatchNorm, a live one, a dropout."""
    return nn.Sequential(nn.BatchNorm2d(3).eval(), nn.BatchNorm2d(3), nn.Dropout(0.5))


@pytest.mark.parametrize(("mode", "inside"), [("eval", [False, False, False]), ("train", [False, True, True])])
def test_modes_are_as_asked_and_put_back(mode: str, inside: list[bool]) -> None:
    net = model()
    before = [part.training for part in net.modules()]
    with attack_mode(net, mode):  # type: ignore[arg-type]
        assert [part.training for part in net] == inside
    assert [part.training for part in net.modules()] == before


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_statistics_are_untouched_also_after_an_error(mode: str) -> None:
    net = model()
    before = {name: value.clone() for name, value in net.state_dict().items()}

    def fail() -> None:
        with attack_mode(net, mode):  # type: ignore[arg-type]
            net(torch.rand(4, 3, 2, 2))
            raise RuntimeError("the model fails")

    with pytest.raises(RuntimeError, match="the model fails"):
        fail()
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert [part.training for part in net] == [False, True, True]


def test_gradients_flow_inside_of_inference_mode() -> None:
    weight = nn.Parameter(torch.ones(3))
    with torch.inference_mode():
        images = torch.rand(3)
        with attack_mode(None):
            pixels = images.clone().requires_grad_()
            (gradient,) = torch.autograd.grad((weight * pixels).sum(), pixels)
        assert torch.is_inference_mode_enabled()
    assert gradient.tolist() == [1, 1, 1]


def test_float16_autocast_is_left_and_bfloat16_is_kept() -> None:
    for dtype, kept in ((torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16)):
        with torch.autocast("cpu", dtype=dtype), attack_mode(None):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == kept
