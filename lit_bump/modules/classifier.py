"""Train an image classifier by the paper's recipe: SGD with momentum, cosine per step to exactly zero.

Paper: A.2 "Training". Imports Lightning, torchmetrics and the networks.
Batches are raw [0, 1] pixels and labels; normalisation is the network's own. The one seam is ``training_images``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities import rank_zero_warn
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.nn import functional
from torchmetrics import Metric
from torchmetrics.classification import MulticlassAccuracy

from lit_bump.errors import LitBumpError
from lit_bump.modules.initial_weights import load_network
from lit_bump.modules.run_length import run_length
from lit_bump.networks import build_network


def cosine_to_zero(step: int, total: int) -> float:
    """Return the factor of the learning rate after a number of optimiser steps.

    It is (1 + cos(pi step / total)) / 2: exactly 1 at step 0, and exactly 0 from step ``total`` on.

    Args:
        step: optimiser steps taken.
        total: optimiser steps of the whole run, at least 1.

    Returns:
        A number between 0 and 1.

    Example:
        >>> cosine_to_zero(0, 39100), cosine_to_zero(39100, 39100)
        (1.0, 0.0)

    """
    return (1 + math.cos(math.pi * min(step, total) / total)) / 2


class ClassifierModule(LightningModule):
    """Train a classifier with SGD, cosine learning rate per step and weight decay on all parameters.

    Logs ``train/loss`` and ``train/accuracy`` per epoch, ``train/loss_step`` per step, and ``val/loss``,
    ``val/accuracy``, ``test/loss``, ``test/accuracy``. Training loss and accuracy are those of the images that
    ``training_images`` returns; evaluation losses are without label smoothing.

    Args:
        network: a name of ``lit_bump.networks.NETWORKS``, or a module from images to logits. A module is not saved
            among the hyperparameters: give it again to ``load_from_checkpoint``.
        width: channels of a named network's first stage; None for the paper's.
        num_classes: number of classes, at least 2.
        lr: learning rate at the first step, above 0; the paper's is 0.1.
        momentum: of SGD without Nesterov, in [0, 1); the paper's is 0.9.
        weight_decay: on every parameter, BatchNorm's included, at least 0; the paper's is 5e-4.
        label_smoothing: of the training loss, in [0, 1); the paper has none.
        channels_last: keep convolution weights and images in the memory format that most devices convolve fastest.
        init_from: checkpoint of a trained module of the same network; training starts from its weights, at step 0. Not
            read where a run is resumed, or the module itself was loaded from a checkpoint.

    Raises:
        LitBumpError: if a value is out of range, the network is unknown, or ``width`` is given with a module.

    Example:
        >>> module = ClassifierModule("resnet18", width=4)
        >>> module(torch.rand(2, 3, 32, 32)).shape, module.forward_features(torch.rand(2, 3, 32, 32)).shape
        (torch.Size([2, 10]), torch.Size([2, 32]))

    """

    def __init__(
        self,
        network: str | nn.Module = "resnet18",
        width: int | None = None,
        num_classes: int = 10,
        lr: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        label_smoothing: float = 0.0,
        channels_last: bool = True,
        init_from: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2:
            raise LitBumpError(f"num_classes={num_classes}: give at least 2")
        if not (lr > 0 and math.isfinite(lr)):
            raise LitBumpError(f"lr={lr}: give a learning rate above 0, such as 0.1")
        if not 0 <= momentum < 1:
            raise LitBumpError(f"momentum={momentum}: give a value in [0, 1), such as 0.9")
        if not (weight_decay >= 0 and math.isfinite(weight_decay)):
            raise LitBumpError(f"weight_decay={weight_decay}: give a value of at least 0, such as 5e-4")
        if not 0 <= label_smoothing < 1:
            raise LitBumpError(f"label_smoothing={label_smoothing}: give a value in [0, 1); 0 is off")
        # Plain types, whatever NumPy scalars came in: a checkpoint must load with weights_only.
        width, num_classes = None if width is None else int(width), int(num_classes)
        lr, momentum, weight_decay = float(lr), float(momentum), float(weight_decay)
        label_smoothing, channels_last = float(label_smoothing), bool(channels_last)
        self.save_hyperparameters(ignore=["network"] if isinstance(network, nn.Module) else [])
        self.num_classes = num_classes
        self.lr, self.momentum, self.weight_decay, self.label_smoothing = lr, momentum, weight_decay, label_smoothing
        self.channels_last, self.init_from = channels_last, init_from
        self.network = _as_network(network, width, num_classes)
        if channels_last:
            self.network.to(memory_format=torch.channels_last)
        self.train_accuracy = MulticlassAccuracy(num_classes, average="micro", validate_args=False)
        self.val_accuracy = self.train_accuracy.clone()
        self.test_accuracy = self.train_accuracy.clone()

    def setup(self, stage: str) -> None:
        """Refuse data with more classes than the network has outputs, and take the weights of ``init_from``.

        Args:
            stage: only ``fit`` takes weights; those of a run that is resumed are restored after this.

        Raises:
            LitBumpError: if the data module has a greater ``num_classes``, or ``init_from`` does not fit.

        """
        data = getattr(self._trainer, "datamodule", None)
        there = getattr(data, "num_classes", None)
        if isinstance(there, int) and there > self.num_classes:
            name = type(data).__name__
            raise LitBumpError(f"num_classes={self.num_classes}, but {name} has {there} classes: give at least {there}")
        if stage == "fit" and self.init_from is not None and getattr(self._trainer, "ckpt_path", None) is None:
            load_network(self.network, self.init_from)
            self.init_from = None  # once: a second fit goes on with what the first has learnt

    def forward(self, images: Float[Tensor, "image channel height width"]) -> Float[Tensor, "image label"]:
        """Return the logits.

        Args:
            images: raw [0, 1] pixels (image, channel, height, width).

        Returns:
            One row an image, (image, class).

        Raises:
            LitBumpError: if the network returns anything else.

        """
        logits = self.network(self._formatted(images))
        expected = (len(images), self.num_classes)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != expected:
            returned = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
            name = type(self.network).__name__
            raise LitBumpError(f"{name} returns {returned}, not logits of shape {expected}: check num_classes")
        return logits

    def forward_features(self, images: Float[Tensor, "image channel height width"]) -> Tensor:
        """Return Phi, the features that the network's head classifies.

        Args:
            images: raw [0, 1] pixels (image, channel, height, width).

        Returns:
            The network's ``forward_features``, (image, feature).

        Raises:
            LitBumpError: if the network has no ``forward_features``.

        """
        encoder = getattr(self.network, "forward_features", None)
        if encoder is None:
            name = type(self.network).__name__
            raise LitBumpError(f"{name} has no forward_features: name the layer that gives its features instead")
        features: Tensor = encoder(self._formatted(images))
        return features

    def training_images(self, batch: Sequence[Tensor]) -> Float[Tensor, "image channel height width"]:
        """Return the images that the training loss sees: the batch's own. Override to change them.

        Args:
            batch: images and labels of one training step, after the data pipeline.

        Returns:
            Raw [0, 1] pixels (image, channel, height, width), in the order of the labels.

        """
        return batch[0]

    def training_loss(self, logits: Float[Tensor, "image label"], labels: Tensor) -> Tensor:
        """Return the loss that training lowers.

        Args:
            logits: of the training images, (image, class).
            labels: their classes, (image,).

        Returns:
            Mean cross-entropy, with label smoothing where it is on; a scalar.

        """
        return functional.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)

    def training_step(self, batch: Sequence[Tensor], batch_idx: int) -> Tensor:
        """Return the training loss of one batch and log it.

        Args:
            batch: images and labels.
            batch_idx: unused.

        Returns:
            That of ``training_loss``, a scalar.

        """
        images, labels = self.training_images(batch), batch[1]
        logits = self(images)
        loss = self.training_loss(logits, labels)
        self.train_accuracy.update(logits, labels)
        n_images = len(images)
        self.log("train/loss_step", loss, on_step=True, on_epoch=False, prog_bar=True, batch_size=n_images)
        self.log("train/loss", loss, on_step=False, on_epoch=True, sync_dist=True, batch_size=n_images)
        self.log("train/accuracy", self.train_accuracy, on_step=False, on_epoch=True, batch_size=n_images)
        return loss

    def validation_step(self, batch: Sequence[Tensor], batch_idx: int) -> None:
        """Log loss and accuracy of one validation batch.

        Args:
            batch: images and labels.
            batch_idx: unused.

        """
        self._evaluate(batch, "val", self.val_accuracy)

    def test_step(self, batch: Sequence[Tensor], batch_idx: int) -> None:
        """Log loss and accuracy of one test batch.

        Args:
            batch: images and labels.
            batch_idx: unused.

        """
        self._evaluate(batch, "test", self.test_accuracy)

    def predict_step(self, batch: Tensor | Sequence[Tensor], batch_idx: int) -> Float[Tensor, "image label"]:
        """Return the class probabilities of one batch.

        Args:
            batch: images, or images and labels (ignored).
            batch_idx: unused.

        Returns:
            One row an image that sums to 1, (image, class), float32 or wider.

        """
        images = batch if isinstance(batch, Tensor) else batch[0]
        logits = self(images)
        probabilities: Tensor = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(dim=1)
        return probabilities

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Return SGD and the cosine to zero over the run's real number of optimiser steps.

        A resumed run follows the cosine of its own length: a later end bends the rest of the curve.

        Returns:
            Optimizer and per-step scheduler, as Lightning takes them.

        Raises:
            LitBumpError: if the length of the run is unknown.

        """
        total = run_length(self.trainer)
        if total is None:
            raise LitBumpError("the cosine needs the length of the run, which is unknown: set trainer.max_steps")
        optimizer = torch.optim.SGD(
            self.parameters(), lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay, nesterov=False
        )
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cosine_to_zero(step, max(total, 1)))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_load_checkpoint(self, checkpoint: dict[str, object]) -> None:
        """Refuse a checkpoint of a network given as a module, where this one is built by name; else keep own options.

        A resumed run goes on with this module's learning rate, momentum and weight decay, which the restored optimizer
        would otherwise replace by those of the checkpoint; a warning names each that differs.

        Args:
            checkpoint: as Lightning read it; its optimizer and scheduler states are changed where the options differ.

        Raises:
            LitBumpError: if the checkpoint names no network, but this module has one by name.

        """
        self.init_from = None  # the checkpoint's weights are those to go on with
        saved = checkpoint.get("hyper_parameters")
        if isinstance(saved, dict) and "network" not in saved and "network" in self.hparams:
            raise LitBumpError("this checkpoint's network was given as a module: pass it again as network=...")
        if isinstance(saved, dict) and self._trainer is not None and self._trainer.training:
            self._keep_own_options(checkpoint, saved)

    def _keep_own_options(self, checkpoint: dict[str, Any], saved: dict[str, Any]) -> None:
        now = {"lr": self.lr, "momentum": self.momentum, "weight_decay": self.weight_decay}
        changed = {name: value for name, value in now.items() if saved.get(name, value) != value}
        for name, value in changed.items():
            rank_zero_warn(f"the checkpoint was trained with {name}={saved[name]}, and training goes on with {value}")
        for group in (group for state in checkpoint.get("optimizer_states", ()) for group in state["param_groups"]):
            if "lr" in changed and group.get("initial_lr") == saved["lr"]:
                group["lr"] *= self.lr / saved["lr"]
                group["initial_lr"] = self.lr
            group |= {name: now[name] for name in changed if name != "lr" and group.get(name) == saved[name]}
        for schedule in checkpoint.get("lr_schedulers", ()) if "lr" in changed else ():
            bases = schedule.get("base_lrs", ())
            schedule["base_lrs"] = [self.lr if base == saved["lr"] else base for base in bases]

    def _formatted(self, images: Tensor) -> Tensor:
        if self.channels_last and images.ndim == 4:
            return images.contiguous(memory_format=torch.channels_last)
        return images

    def _evaluate(self, batch: Sequence[Tensor], stage: str, accuracy: Metric) -> None:
        images, labels = batch[0], batch[1]
        logits = self(images)
        accuracy.update(logits, labels)
        loss = functional.cross_entropy(logits, labels)
        self.log(f"{stage}/loss", loss, on_step=False, on_epoch=True, sync_dist=True, batch_size=len(images))
        self.log(
            f"{stage}/accuracy", accuracy, on_step=False, on_epoch=True, prog_bar=stage == "val", batch_size=len(images)
        )


def _as_network(network: str | nn.Module, width: int | None, num_classes: int) -> nn.Module:
    if isinstance(network, str):
        arguments = {} if width is None else {"width": width}
        return build_network(network, num_classes=num_classes, **arguments)
    if width is not None:
        raise LitBumpError(f"width={width} is for networks given by name: build {type(network).__name__} at that width")
    return network
