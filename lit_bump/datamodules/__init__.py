"""The LightningDataModules: CIFAR-10 and the drawn shapes, each clean, blurred, with permuted labels, or noise.

Paper: A.2 "Training". Needs Lightning. Batches are (float32 images in [0, 1], int64 labels).
The folder ``datamodules`` at the root of the repository is a link for readers: imported from there, every module would
exist twice, so that is refused.
"""

if __name__ != "lit_bump.datamodules":  # through the link at the root: every class would exist twice
    raise ImportError(f"import lit_bump.datamodules instead of {__name__}: that folder is a link for readers")

from lit_bump.datamodules.base_datamodule import ImageDataModule
from lit_bump.datamodules.cifar10_datamodule import (
    BlurredCIFAR10DataModule,
    CIFAR10DataModule,
    NoiseCIFAR10DataModule,
    PermutedLabelsCIFAR10DataModule,
)
from lit_bump.datamodules.shapes_datamodule import (
    BlurredShapesDataModule,
    NoiseShapesDataModule,
    PermutedLabelsShapesDataModule,
    ShapesDataModule,
)

__all__ = [
    "BlurredCIFAR10DataModule",
    "BlurredShapesDataModule",
    "CIFAR10DataModule",
    "ImageDataModule",
    "NoiseCIFAR10DataModule",
    "NoiseShapesDataModule",
    "PermutedLabelsCIFAR10DataModule",
    "PermutedLabelsShapesDataModule",
    "ShapesDataModule",
]
