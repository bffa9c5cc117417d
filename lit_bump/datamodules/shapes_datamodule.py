"""The embedded data set as data modules: clean, blurred, with permuted labels, and noise in its place.

Not in the paper: its contrasts on a laptop, in a minute and without a download. Needs Lightning through the base.
Ten images in a row hold each class once, so ``subset`` takes the first images and is balanced.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from lit_bump.datamodules.base_datamodule import ImageDataModule, ImagesAndLabels, Split, at_least
from lit_bump.datamodules.training_variants import BlurredMixin, NoiseMixin, PermutedLabelsMixin
from lit_bump.images.drawn_shapes import SHAPE_CLASSES, SHAPE_SIZE, draw_shapes
from lit_bump.images.random_words import checked_seed


class ShapesDataModule(ImageDataModule):
    """Serve drawn shapes: ten classes of 32 x 32 colour images, made from a seed in about a second.

    With ``n_val`` 0 the test split serves as the validation set.

    Args:
        n_train: training images drawn; 20,000 are enough for a small network.
        n_test: test images drawn.
        shapes_seed: seed of the drawing alone; another one is another data set.
        kwargs: options of every data module.

    Raises:
        LitBumpError: if a number is out of its range.

    """

    num_classes = len(SHAPE_CLASSES)
    input_size = SHAPE_SIZE
    class_names = SHAPE_CLASSES

    def __init__(self, *, n_train: int = 20_000, n_test: int = 2_000, shapes_seed: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n_train = at_least("n_train", n_train, 1)
        self.n_test = at_least("n_test", n_test, 1)
        self.shapes_seed = checked_seed(shapes_seed, "shapes_seed")

    def load_split(self, split: Split) -> ImagesAndLabels:
        """Draw a split.

        Args:
            split: ``"train"`` or ``"test"``.

        Returns:
            uint8 images, axes (image, channel, height, width), and labels.

        """
        return draw_shapes(self.n_train if split == "train" else self.n_test, seed=self.shapes_seed, split=split)

    def training_order(self, labels: Int64[Tensor, " image"]) -> Int64[Tensor, " image"]:
        """Take the images as they were drawn: any beginning is random and balanced already.

        Args:
            labels: of the training split.

        Returns:
            0, 1, 2, ...

        """
        return torch.arange(len(labels))

    def data_options(self) -> dict[str, Any]:
        """Add what is drawn.

        Returns:
            Plain numbers.

        """
        return {**super().data_options(), "n_train": self.n_train, "shapes_seed": self.shapes_seed}

    def probe_options(self) -> dict[str, Any]:
        """Add the seed of the drawing.

        Returns:
            Keyword arguments of the registry.

        """
        return {**super().probe_options(), "shapes_seed": self.shapes_seed}


class BlurredShapesDataModule(BlurredMixin, ShapesDataModule):
    """Train on blurred shapes; test images are clean unless ``blur_test``."""


class PermutedLabelsShapesDataModule(PermutedLabelsMixin, ShapesDataModule):
    """Train on shapes whose labels are permuted over the whole training set, counts kept, no augmentation."""


class NoiseShapesDataModule(NoiseMixin, ShapesDataModule):
    """Train on seeded uniform noise with the labels of the shapes, no augmentation; test images are shapes."""
