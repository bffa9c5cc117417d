"""What every data module does: options, splits, loaders, seeds and probe sets; a subclass says where images come from.

Paper: A.2 "Training" (batch 128, crop and flip, every draw seeded). Needs Lightning. All images are held in memory.
Randomness is a function of (seed, epoch, image), never of a global generator; so the batches are the same with any
number of workers, beside any callback, and after a resume.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Int64, Shaped
from lightning.pytorch import LightningDataModule
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor
from torch.utils.data import DataLoader

from lit_bump.datamodules.array_dataset import ArrayDataset, Batch, as_it_is
from lit_bump.datamodules.training_loader import training_loader
from lit_bump.errors import LitBumpError
from lit_bump.images.class_balanced_order import class_balanced_order
from lit_bump.images.random_words import checked_seed
from lit_bump.probes import ProbeSet, named_probe_set

Split = Literal["train", "test"]
ImagesAndLabels = tuple[Shaped[Tensor, "image channel height width"], Int64[Tensor, " image"]]


class ImageDataModule(LightningDataModule):
    """Serve batches of (float32 images in [0, 1], int64 labels); the base of all data modules here.

    A subclass provides :meth:`load_split`, ``num_classes`` and ``input_size``.

    Args:
        batch_size: images a batch and device; the paper takes 128.
        num_workers: processes that prepare batches; 0 prepares them in the training process. The batches are the same
            for any number.
        subset: train on this many images only, drawn with a fixed seed so that runs of different seeds share them, each
            class as often as any other as far as possible. All of them if not given.
        n_val: hold this many training images out, never trained on, as the validation set. With 0 the test split
            serves as the validation set.
        augment: random crop (4 zero pixels on each side) and horizontal flip of the training images.
        seed: seed of the shuffling and the augmentation, and of nothing else; the global seed does not touch them.
        drop_last: leave out the last batch of an epoch if it is short.
        pin_memory: copy batches through page-locked memory; decided by the device if not given.

    Raises:
        LitBumpError: if a number is out of its range.

    """

    num_classes: int
    input_size: tuple[int, int, int]

    def __init__(
        self,
        *,
        batch_size: int = 128,
        num_workers: int = 0,
        subset: int | None = None,
        n_val: int = 0,
        augment: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        pin_memory: bool | None = None,
    ) -> None:
        super().__init__()
        self.batch_size = at_least("batch_size", batch_size, 1)
        self.num_workers = at_least("num_workers", num_workers, 0)
        self.subset = None if subset is None else at_least("subset", subset, 1)
        self.n_val = at_least("n_val", n_val, 0)
        self.augment = augment
        self.seed = checked_seed(seed)
        self.drop_last = drop_last
        self.pin_memory = pin_memory
        self._sets: dict[str, ArrayDataset] = {}

    # What a subclass or a variant says.

    def load_split(self, split: Split) -> ImagesAndLabels:
        """Return all images and labels of a split, as they are stored.

        Args:
            split: ``"train"`` or ``"test"``.

        Returns:
            uint8 images, axes (image, channel, height, width), and labels.

        Raises:
            NotImplementedError: always; a subclass provides it.

        """
        raise NotImplementedError(f"{type(self).__name__} must define load_split({split!r})")

    def training_order(self, labels: Int64[Tensor, " image"]) -> Int64[Tensor, " image"]:
        """Return the order in which ``subset`` takes training images; ``n_val`` takes them from its end.

        Args:
            labels: of the whole training split.

        Returns:
            A permutation of the positions; the training probe sets are its beginning.

        """
        return class_balanced_order(labels, seed=0)

    def training_variant(
        self, images: Shaped[Tensor, "image channel height width"], labels: Int64[Tensor, " image"]
    ) -> ImagesAndLabels:
        """Change the images and labels that are trained on, once, before the augmentation.

        Args:
            images: training images, after ``subset`` and ``n_val``.
            labels: their classes.

        Returns:
            What is trained on; here, the same.

        """
        return images, labels

    def evaluation_variant(
        self, images: Shaped[Tensor, "image channel height width"]
    ) -> Shaped[Tensor, "image channel height width"]:
        """Change the validation and test images, once.

        Args:
            images: validation or test images.

        Returns:
            What is evaluated on; here, the same.

        """
        return images

    def probe_options(self) -> dict[str, Any]:
        """Return what the registry of probe sets has to know of this module.

        Returns:
            Keyword arguments of :func:`lit_bump.probes.named_probe_set`.

        """
        return {}

    def data_options(self) -> dict[str, Any]:
        """Return the options that decide which images are trained on, with which labels and in which order.

        Returns:
            Plain numbers; they go into every checkpoint, and a resumed run is compared with them.

        """
        names = ("batch_size", "subset", "n_val", "augment", "seed", "drop_last")
        return {name: getattr(self, name) for name in names}

    # What Lightning and users call.

    def probe_set(self, name: str) -> ProbeSet:
        """Return the named probe set, made with this module's own folder and seeds.

        Args:
            name: such as ``cifar32``, ``shapes8b1`` or ``noise32train``.

        Returns:
            The same images on every machine.

        """
        return named_probe_set(name, **self.probe_options())

    def setup(self, stage: str) -> None:
        """Load the splits that a stage needs; what is loaded already stays.

        Args:
            stage: ``fit``, ``validate``, ``test`` or ``predict``.

        """
        for part in {"fit": ("train", "val"), "validate": ("val",)}.get(stage, ("test",)):
            self._set(part)

    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the loader of the training set, in an order that each epoch draws anew.

        Returns:
            A loader for this rank.

        Raises:
            LitBumpError: if ``drop_last`` leaves no batch.

        """
        ranks: dict[str, int] = (self.trainer and self.trainer.distributed_sampler_kwargs) or {}
        loader = training_loader(
            self._set("train"), seed=self.seed, drop_last=self.drop_last, **ranks, **self._loader_options()
        )
        if len(loader) == 0:
            images = f"{len(loader.sampler)} training images"  # type: ignore[arg-type]
            where = "a device" if ranks.get("num_replicas", 1) > 1 else "there are"
            raise LitBumpError(f"drop_last with batch_size={self.batch_size} leaves no batch of the {images} {where}")
        return loader

    def val_dataloader(self) -> DataLoader[Batch]:
        """Return the loader of the validation set: the held-out images, or the test split where ``n_val`` is 0.

        Returns:
            A loader in the stored order.

        """
        return self._evaluation_loader("val")

    def test_dataloader(self) -> DataLoader[Batch]:
        """Return the loader of the test split.

        Returns:
            A loader in the stored order.

        """
        return self._evaluation_loader("test")

    def predict_dataloader(self) -> DataLoader[Batch]:
        """Return the loader of the test split: images and labels, as for ``test``.

        Returns:
            A loader in the stored order.

        """
        return self._evaluation_loader("test")

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of this module; where an epoch stood is kept by its loader.

        Returns:
            The options of :meth:`data_options`.

        """
        return self.data_options()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Warn where a resumed run would go on with other data than the checkpoint was trained on.

        Args:
            state_dict: of :meth:`state_dict`.

        """
        if self.trainer is None or not self.trainer.training:
            return
        now = self.data_options()
        changed = {name: old for name, old in state_dict.items() if now.get(name, old) != old}
        for name, old in changed.items():
            rank_zero_warn(f"the checkpoint was trained with {name}={old}, and training goes on with {now[name]}")

    # How it is done.

    def _set(self, part: str) -> ArrayDataset:
        if part == "val" and self.n_val == 0:
            part = "test"
        if part not in self._sets:
            if part == "test":
                images, labels = self.load_split("test")
                self._sets["test"] = ArrayDataset(self.evaluation_variant(images), labels)
            else:
                self._split_training_images()
        return self._sets[part]

    def _split_training_images(self) -> None:
        images, labels = self.load_split("train")
        n_left = len(labels) - self.n_val
        n_train = n_left if self.subset is None else self.subset
        if n_left < 1 or n_train > n_left:
            wish = f"n_val={self.n_val}" if self.subset is None else f"subset={self.subset} with n_val={self.n_val}"
            raise LitBumpError(f"{wish} asks for more than the {len(labels)} training images that there are")
        if n_train < len(labels):
            order = self.training_order(labels)
            if self.n_val:
                held_out = order[n_left:]
                self._sets["val"] = ArrayDataset(self.evaluation_variant(images[held_out]), labels[held_out])
            images, labels = images[order[:n_train]], labels[order[:n_train]]
        seed = self.seed if self.augment else None
        self._sets["train"] = ArrayDataset(*self.training_variant(images, labels), augmentation_seed=seed)

    def _evaluation_loader(self, part: str) -> DataLoader[Batch]:
        # The generator is there because a pass without one draws a number from the global generator.
        return DataLoader(
            self._set(part), collate_fn=as_it_is, generator=torch.Generator(), shuffle=False, **self._loader_options()
        )

    def _loader_options(self) -> dict[str, Any]:
        pin_memory = self.pin_memory
        if pin_memory is None:
            on_gpu = self.trainer is None or self.trainer.strategy.root_device.type == "cuda"
            pin_memory = on_gpu and torch.cuda.is_available()
        return {
            "batch_size": self.batch_size,
            "num_workers": self.num_workers,
            "persistent_workers": self.num_workers > 0,
            "pin_memory": pin_memory,
        }


def at_least(name: str, value: int, lowest: int) -> int:
    """Return ``value`` if it is a whole number of at least ``lowest``.

    Args:
        name: what the user calls it.
        value: what the user gave.
        lowest: the smallest valid value.

    Returns:
        The value.

    Raises:
        LitBumpError: if it is not.

    """
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise LitBumpError(f"{name}={value!r}: give a whole number of at least {lowest}")
    return value
