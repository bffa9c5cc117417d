"""Laws of the attack, against closed forms, an obvious loop in float64, and Foolbox at an equal budget."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from typing import Any

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lit_bump.attacks import PGD, attacked
from lit_bump.attacks.norm_ball import Norm
from lit_bump.attacks.pgd import cross_entropy
from lit_bump.errors import LitBumpError

BOTH = pytest.mark.parametrize(("norm", "eps"), [("L2", 0.7), ("Linf", 8 / 255)])


class Tiny(nn.Module):
    """A small classifier with BatchNorm and dropout, its input normalisation inside where asked."""

    def __init__(self, *, folded: bool = False) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.folded = folded
        self.mean, self.std = 0.45, 0.25
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8 * 4, 10)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
        self.dropout = nn.Dropout(0.1)
        if folded:  # the same function: (x - mean) / std is affine, so the convolution can take it up inside
            self.convolution.padding = (0, 0)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits."""
        if self.folded:
            images = nn.functional.pad(images, (1, 1, 1, 1), value=self.mean)
            kernel = self.convolution.weight / self.std
            bias = self.convolution.bias - (kernel * self.mean).sum(dim=(1, 2, 3))  # type: ignore[operator]
            hidden = nn.functional.conv2d(images, kernel, bias)
        else:
            hidden = self.convolution((images - self.mean) / self.std)
        hidden = nn.functional.adaptive_avg_pool2d(self.norm(hidden).relu(), 2).flatten(1)
        return self.head(self.dropout(hidden))  # type: ignore[no-any-return]


def batch(n: int = 16) -> tuple[Tensor, Tensor]:
    """Return images and labels."""
    generator = torch.Generator().manual_seed(3)
    return torch.rand(n, 3, 8, 8, generator=generator), torch.randint(0, 10, (n,), generator=generator)


def sizes(near: Tensor, images: Tensor, norm: str) -> Tensor:
    """Return the norm of what was added to each image, in float64."""
    moved: Tensor = (near.double() - images.double()).flatten(1).norm(dim=1, p=2 if norm == "L2" else float("inf"))
    return moved


@BOTH
def test_linear_model_is_pushed_along_its_weights_to_the_edge_of_the_ball(norm: Norm, eps: float) -> None:
    # Binary cross-entropy of w.x falls along w for label 1: the best perturbation is -eps times its dual direction.
    weight = torch.randn(3 * 8 * 8, generator=torch.Generator().manual_seed(1))

    def linear(images: Tensor) -> Tensor:
        score = images.flatten(1) @ weight
        return torch.stack([torch.zeros_like(score), score], dim=1)

    images = torch.full((2, 3, 8, 8), 0.5)
    eps = min(eps, 0.4)
    attack = PGD(norm, eps, steps=20, is_random=False)
    near = attacked(linear, images, torch.ones(2, dtype=torch.long), attack, seed=0)
    best = -eps * (weight.sign() if norm == "Linf" else weight / weight.norm())
    torch.testing.assert_close((near - images).flatten(1), best.expand(2, -1), rtol=0, atol=1e-6)


@BOTH
def test_one_image_at_a_time_in_float64_gives_the_same(norm: Norm, eps: float) -> None:
    net, (images, labels) = Tiny().double().eval(), batch(3)
    attack = PGD(norm, eps, steps=3, is_random=False)
    near = attacked(net, images.double(), labels, attack, seed=0)
    for index in range(3):
        image = images[index : index + 1].double()
        point = image.clone()
        for _ in range(attack.steps):
            point = point.detach().requires_grad_()
            loss = nn.functional.cross_entropy(net(point), labels[index : index + 1])
            (gradient,) = torch.autograd.grad(loss, point)
            unit = gradient.sign() if norm == "Linf" else gradient / gradient.norm()
            moved = point.detach() + attack.length * unit - image
            moved = moved.clamp(-eps, eps) if norm == "Linf" else moved * min(1.0, eps / float(moved.norm()))
            point = (image + moved).clamp(0, 1)
        torch.testing.assert_close(near[index : index + 1], point, rtol=0, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["L2", "Linf"]), st.floats(1e-3, 1.0), st.integers(1, 4), st.integers(1, 2), st.integers(0, 2**31)
)
def test_both_limits_hold(norm: Norm, eps: float, steps: int, restarts: int, seed: int) -> None:
    images, labels = batch(4)
    images = images.round(decimals=1)  # some pixels at 0 and 1
    near = attacked(Tiny(), images, labels, PGD(norm, eps, steps=steps, restarts=restarts), seed=seed)
    assert bool((sizes(near, images, norm) <= eps * (1 + 1e-5) + 1e-7).all())
    assert float(near.min()) >= 0
    assert float(near.max()) <= 1


