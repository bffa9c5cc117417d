"""The networks by name, for configs and the command line.

Paper: A.2 "Training" names the three families. Imports the networks of this folder alone.
A name stands for the architecture only: the width comes with it as an argument, so a narrow sibling keeps the name.
"""

from __future__ import annotations

import inspect
from typing import Any

from lit_bump.errors import LitBumpError, nearest
from lit_bump.networks.image_network import ImageNetwork
from lit_bump.networks.resnet import ResNet18
from lit_bump.networks.vgg import VGG16
from lit_bump.networks.wide_resnet import WideResNet28x10

NETWORKS: dict[str, type[ImageNetwork]] = {"resnet18": ResNet18, "vgg16": VGG16, "wrn28x10": WideResNet28x10}


def build_network(name: str, **arguments: Any) -> ImageNetwork:
    """Build a network by its name, with freshly drawn weights from the global generator.

    Args:
        name: one of ``NETWORKS``.
        **arguments: of the network's class, such as ``width`` and ``num_classes``.

    Returns:
        The network, on the CPU, in float32 and training mode.

    Raises:
        LitBumpError: if there is no network of that name, or it takes no such argument.

    Example:
        >>> build_network("resnet18", width=8).num_features
        64

    """
    if name not in NETWORKS:
        raise LitBumpError(f"there is no network {name!r}{nearest(name, NETWORKS)}")
    valid = list(inspect.signature(NETWORKS[name]).parameters)
    for argument in arguments:
        if argument not in valid:
            raise LitBumpError(f"network {name!r} takes no argument {argument!r}{nearest(argument, valid)}")
    return NETWORKS[name](**arguments)
