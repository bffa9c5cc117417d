"""Adversarial training as a mixin: the training images are attacked, and robust accuracy is evaluated.

Paper: fig. 2a. Sources: Madry et al. 2018 (PGD), Zhang et al. 2019 (TRADES), Wong et al. 2020 (fast). Imports
Lightning and ``attacks``. The seam is ``training_images(batch)``; TRADES also fills ``training_loss(logits, labels)``.
Attacks draw from seeds of their own: the global random streams stay those of clean training.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn import functional

from lit_bump.attacks import PGD, attack_mode, attacked
from lit_bump.attacks.attack_mode import Mode
from lit_bump.attacks.norm_ball import Norm
from lit_bump.errors import LitBumpError, nearest
from lit_bump.modules.classifier import ClassifierModule

Method = Literal["pgd", "trades", "fast"]
_METHODS = ("pgd", "trades", "fast")
_OPTIONS = (
    *("method", "norm", "eps", "attack_steps", "attack_step_size", "attack_mode", "eps_warmup", "beta"),
    *("eval_steps", "eval_restarts", "eval_batches", "attack_seed"),
)


class AdversarialMixin(LightningModule):
    """Train on attacked images, and log ``val/robust_accuracy`` and ``test/robust_accuracy``. Put it left of a module.

    A module of one's own needs ``forward`` (images in [0, 1] -> logits), and takes its training images from
    ``self.training_images(batch)`` instead of ``batch[0]``; for ``trades`` also its loss from
    ``self.training_loss(logits, labels)``. Where batches are no pairs of images and labels, it overrides
    ``images_and_labels``. An image counts as robust where the model is right on it and stays right under attack, so
    robust accuracy is never above ``val/attacked_accuracy``, the clean accuracy of the same images.

    Args:
        args: of the module.
        method: ``pgd``: cross-entropy on attacked images. ``trades``: cross-entropy on clean images, and ``beta`` times
            the divergence of the prediction under attack. ``fast``: one step of 1.25 eps from a random start.
        norm: of the ball, ``L2`` or ``Linf``.
        eps: its radius, in [0, 1] pixels.
        attack_steps: gradient steps of the training attack; ``fast`` takes one.
        attack_step_size: length of a step; None for 2.5 eps / steps, 1.25 eps for ``fast``.
        attack_mode: of the model while it is attacked in training: ``eval`` or ``train`` (batch statistics).
        eps_warmup: optimiser steps over which the radius grows from 0 to eps.
        beta: weight of the divergence in ``trades``.
        eval_steps: gradient steps of the evaluation's attack, in evaluation mode.
        eval_restarts: restarts of the evaluation's attack.
        eval_batches: batches that are attacked in each evaluation; None for all, 0 for none.
        attack_seed: of all random starts.
        kwargs: of the module.

    Raises:
        LitBumpError: if a value is out of range.

    Example:
        >>> module = AdversarialClassifierModule("resnet18", width=4, eps=0.5, attack_steps=2)
        >>> module.training_attack().length
        0.625

    """

    def __init__(
        self,
        *args: Any,
        method: Method = "pgd",
        norm: Norm = "L2",
        eps: float = 0.5,
        attack_steps: int = 7,
        attack_step_size: float | None = None,
        attack_mode: Mode = "eval",
        eps_warmup: int = 0,
        beta: float = 6.0,
        eval_steps: int = 10,
        eval_restarts: int = 1,
        eval_batches: int | None = None,
        attack_seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if method not in _METHODS:
            raise LitBumpError(f"method is {method!r}{nearest(str(method), _METHODS)}")
        if not (beta >= 0 and np.isfinite(beta)):
            raise LitBumpError(f"beta is {beta}; give a weight of at least 0, such as 6")
        for name, count in (("eps_warmup", eps_warmup), ("eval_batches", eval_batches), ("attack_seed", attack_seed)):
            if count is not None and count < 0:
                raise LitBumpError(f"{name} is {count}; it must be at least 0")
        # Plain types, whatever NumPy scalars came in: a checkpoint must load with weights_only.
        eps, beta, attack_steps, eval_steps = float(eps), float(beta), int(attack_steps), int(eval_steps)
        eps_warmup, eval_restarts, attack_seed = int(eps_warmup), int(eval_restarts), int(attack_seed)
        eval_batches = None if eval_batches is None else int(eval_batches)
        attack_step_size = None if attack_step_size is None else float(attack_step_size)
        self.save_hyperparameters(*_OPTIONS)
        steps = 1 if method == "fast" else attack_steps
        length = 1.25 * eps if method == "fast" and attack_step_size is None and eps > 0 else attack_step_size
        self.method, self.beta = method, beta
        self.attack = PGD(norm, eps, steps, length, mode=attack_mode)
        self.evaluation_attack = PGD(norm, eps, eval_steps, restarts=eval_restarts)
        self.eps_warmup, self.eval_batches, self.attack_seed = eps_warmup, eval_batches, attack_seed
        self._attacked: Tensor | None = None
        self._was_asked = False
        self._at_step = (-2, 0)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a class in which the mixin stands at the right: the module's own steps would come first.

        Args:
            kwargs: of the class statement.

        Raises:
            LitBumpError: if a module comes before the mixin.

        """
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1 : cls.__mro__.index(AdversarialMixin)]:
            if issubclass(base, LightningModule) and not issubclass(base, AdversarialMixin):
                name = base.__name__
                raise LitBumpError(f"put the mixin left of the module: class {cls.__name__}(AdversarialMixin, {name})")

    def training_attack(self) -> PGD:
        """Return the attack of the present optimiser step: the radius and the step grow while ``eps_warmup`` lasts."""
        whole = self.attack
        if whole.eps == 0 or self._trainer is None or self.trainer.global_step >= self.eps_warmup:
            return whole
        share = (self.trainer.global_step + 1) / self.eps_warmup
        return replace(whole, eps=share * whole.eps, step_size=share * whole.length)

    def training_images(self, batch: Any) -> Float[Tensor, "image channel height width"]:
        """Return the images that the training loss sees.

        Args:
            batch: images in [0, 1] pixels and labels of one training step, as ``images_and_labels`` reads them.

        Returns:
            Attacked images, in the order of the labels; the clean ones for ``trades``, whose loss knows the others.

        """
        images, labels = self.images_and_labels(batch)
        attack, seed, self._was_asked = self.training_attack(), self._seed(), True
        if self.method != "trades":
            return attacked(self, images, labels, attack, seed=seed)
        clean = _predicted(self, images, attack.mode)
        self._attacked = attacked(self, images, clean, attack, seed=seed, loss=_divergence)
        return images

    def training_loss(self, logits: Float[Tensor, "image label"], labels: Tensor) -> Tensor:
        """Return the module's own loss, and for ``trades`` the divergence under attack in addition.

        Args:
            logits: of the images that ``training_images`` returned.
            labels: their classes.

        Returns:
            A scalar.

        """
        own = getattr(super(), "training_loss", functional.cross_entropy)
        loss: Tensor = own(logits, labels)
        if self._attacked is not None:
            near, self._attacked = self._attacked, None
            loss = loss + self.beta * _divergence(self(near), logits.float().log_softmax(dim=1)).mean()
        return loss

    def images_and_labels(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the images and labels of a batch; override where it is no pair of them.

        Args:
            batch: as the loader gives it.

        Returns:
            Images in [0, 1] pixels, and their classes.

        Raises:
            LitBumpError: if the batch is no pair.

        """
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            name = type(self).__name__
            raise LitBumpError(f"a batch is a {type(batch).__name__}, no pair: override images_and_labels in {name}")
        return batch[0], batch[1]

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Refuse to go on training on clean images unnoticed.

        Args:
            outputs: of the step.
            batch: of the step.
            batch_idx: of the step.

        Raises:
            LitBumpError: if the module's step has not asked for the attacked images, or has left them out of its loss.

        """
        super().on_train_batch_end(outputs, batch, batch_idx)
        name = type(self).__name__
        if not self._was_asked:
            raise LitBumpError(f"{name} trained on clean images: take them from self.training_images(batch)")
        if self._attacked is not None:
            raise LitBumpError(
                f"{name} left the attack out of its loss: take it from self.training_loss(logits, labels)"
            )
        self._was_asked = False

    def validation_step(self, batch: Any, batch_idx: int, *args: Any) -> Any:
        """Run the module's own step, then log the robust accuracy of the batch.

        Args:
            batch: images and labels.
            batch_idx: number of the batch.
            args: number of the loader, where there are several.

        Returns:
            What the module's own step returns.

        """
        outcome = _own_step(super().validation_step, batch, batch_idx, *args)
        self._log_robustness(batch, batch_idx, "val")
        return outcome

    def test_step(self, batch: Any, batch_idx: int, *args: Any) -> Any:
        """Run the module's own step, then log the robust accuracy of the batch.

        Args:
            batch: images and labels.
            batch_idx: number of the batch.
            args: number of the loader, where there are several.

        Returns:
            What the module's own step returns.

        """
        outcome = _own_step(super().test_step, batch, batch_idx, *args)
        self._log_robustness(batch, batch_idx, "test")
        return outcome

    def _log_robustness(self, batch: Any, batch_idx: int, stage: str) -> None:
        if self.eval_batches is not None and batch_idx >= self.eval_batches:
            return
        images, labels = self.images_and_labels(batch)
        seed = _mixed(self.attack_seed, 1, batch_idx, self.global_rank)  # the same in every epoch: a fixed attack
        near = attacked(self, images, labels, self.evaluation_attack, seed=seed)
        right = self(images).argmax(dim=1) == labels
        robust = right & (self(near).argmax(dim=1) == labels)
        for name, value in (("attacked_accuracy", right), ("robust_accuracy", robust)):
            shown = stage == "val" and value is robust
            self.log(f"{stage}/{name}", value.float().mean(), prog_bar=shown, sync_dist=True, batch_size=len(images))

    def _seed(self) -> int:
        """Return a seed that no other batch, process or step of the run has, the same when the run is resumed."""
        step = -1 if self._trainer is None else self.trainer.global_step
        at, n_batches = self._at_step
        self._at_step = (step, n_batches + 1 if at == step else 0)  # a step may take several batches
        return _mixed(self.attack_seed, 0, step + 1, self._at_step[1], self.global_rank)


class AdversarialClassifierModule(AdversarialMixin, ClassifierModule):
    """Train a classifier on attacked images: ``AdversarialMixin`` over ``ClassifierModule``."""


def _own_step(step: Callable[..., Any], batch: Any, *numbers: int) -> Any:
    """Return what a module's own step returns, given as many numbers (of the batch, of the loader) as it takes."""
    parameters = inspect.signature(step).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return step(batch, *numbers)
    return step(batch, *numbers[: len(parameters) - 1])


def _predicted(module: Any, images: Tensor, mode: Mode) -> Tensor:
    """Return the log probabilities of clean images, which the attack of TRADES moves away from."""
    with attack_mode(module, mode), torch.no_grad():
        log_probabilities: Tensor = module(images).float().log_softmax(dim=1)
    return log_probabilities


def _divergence(logits: Tensor, clean: Tensor) -> Tensor:
    """Return KL(clean || softmax of logits) of every image, from log probabilities: none of them underflows."""
    moved = logits.float().log_softmax(dim=1)
    return functional.kl_div(moved, clean, reduction="none", log_target=True).sum(dim=1)


def _mixed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 2)
