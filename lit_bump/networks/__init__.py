"""CIFAR classifiers as plain ``nn.Module``s: raw [0, 1] pixels in, features (Phi) and logits out.

Paper: A.2 "Training" (ResNet-18, VGG-16, WRN-28-10). Imports torch alone.
The input normalisation lives inside every network, so never normalise the images before; Phi is ``forward_features``.
"""

from lit_bump.networks.image_network import ImageNetwork
from lit_bump.networks.network_registry import NETWORKS, build_network
from lit_bump.networks.normalisation import CIFAR_MEAN, CIFAR_STD, Normalise
from lit_bump.networks.resnet import ResNet18
from lit_bump.networks.vgg import VGG16
from lit_bump.networks.wide_resnet import WideResNet28x10

__all__ = [
    "CIFAR_MEAN",
    "CIFAR_STD",
    "NETWORKS",
    "VGG16",
    "ImageNetwork",
    "Normalise",
    "ResNet18",
    "WideResNet28x10",
    "build_network",
]
