"""ResNet-18 for 32x32 images: 3x3 stem of stride 1, no max-pool, four stages, a 4x4 map before pooling.

Paper: A.2 "Training". He et al. (2015); the CIFAR form and its layer names follow kuangliu/pytorch-cifar at 49b7aa9
(MIT), written anew. Imports torch alone. torchvision's ResNet-18 (7x7 stem, max-pool) is another network: it would
leave a 1x1 map at this size.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lit_bump.networks.image_network import ImageNetwork, initialise
from lit_bump.networks.normalisation import CIFAR_MEAN, CIFAR_STD


class BasicBlock(nn.Module):
    """Add two normalised 3x3 convolutions to the shortcut, then rectify.

    Args:
        in_channels: channels of the input.
        channels: channels of the output.
        stride: of the first convolution and of the shortcut's.

    """

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            self.shortcut.append(nn.Conv2d(in_channels, channels, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(channels))

    def forward(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image feature rows columns"]:
        """Return the block's map.

        Args:
            images: the map below, (image, channel, height, width).

        Returns:
            The map above; rows and columns are divided by the stride.

        """
        residual = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(images)))))
        return functional.relu(residual + self.shortcut(images))


class ResNet18(ImageNetwork):
    """Classify 32x32 images with the CIFAR form of ResNet-18.

    Args:
        width: channels of the first stage; the last has eight times as many. The paper's is 64 (512 features).
        num_classes: number of logits.
        mean: of the images, in [0, 1] pixels; one value a channel.
        std: of the images, in [0, 1] pixels; one value a channel.

    Raises:
        LitBumpError: if a count is below 1, or ``mean`` and ``std`` do not fit.

    Example:
        >>> sum(parameter.numel() for parameter in ResNet18().parameters())
        11173962

    """

    def __init__(
        self,
        width: int = 64,
        num_classes: int = 10,
        mean: Sequence[float] = CIFAR_MEAN,
        std: Sequence[float] = CIFAR_STD,
    ) -> None:
        super().__init__(8 * width, num_classes, mean, std)
        self.conv1 = nn.Conv2d(len(mean), width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(BasicBlock(width, width, 1), BasicBlock(width, width, 1))
        self.layer2 = nn.Sequential(BasicBlock(width, 2 * width, 2), BasicBlock(2 * width, 2 * width, 1))
        self.layer3 = nn.Sequential(BasicBlock(2 * width, 4 * width, 2), BasicBlock(4 * width, 4 * width, 1))
        self.layer4 = nn.Sequential(BasicBlock(4 * width, 8 * width, 2), BasicBlock(8 * width, 8 * width, 1))
        initialise(self)

    def feature_map(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image feature rows columns"]:
        """Return the last map before pooling, an eighth of the input's height and width.

        Args:
            images: normalised images (image, channel, height, width).

        Returns:
            (image, feature, height / 8, width / 8): 4x4 for 32x32 images.

        """
        stem = functional.relu(self.bn1(self.conv1(images)))
        last: Tensor = self.layer4(self.layer3(self.layer2(self.layer1(stem))))
        return last
