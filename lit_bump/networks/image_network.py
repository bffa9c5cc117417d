"""What the classifiers share: normalise, map, pool (that is Phi), one linear head; and how weights start.

Paper: section 3.2 takes the pooled features of the trained classifiers as the representation. Imports torch alone.
Convolutions start Kaiming-normal by fan-out: with PyTorch's default the signal of a VGG-16 dies on its way up, its
prediction starts at 2e-12, and a narrow one does not learn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.networks.normalisation import CIFAR_MEAN, CIFAR_STD, Normalise


class ImageNetwork(nn.Module, ABC):
    """Classify images from their globally averaged feature map; a subclass gives ``feature_map``.

    Args:
        num_features: channels of the feature map.
        num_classes: number of logits, at least 1.
        mean: one value a channel of the images, in [0, 1] pixels.
        std: one positive value a channel, in [0, 1] pixels.

    Raises:
        LitBumpError: if a count is below 1, or ``mean`` and ``std`` do not fit.

    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        mean: Sequence[float] = CIFAR_MEAN,
        std: Sequence[float] = CIFAR_STD,
    ) -> None:
        super().__init__()
        if num_features < 1:
            raise LitBumpError(f"{num_features} features: give a width of at least 1")
        if num_classes < 1:
            raise LitBumpError(f"num_classes={num_classes}: give at least 1")
        self.num_features = num_features
        self.num_classes = num_classes
        self.normalise = Normalise(mean, std)
        self.fc = nn.Linear(num_features, num_classes)

    @abstractmethod
    def feature_map(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image feature rows columns"]:
        """Return the last map before pooling.

        Args:
            images: *normalised* images (image, channel, height, width).

        """

    def forward_features(
        self, images: Float[Tensor, "image channel height width"]
    ) -> Float[Tensor, "image {self.num_features}"]:
        """Return Phi: the feature map averaged over positions.

        Args:
            images: raw [0, 1] pixels (image, channel, height, width).

        Returns:
            One pooled vector an image, (image, feature).

        """
        return self.feature_map(self.normalise(images)).mean(dim=(2, 3))

    def forward(self, images: Float[Tensor, "image channel height width"]) -> Float[Tensor, "image {self.num_classes}"]:
        """Return the logits, a linear map of Phi.

        Args:
            images: raw [0, 1] pixels (image, channel, height, width).

        Returns:
            One row of logits an image, (image, class).

        """
        logits: Tensor = self.fc(self.forward_features(images))
        return logits


def initialise(network: nn.Module) -> None:
    """Start convolutions Kaiming-normal by fan-out and all their and the linear layers' biases at zero.

    Draws from the global generator, as PyTorch's own initialisation does. Linear weights keep PyTorch's start.

    Args:
        network: changed in place.

    """
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        if isinstance(layer, (nn.Conv2d, nn.Linear)) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
