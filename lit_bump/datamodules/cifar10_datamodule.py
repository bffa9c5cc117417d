"""CIFAR-10 as data modules: clean, blurred, with permuted labels, and noise in its place.

Paper: A.2 "Training", figs. 2 and 3. Needs Lightning through the base; the files are read by ``lit_bump.images``.
Nothing is fetched unless ``download`` says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lit_bump.datamodules.base_datamodule import ImageDataModule, ImagesAndLabels, Split
from lit_bump.datamodules.training_variants import BlurredMixin, NoiseMixin, PermutedLabelsMixin
from lit_bump.images.cifar10_files import load_cifar10
from lit_bump.images.cifar10_folder import CIFAR10_CLASSES


class CIFAR10DataModule(ImageDataModule):
    """Serve CIFAR-10 from any local copy: extracted files, the archive, or an image folder.

    With ``n_val`` 0 the test split serves as the validation set.

    Args:
        data_dir: folder that holds ``cifar-10-batches-py``, ``cifar-10-python.tar.gz``, or ``train/<class>`` and
            ``test/<class>`` with PNG or JPEG files; or that has a folder ``cifar10`` which does.
        download: fetch the published archive where there is no copy.
        kwargs: options of every data module.

    Raises:
        LitBumpError: if a number is out of its range.

    """

    num_classes = len(CIFAR10_CLASSES)
    input_size = (3, 32, 32)
    class_names = CIFAR10_CLASSES

    def __init__(self, data_dir: str | Path = "data", *, download: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_dir = Path(data_dir)
        self.download = download

    def prepare_data(self) -> None:
        """Find, fetch if asked, verify and decode the files, once per machine."""
        load_cifar10(self.data_dir, "test", download=self.download)

    def load_split(self, split: Split) -> ImagesAndLabels:
        """Read a split.

        Args:
            split: ``"train"`` or ``"test"``.

        Returns:
            uint8 images, axes (image, channel, height, width), and labels.

        """
        return load_cifar10(self.data_dir, split, download=self.download)

    def probe_options(self) -> dict[str, Any]:
        """Add the folder.

        Returns:
            Keyword arguments of the registry.

        """
        return {**super().probe_options(), "data_dir": self.data_dir, "download": self.download}


class BlurredCIFAR10DataModule(BlurredMixin, CIFAR10DataModule):
    """Train on blurred CIFAR-10; test images are clean unless ``blur_test``."""


class PermutedLabelsCIFAR10DataModule(PermutedLabelsMixin, CIFAR10DataModule):
    """Train on CIFAR-10 whose labels are permuted over the whole training set, counts kept, no augmentation."""


class NoiseCIFAR10DataModule(NoiseMixin, CIFAR10DataModule):
    """Train on seeded uniform noise with CIFAR-10's labels, no augmentation; test images are CIFAR-10's."""
