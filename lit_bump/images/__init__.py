"""Where images come from: drawn shapes, CIFAR-10 files, uniform noise and Gaussian blur, as plain arrays.

Paper: A.2 "Protocol" and "Training" name the sets. Needs torch, NumPy, Pillow and filelock; never Lightning.
The probe sets and the data modules both take their images from here, so a probe image is what a network was shown.
"""

from lit_bump.images.cifar10_files import CIFAR10NotFoundError, load_cifar10
from lit_bump.images.cifar10_folder import CIFAR10_CLASSES
from lit_bump.images.drawn_shapes import SHAPE_CLASSES, SHAPE_SIZE, draw_shapes, draw_shapes_at
from lit_bump.images.gaussian_blur import gaussian_blur
from lit_bump.images.uniform_noise import noise_images

__all__ = [
    "CIFAR10_CLASSES",
    "SHAPE_CLASSES",
    "SHAPE_SIZE",
    "CIFAR10NotFoundError",
    "draw_shapes",
    "draw_shapes_at",
    "gaussian_blur",
    "load_cifar10",
    "noise_images",
]
