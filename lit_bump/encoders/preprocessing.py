"""How an encoder wants its images: resized and cropped, in [0, 1] pixels; the normalisation is not a part of it.

Paper: A.2 ("Perturbations are applied in raw [0, 1] pixel space before each model's input normalization"). Needs
torchvision. On floating-point pixels, so that nothing is rounded to 8 bits again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from jaxtyping import Float, Float32
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

Interpolation = Literal["bilinear", "bicubic"]


@dataclass(frozen=True)
class Preprocessing:
    """Resize the shorter side, then take the middle.

    Args:
        resize: shorter side in pixels.
        crop: height and width of what the encoder sees.
        interpolation: of the resize; with antialiasing.

    Example:
        >>> import torch
        >>> Preprocessing(8, (6, 6))(torch.rand(3, 20, 16)).shape
        torch.Size([3, 6, 6])

    """

    resize: int
    crop: tuple[int, int]
    interpolation: Interpolation = "bilinear"

    def __call__(self, image: Float[Tensor, "channel height width"]) -> Float32[Tensor, "channel cropped_h cropped_w"]:
        """Return an image as the encoder wants it.

        Args:
            image: pixels in [0, 1] of any size.

        Returns:
            Pixels in [0, 1]; the same ones where the image has the size already.

        """
        resized = functional.resize(image, [self.resize], InterpolationMode(self.interpolation), antialias=True)
        cropped: Tensor = functional.center_crop(resized, list(self.crop))
        return cropped.clamp(0, 1).float()  # bicubic overshoots

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """Return what ``to_dict`` described.

        Args:
            values: names and plain values.

        Returns:
            An equal preprocessing.

        """
        height, width = values["crop"]
        return cls(int(values["resize"]), (int(height), int(width)), values["interpolation"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for records."""
        return {**asdict(self), "crop": list(self.crop)}

    def __str__(self) -> str:
        """Return the steps in words."""
        height, width = self.crop
        return f"resize {self.resize} ({self.interpolation}), centre crop {height}x{width}"
