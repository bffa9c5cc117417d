"""Projected gradient descent on the pixels of an image, against any classifier.

Paper: fig. 2a. Source of the method: Madry et al. 2018; a single step from a random start is the fast attack of Wong et
al. 2020. Needs torch. The model's parameters get no gradient, its modes and statistics are put back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lit_bump.attacks.attack_mode import Mode, attack_mode
from lit_bump.attacks.norm_ball import Norm, ascent_step, projected, random_start
from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure.validation import PIXEL_SLACK

Loss = Callable[[Tensor, Tensor], Tensor]
_SEED_STRIDE = 1_000_003  # restarts of one seed must not meet those of the next


@dataclass(frozen=True)
class PGD:
    """Hold every choice of an attack.

    Args:
        norm: ``L2`` or ``Linf``, over all pixels of an image.
        eps: radius of the ball, in [0, 1] pixels; 0 leaves the images as they are.
        steps: gradient steps, at least 1.
        step_size: length of a step; None for 2.5 eps / steps, with which the boundary can be reached and followed.
        restarts: attacks of each image from other starts; the one with the greatest loss counts.
        is_random: start at a random point of the ball, not at the image.
        mode: of the model while it is attacked, ``eval`` or ``train``.

    Raises:
        LitBumpError: if a value is out of range.

    Example:
        >>> PGD("L2", eps=0.5, steps=10).length
        0.125

    """

    norm: Norm = "L2"
    eps: float = 0.5
    steps: int = 7
    step_size: float | None = None
    restarts: int = 1
    is_random: bool = True
    mode: Mode = "eval"

    def __post_init__(self) -> None:
        """Refuse values out of range.

        Raises:
            LitBumpError: with the value and what is allowed.

        """
        if self.norm not in ("L2", "Linf"):
            raise LitBumpError(f"norm is {self.norm!r}{nearest(str(self.norm), ('L2', 'Linf'))}")
        if self.mode not in ("eval", "train"):
            raise LitBumpError(f"mode is {self.mode!r}{nearest(str(self.mode), ('eval', 'train'))}")
        if not (math.isfinite(self.eps) and self.eps >= 0):
            raise LitBumpError(f"eps is {self.eps}; give a radius in [0, 1] pixels, such as 0.5 (L2) or 0.03 (Linf)")
        if self.norm == "Linf" and self.eps > 1:
            raise LitBumpError(f"eps is {self.eps}, above the whole pixel range; for 8/255 write {8 / 255:.6f}")
        if self.step_size is not None and not (math.isfinite(self.step_size) and self.step_size > 0):
            raise LitBumpError(f"step_size is {self.step_size}; give a length above 0, or null for 2.5 eps / steps")
        for name in ("steps", "restarts"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise LitBumpError(f"{name} is {value!r}; it must be a whole number, at least 1")

    @property
    def length(self) -> float:
        """Length of one step."""
        return 2.5 * self.eps / self.steps if self.step_size is None else self.step_size


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the loss that an attack raises by default.

    Args:
        logits: (image, class).
        labels: (image,), or probabilities (image, class).

    Returns:
        Cross-entropy, (image,).

    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    return functional.cross_entropy(logits.to(wide), labels, reduction="none")


def attacked(
    model: Callable[..., Any],
    images: Float[Tensor, "image channel height width"],
    targets: Tensor,
    attack: PGD,
    *,
    seed: int,
    loss: Loss = cross_entropy,
) -> Float[Tensor, "image channel height width"]:
    r"""Return images within ``eps`` of the given ones, at which the loss is greater.

    Each step goes uphill by ``attack.length``, then back into the ball and into [0, 1]. It works inside of
    ``inference_mode``, under autocast (perturbations stay float32) and beside a gradient scaler (no scaled loss).

    Args:
        model: images -> logits, the input normalisation inside. Modes and buffers are left as they were; parameters get
            no gradient.
        images: in [0, 1] pixels, not normalised.
        targets: what ``loss`` takes beside the logits: the true labels, by default.
        attack: the choices.
        seed: of the random starts alone; the global random streams are left alone.
        loss: (logits, targets) -> a value an image, to be raised.

    Returns:
        Images in [0, 1], of the dtype of ``images``, without a graph.

    Raises:
        LitBumpError: if images are not in [0, 1] pixels, or the loss gives no value an image.

    Cost: ``restarts * steps`` passes forward and backward, and a forward a restart more where there are several.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> images, labels = torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1])
        >>> near = attacked(net, images, labels, PGD("L2", 0.1), seed=0)
        >>> bool(((near - images).flatten(1).norm(dim=1) <= 0.1 * (1 + 1e-5)).all())
        True

    """
    _check_pixels(images)
    _check_sizes(images, targets, attack)
    if attack.eps == 0 or not len(images):
        return images.detach().clone()
    with attack_mode(model, attack.mode):
        images, targets = images.detach().clone(), targets.detach().clone()  # no longer of an inference mode
        best, greatest = None, None
        for restart in range(attack.restarts):
            perturbation = _climbed(model, images, targets, attack, seed + _SEED_STRIDE * restart, loss)
            if attack.restarts == 1:
                best = perturbation
                break
            with torch.no_grad():
                reached = _losses(model, images, perturbation, targets, loss)
            if best is None or greatest is None:
                best, greatest = perturbation, reached
            else:
                better = reached.isnan() | (reached > greatest)  # NaN counts as an attack that worked
                best = torch.where(better.view(-1, *[1] * (images.ndim - 1)), perturbation, best)
                greatest = torch.where(better, reached, greatest)
        assert best is not None
        return (images.to(best.dtype) + best).clamp(0, 1).to(images.dtype).detach()


def _climbed(model: Callable[..., Any], images: Tensor, targets: Tensor, attack: PGD, seed: int, loss: Loss) -> Tensor:
    start = random_start(images, attack.norm, attack.eps, seed=seed)
    perturbation = projected(start if attack.is_random else torch.zeros_like(start), images, attack.norm, attack.eps)
    for number in range(attack.steps):
        perturbation.requires_grad_(True)
        losses = _losses(model, images, perturbation, targets, loss)
        if number == 0:
            _check_losses(losses)
        total = losses.sum()  # a sum: images do not share a loss
        (gradient,) = torch.autograd.grad(total, perturbation)  # of the pixels alone: parameters get none
        step = ascent_step(gradient, attack.norm, attack.length)
        perturbation = projected(perturbation.detach() + step, images, attack.norm, attack.eps)
    return perturbation


def _losses(model: Callable[..., Any], images: Tensor, perturbation: Tensor, targets: Tensor, loss: Loss) -> Tensor:
    logits = model((images.to(perturbation.dtype) + perturbation).to(images.dtype))
    if not isinstance(logits, Tensor):
        raise LitBumpError(f"the attacked model returns {type(logits).__name__}: give a callable images -> logits")
    values = loss(logits, targets)
    if values.shape != images.shape[:1]:
        raise LitBumpError(f"the loss of an attack has shape {tuple(values.shape)}: give a value an image")
    return values


def _check_sizes(images: Tensor, targets: Tensor, attack: PGD) -> None:
    if len(targets) != len(images):
        raise LitBumpError(f"there are {len(images)} images and {len(targets)} targets: give one an image")
    largest = math.prod(images.shape[1:]) ** 0.5  # from all black to all white
    if attack.norm == "L2" and attack.eps > largest:
        size = "x".join(map(str, images.shape[1:]))
        raise LitBumpError(
            f"eps is {attack.eps}, and no two images of {size} in [0, 1] are further apart than {largest:.3g}"
        )


def _check_losses(losses: Tensor) -> None:
    if not losses.requires_grad:
        raise LitBumpError(
            "the attacked model's output has no gradient: it is detached, or does not depend on the images"
        )
    if not losses.detach().isfinite().any():
        raise LitBumpError("the attacked model's loss is NaN or infinite on every image: nothing can be attacked")


def _check_pixels(images: Tensor) -> None:
    if not images.is_floating_point():
        raise LitBumpError(f"an attack expects float images in [0, 1], not {images.dtype}: divide bytes by 255")
    if (
        images.dtype == torch.float16
    ):  # the gradient of a confident model underflows to 0, and nothing would be attacked
        raise LitBumpError("an attack cannot run in float16: use precision 16-mixed or bf16, or give float32 images")
    if images.numel():
        low, high = (float(value) for value in torch.aminmax(images.detach()))
        if not (low >= -PIXEL_SLACK and high <= 1 + PIXEL_SLACK):
            raise LitBumpError(
                f"an attack expects unnormalised images in [0, 1]; these run from {low:.3g} to {high:.3g}: "
                "move the normalisation into the model"
            )