@BOTH
def test_loss_rises_and_more_restarts_never_lower_it(norm: Norm, eps: float) -> None:
    net, (images, labels) = Tiny().eval(), batch(64)
    reached = [cross_entropy(net(images), labels)]
    for restarts in (1, 4):
        near = attacked(net, images, labels, PGD(norm, eps, steps=5, restarts=restarts), seed=0)
        reached.append(cross_entropy(net(near), labels))
    assert float((reached[1] >= reached[0]).double().mean()) >= 0.9
    assert bool((reached[2] >= reached[1] - 1e-6).all())


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_attack_leaves_no_trace_in_the_model(mode: str) -> None:
    net, (images, labels) = Tiny().train(), batch()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    stream, original = torch.get_rng_state(), images.clone()
    attacked(net, images, labels, PGD(mode=mode, steps=7), seed=0)  # type: ignore[arg-type]
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())
    assert all(part.training for part in net.modules())
    assert torch.equal(images, original)
    if mode == "eval":  # dropout in training mode draws from it
        assert torch.equal(torch.get_rng_state(), stream)


def test_mode_of_the_attack_is_the_documented_one() -> None:
    seen: list[bool] = []

    class Watched(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            seen.append(self.norm.training)
            return super().forward(images)

    images, labels = batch(4)
    for mode in ("eval", "train"):
        attacked(Watched().train(), images, labels, PGD(mode=mode, steps=1), seed=0)
    assert seen == [False, True]


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-30])
def test_tiny_and_zero_gradients_give_whole_steps_and_no_nan(scale: float) -> None:
    images, labels = batch(4)

    def flat(pixels: Tensor) -> Tensor:
        score = scale * pixels.flatten(1).sum(dim=1)
        return torch.stack([score, torch.zeros_like(score)], dim=1)

    attack = PGD("L2", 0.1, steps=1, step_size=0.05, is_random=False)
    near = attacked(flat, images, labels.clamp(max=1), attack, seed=0, loss=lambda logits, _: logits[:, 0])
    expected = 0.0 if scale == 0 else 0.05
    assert bool(near.isfinite().all())
    assert float(sizes(near, images, "L2").max()) == pytest.approx(expected, rel=1e-3)


def test_normalisation_may_be_a_layer_or_folded_into_the_weights() -> None:
    images, labels = batch()
    attack = PGD("L2", 0.5, steps=3)
    layered = attacked(Tiny().double(), images.double(), labels, attack, seed=0)
    folded = attacked(Tiny(folded=True).double(), images.double(), labels, attack, seed=0)
    torch.testing.assert_close(layered, folded, rtol=0, atol=1e-5)


def test_autocast_leaves_the_perturbation_in_float32() -> None:
    images, labels = batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = attacked(Tiny(), images, labels, PGD("L2", 0.5, steps=3), seed=0)
    assert near.dtype == torch.float32
    assert float(sizes(near, images, "L2").max()) == pytest.approx(0.5, rel=0.02)


def test_it_works_inside_of_inference_mode_and_no_grad() -> None:
    net, (images, labels) = Tiny(), batch()
    outside = attacked(net, images, labels, PGD(steps=2), seed=0)
    with torch.no_grad():
        assert torch.equal(attacked(net, images, labels, PGD(steps=2), seed=0), outside)
    with torch.inference_mode():
        inside = attacked(net, images * 1, labels * 1, PGD(steps=2), seed=0)
    assert torch.equal(inside, outside)


