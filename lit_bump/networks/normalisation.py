"""Per-channel normalisation as a layer, so that an encoder takes raw [0, 1] pixels.

Paper: section 2 measures eta in [0, 1] pixels, which holds only if the normalisation is part of Phi.
Imports torch alone. The layer does not clamp: a clamp would cut off one sign of antipodal pairs at saturated pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lit_bump.errors import LitBumpError

CIFAR_MEAN = (0.4914, 0.4822, 0.4465)  # over the 50,000 training images of CIFAR-10
CIFAR_STD = (0.2470, 0.2435, 0.2616)  # over all their pixels; (0.2023, 0.1994, 0.2010) is the common mistake


class Normalise(nn.Module):
    """Map raw pixels to ``(image - mean) / std``, channel by channel.

    Args:
        mean: one value a channel, in [0, 1] pixels.
        std: one positive value a channel, in [0, 1] pixels.

    Raises:
        LitBumpError: if the lengths differ, or a ``std`` is not positive.

    Example:
        >>> layer = Normalise((0.5,), (0.25,))
        >>> bool((layer(torch.full((1, 1, 2, 2), 0.75)) == 1).all())
        True

    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float] = CIFAR_MEAN, std: Sequence[float] = CIFAR_STD) -> None:
        super().__init__()
        if len(mean) != len(std):
            raise LitBumpError(f"mean has {len(mean)} channels and std {len(std)}: give one value of each a channel")
        if not all(value > 0 for value in std):
            raise LitBumpError(f"std={tuple(std)}: give positive standard deviations, in [0, 1] pixels")
        self.register_buffer("mean", torch.tensor(list(mean)).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(list(std)).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Float[Tensor, "image channel height width"]:
        """Return the normalised images.

        Args:
            images: raw [0, 1] pixels, floating point, (image, channel, height, width).

        Returns:
            As the input, in its dtype where that is at least as wide as the layer's.

        Raises:
            LitBumpError: if the images are integers, or have another number of axes or channels.

        """
        channels = len(self.mean)
        if images.ndim != 4 or images.shape[1] != channels:
            expected = f"(image, {channels}, height, width)"
            raise LitBumpError(f"images have shape {tuple(images.shape)}: this network takes {expected}")
        if not images.is_floating_point():
            raise LitBumpError(f"images are {images.dtype}: give floats in [0, 1], e.g. images.float() / 255")
        return (images - self.mean) / self.std

    def extra_repr(self) -> str:
        """Show the constants in the printed network.

        Returns:
            ``mean=..., std=...``, rounded to four digits.

        """
        mean, std = (tuple(round(value, 4) for value in tensor.flatten().tolist()) for tensor in (self.mean, self.std))
        return f"mean={mean}, std={std}"
