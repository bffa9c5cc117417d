"""WRN-28-10: a pre-activation residual network, ten times wider than its 16-channel stem; no dropout.

Paper: A.2 "Training". Zagoruyko and Komodakis (2017); details as in xternalz/WideResNet-pytorch at 1171f93 (MIT),
written anew. Imports torch alone. Where a block changes the number of channels, its rectified input feeds both
branches; elsewhere the shortcut is the raw input.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lit_bump.errors import LitBumpError
from lit_bump.networks.image_network import ImageNetwork, initialise
from lit_bump.networks.normalisation import CIFAR_MEAN, CIFAR_STD

STEM_CHANNELS = 16  # whatever the width


class PreActivationBlock(nn.Module):
    """Add two 3x3 convolutions, each after BatchNorm and ReLU, to the shortcut.

    Args:
        in_channels: channels of the input.
        channels: channels of the output.
        stride: of the first convolution and of the shortcut's.

    """

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Conv2d(in_channels, channels, 1, stride, bias=False)

    def forward(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image feature rows columns"]:
        """Return the block's map.

        Args:
            images: the map below, (image, channel, height, width).

        Returns:
            The map above; rows and columns are divided by the stride.

        """
        rectified = functional.relu(self.bn1(images))
        residual: Tensor = self.conv2(functional.relu(self.bn2(self.conv1(rectified))))
        return residual + (images if self.shortcut is None else self.shortcut(rectified))


class WideResNet28x10(ImageNetwork):
    """Classify 32x32 images with WRN-28-10, or a narrower or shallower relative.

    Args:
        width: channels of the first stage; the last has four times as many. The paper's is 160 (640 features);
            16 gives WRN-28-1.
        num_classes: number of logits.
        mean: of the images, in [0, 1] pixels; one value a channel.
        std: of the images, in [0, 1] pixels; one value a channel.
        depth: number of convolutions along the way and the head, 6 n + 4 with n blocks a stage; the paper's is 28.

    Raises:
        LitBumpError: if ``depth`` is not 6 n + 4, a count is below 1, or ``mean`` and ``std`` do not fit.

    Example:
        >>> sum(parameter.numel() for parameter in WideResNet28x10().parameters())
        36479194

    """

    def __init__(
        self,
        width: int = 160,
        num_classes: int = 10,
        mean: Sequence[float] = CIFAR_MEAN,
        std: Sequence[float] = CIFAR_STD,
        *,
        depth: int = 28,
    ) -> None:
        super().__init__(4 * width, num_classes, mean, std)
        n_blocks, rest = divmod(depth - 4, 6)
        if rest or n_blocks < 1:
            raise LitBumpError(f"depth={depth}: give 6 n + 4 with n at least 1, such as 10, 16, 22 or 28")
        self.conv1 = nn.Conv2d(len(mean), STEM_CHANNELS, 3, padding=1, bias=False)
        self.stage1 = self._stage(STEM_CHANNELS, width, n_blocks, stride=1)
        self.stage2 = self._stage(width, 2 * width, n_blocks, stride=2)
        self.stage3 = self._stage(2 * width, 4 * width, n_blocks, stride=2)
        self.bn1 = nn.BatchNorm2d(4 * width)
        initialise(self)

    @staticmethod
    def _stage(in_channels: int, channels: int, n_blocks: int, *, stride: int) -> nn.Sequential:
        first = PreActivationBlock(in_channels, channels, stride)
        return nn.Sequential(first, *(PreActivationBlock(channels, channels, 1) for _ in range(n_blocks - 1)))

    def feature_map(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image feature rows columns"]:
        """Return the last rectified map before pooling, a quarter of the input's height and width.

        Args:
            images: normalised images (image, channel, height, width).

        Returns:
            (image, feature, height / 4, width / 4): 8x8 for 32x32 images.

        """
        last = self.stage3(self.stage2(self.stage1(self.conv1(images))))
        return functional.relu(self.bn1(last))
