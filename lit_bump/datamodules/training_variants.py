"""The three changed training sets, each written once as a mixin over any data module: blur, permuted labels, noise.

Paper: A.2 "Training" and figs. 2b, 2c. Needs Lightning through the base. A variant changes the training images or
labels once, before the augmentation; validation and test images stay real. Put the mixin left of the data module.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float32, Int64, Shaped
from torch import Tensor

from lit_bump.datamodules.array_dataset import as_unit_floats
from lit_bump.datamodules.base_datamodule import ImageDataModule, ImagesAndLabels
from lit_bump.images.gaussian_blur import gaussian_blur
from lit_bump.images.random_words import checked_seed, random_order
from lit_bump.images.uniform_noise import noise_images

_CHUNK = 1024  # images at a time: no second float copy of the whole set


class BlurredMixin(ImageDataModule):
    """Blur the training images once, before the augmentation; they stay floating point, not re-quantised.

    Args:
        sigma: standard deviation of the Gaussian in pixels; the paper takes 1 and 2. 0 changes nothing.
        blur_test: blur the validation and test images as well; clean if not.
        args: ``data_dir``, where the data module has one.
        kwargs: options of the data module.

    Raises:
        LitBumpError: if sigma is negative or not finite.

    """

    def __init__(self, *args: Any, sigma: float | int = 1.0, blur_test: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        gaussian_blur(torch.zeros(0, 1, 1, 1), sigma)  # a wrong sigma is refused here, not at the start of training
        self.sigma = float(sigma)
        self.blur_test = blur_test

    def training_variant(
        self, images: Shaped[Tensor, "image channel height width"], labels: Int64[Tensor, " image"]
    ) -> ImagesAndLabels:
        """Blur the training images.

        Args:
            images: training images.
            labels: their classes.

        Returns:
            float32 images and the same labels.

        """
        images, labels = super().training_variant(images, labels)
        return blurred(images, self.sigma), labels

    def data_options(self) -> dict[str, Any]:
        """Add the blur.

        Returns:
            Plain numbers.

        """
        return {**super().data_options(), "sigma": self.sigma}

    def evaluation_variant(
        self, images: Shaped[Tensor, "image channel height width"]
    ) -> Shaped[Tensor, "image channel height width"]:
        """Blur the validation or test images where ``blur_test`` asks for it.

        Args:
            images: validation or test images.

        Returns:
            float32 images, or the same ones.

        """
        images = super().evaluation_variant(images)
        return blurred(images, self.sigma) if self.blur_test else images


class PermutedLabelsMixin(ImageDataModule):
    """Permute the labels over all images that are trained on: pairs are destroyed, the count of each class is kept.

    It is a permutation and not a fresh draw, done once: the labels stay the same over epochs, ranks and resumes.
    Validation and test labels stay true, so the accuracy on them is chance.

    Args:
        permutation_seed: seed of the permutation alone.
        augment: random crop and flip; the paper turns them off for this variant.
        args: ``data_dir``, where the data module has one.
        kwargs: options of the data module.

    Raises:
        LitBumpError: if the seed is not a whole number of at least 0.

    """

    def __init__(self, *args: Any, permutation_seed: int = 0, augment: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, augment=augment, **kwargs)
        self.permutation_seed = checked_seed(permutation_seed, "permutation_seed")

    def training_variant(
        self, images: Shaped[Tensor, "image channel height width"], labels: Int64[Tensor, " image"]
    ) -> ImagesAndLabels:
        """Permute the labels.

        Args:
            images: training images.
            labels: their classes.

        Returns:
            The same images, and the same labels in another order.

        """
        images, labels = super().training_variant(images, labels)
        order = random_order(len(labels), seed=self.permutation_seed, stream="permuted labels")
        return images, labels[torch.from_numpy(order)]

    def data_options(self) -> dict[str, Any]:
        """Add the seed of the permutation.

        Returns:
            Plain numbers.

        """
        return {**super().data_options(), "permutation_seed": self.permutation_seed}


class NoiseMixin(ImageDataModule):
    """Train on seeded uniform noise images in place of the real ones; the test split stays real.

    The labels stay as they are in the source set: the noise does not depend on them, so any assignment is as random as
    any other, and the count of each class is that of the clean run.

    Args:
        noise_seed: seed of the noise alone; training image i is noise image i of this seed.
        augment: random crop and flip; the paper turns them off for this variant.
        args: ``data_dir``, where the data module has one.
        kwargs: options of the data module.

    Raises:
        LitBumpError: if the seed is not a whole number of at least 0.

    """

    def __init__(self, *args: Any, noise_seed: int = 0, augment: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, augment=augment, **kwargs)
        self.noise_seed = checked_seed(noise_seed, "noise_seed")

    def training_variant(
        self, images: Shaped[Tensor, "image channel height width"], labels: Int64[Tensor, " image"]
    ) -> ImagesAndLabels:
        """Put noise in place of the training images.

        Args:
            images: training images.
            labels: their classes.

        Returns:
            As many noise images, float32, and the same labels.

        """
        images, labels = super().training_variant(images, labels)
        return noise_images(range(len(labels)), seed=self.noise_seed, size=self.input_size), labels

    def data_options(self) -> dict[str, Any]:
        """Add the seed of the noise.

        Returns:
            Plain numbers.

        """
        return {**super().data_options(), "noise_seed": self.noise_seed}

    def probe_options(self) -> dict[str, Any]:
        """Add the noise seed, so that ``noise32train`` holds images of this training set.

        Returns:
            Keyword arguments of the registry.

        """
        return {**super().probe_options(), "noise_seed": self.noise_seed}


def blurred(
    images: Shaped[Tensor, "image channel height width"], sigma: float | int
) -> Float32[Tensor, "image channel height width"]:
    """Blur stored images with the function that also blurs the probe images.

    Args:
        images: uint8, or float32 in [0, 1].
        sigma: standard deviation in pixels.

    Returns:
        float32 images in [0, 1].

    """
    result = torch.empty(images.shape, dtype=torch.float32)
    for start in range(0, len(images), _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = gaussian_blur(as_unit_floats(images[part]), sigma)
    return result
