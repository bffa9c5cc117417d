"""VGG-16 for 32x32 images: thirteen convolutions with bias and BatchNorm, five max-pools, one linear head.

Paper: A.2 "Training". Simonyan and Zisserman (2015); the CIFAR form follows kuangliu/pytorch-cifar at 49b7aa9 (MIT),
written anew. Imports torch alone. Phi is the map after the last max-pool, 1x1 at this size: there is no hidden linear
layer whose output could be meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from lit_bump.networks.image_network import ImageNetwork, initialise
from lit_bump.networks.normalisation import CIFAR_MEAN, CIFAR_STD

STAGES = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))  # channels in units of the width; a max-pool ends each


class VGG16(ImageNetwork):
    """Classify 32x32 images with the CIFAR form of VGG-16.

    Args:
        width: channels of the first stage; the last has eight times as many. The paper's is 64 (512 features).
        num_classes: number of logits.
        mean: of the images, in [0, 1] pixels; one value a channel.
        std: of the images, in [0, 1] pixels; one value a channel.

    Raises:
        LitBumpError: if a count is below 1, or ``mean`` and ``std`` do not fit.

    Example:
        >>> sum(parameter.numel() for parameter in VGG16().parameters())
        14728266

    """

    def __init__(
        self,
        width: int = 64,
        num_classes: int = 10,
        mean: Sequence[float] = CIFAR_MEAN,
        std: Sequence[float] = CIFAR_STD,
    ) -> None:
        super().__init__(8 * width, num_classes, mean, std)
        layers: list[nn.Module] = []
        in_channels = len(mean)
        for stage in STAGES:
            for factor in stage:
                channels = factor * width
                layers += [nn.Conv2d(in_channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
                in_channels = channels
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        initialise(self)

    def feature_map(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image feature rows columns"]:
        """Return the map after the last max-pool, a thirty-second of the input's height and width.

        Args:
            images: normalised images (image, channel, height, width), at least 32x32.

        Returns:
            (image, feature, height / 32, width / 32): 1x1 for 32x32 images.

        """
        last: Tensor = self.features(images)
        return last