def test_seed_decides_and_radius_zero_changes_nothing() -> None:
    net, (images, labels) = Tiny(), batch()
    runs = [attacked(net, images, labels, PGD(steps=1), seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert torch.equal(attacked(net, images, labels, PGD(eps=0.0), seed=0), images)


@pytest.fixture
def _as_users_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users do not have the checks of these tests


@pytest.mark.usefixtures("_as_users_run")
def test_images_that_are_normalised_or_integers_are_refused() -> None:
    images, labels = batch()
    with pytest.raises(LitBumpError, match=r"expects unnormalised images in \[0, 1\]; these run from -"):
        attacked(Tiny(), (images - 0.45) / 0.25, labels, PGD(), seed=0)
    with pytest.raises(LitBumpError, match="float images"):
        attacked(Tiny(), (images * 255).to(torch.uint8), labels, PGD(), seed=0)


def test_float16_is_refused_where_gradients_would_vanish() -> None:
    images, labels = batch()
    with pytest.raises(LitBumpError, match="cannot run in float16: use precision 16-mixed or bf16"):
        attacked(Tiny(), images.half(), labels, PGD(), seed=0)


def test_models_and_targets_that_cannot_be_attacked_are_refused() -> None:
    images, labels = batch(4)
    net = Tiny()
    with pytest.raises(LitBumpError, match="there are 4 images and 3 targets"):
        attacked(net, images, labels[:3], PGD(), seed=0)
    with pytest.raises(LitBumpError, match="returns tuple: give a callable images -> logits"):
        attacked(lambda pixels: (net(pixels),), images, labels, PGD(), seed=0)
    with pytest.raises(LitBumpError, match="output has no gradient"):
        attacked(lambda pixels: net(pixels).detach(), images, labels, PGD(), seed=0)
    with pytest.raises(LitBumpError, match="loss is NaN or infinite on every image"):
        attacked(lambda pixels: net(pixels) * float("nan"), images, labels, PGD(), seed=0)


def test_l2_radius_beyond_the_pixel_cube_is_refused() -> None:
    images, labels = batch(4)
    with pytest.raises(LitBumpError, match=r"eps is 127.5, and no two images of 3x8x8 in \[0, 1\] are further apart"):
        attacked(Tiny(), images, labels, PGD("L2", 127.5), seed=0)


def test_loss_without_a_value_an_image_is_refused() -> None:
    images, labels = batch()
    with pytest.raises(LitBumpError, match=r"shape \(\): give a value an image"):
        attacked(Tiny(), images, labels, PGD(), seed=0, loss=lambda logits, _: logits.sum())


@pytest.mark.usefixtures("_as_users_run")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"norm": "l2"}, r"norm is 'l2' .valid: L2, Linf"),
        ({"mode": "evil"}, "did you mean 'eval'"),
        ({"eps": -1.0}, "eps is -1.0"),
        ({"eps": float("nan")}, "eps is nan"),
        ({"norm": "Linf", "eps": 8.0}, "for 8/255 write 0.031373"),
        ({"step_size": 0.0}, "step_size is 0.0"),
        ({"steps": 0}, "steps is 0"),
        ({"restarts": 0}, "restarts is 0"),
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        replace(PGD(), **wrong)  # type: ignore[arg-type]


@BOTH
def test_robust_accuracy_is_that_of_foolbox_at_an_equal_budget(norm: Norm, eps: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Foolbox imports names that SciPy and Python deprecate
        foolbox: Any = importlib.import_module("foolbox")  # its types are incomplete
    net, (images, _) = Tiny().eval(), batch(256)
    labels = net(images).argmax(dim=1)  # all are right at first
    eps *= 0.1 if norm == "L2" else 0.3  # so that some fall and some stand
    ours = attacked(net, images, labels, PGD(norm, eps, steps=10), seed=0)
    fooled = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu")
    kind = foolbox.attacks.L2PGD if norm == "L2" else foolbox.attacks.LinfPGD
    theirs = kind(rel_stepsize=0.25, steps=10)(fooled, images, labels, epsilons=eps)[1]
    accuracies = [float((net(near).argmax(dim=1) == labels).double().mean()) for near in (ours, theirs)]
    assert 0.05 < accuracies[0] < 0.95
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.03)
