"""Features as one vector an image: of a network's own output, or of any of its layers.

Paper: A.2 names the feature of every encoder. Needs torch. Maps and tokens are averaged unless another way is asked
for; what it was is said, since it changes the numbers.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import SubmoduleEncoder

Pool = Literal["mean", "token", "flatten"]


class VectorFeatures(nn.Module):
    """Turn what an encoder returns into one vector an image.

    Args:
        features: images -> vectors, tokens ``(image, token, feature)`` or maps.
        pool: ``mean`` over tokens or places, the first ``token``, or ``flatten``.
        channels_last: whether maps are ``(image, height, width, feature)``.

    """

    def __init__(self, features: nn.Module, pool: str, *, channels_last: bool = False) -> None:
        super().__init__()
        self.features = features
        self.pool = pool
        self.channels_last = channels_last

    def forward(self, images: Tensor) -> Tensor:
        """Return vectors.

        Args:
            images: what the encoder takes.

        Returns:
            Axes (image, feature).

        """
        output: Tensor = self.features(images)
        if self.pool == "flatten" or output.ndim == 2:
            return output.flatten(1)
        if self.pool == "token":
            return output[:, 0]
        if output.ndim == 3:
            return output.mean(1)
        return output.mean((1, 2)) if self.channels_last else output.flatten(2).mean(2)


def vector_features(
    network: nn.Module, features: nn.Module, layer: str | None, pool: str | None, example: Tensor
) -> tuple[nn.Module, str]:
    """Return the features of a layer, or a network's own, as vectors.

    Args:
        network: in which the layer is found.
        features: the network's own features.
        layer: its dotted name; None for the network's own features.
        pool: how maps and tokens become vectors; the mean where None.
        example: an image, batched, as the network takes it.

    Returns:
        A module images -> vectors, and what was done, in words (empty where nothing was).

    Raises:
        LitBumpError: if there is no such layer (the nearest name is given), it returns no single tensor, or a way of
            pooling is asked for that it has no use for.

    """
    encoder = features if layer is None else SubmoduleEncoder(network, layer)
    what = "the encoder's output" if layer is None else f"the output of layer {layer!r}"
    with torch.no_grad():
        output: Any = encoder(example)
    if not isinstance(output, Tensor):
        inside = (
            ", ".join(map(str, output))
            if isinstance(output, dict)
            else f"{len(output)} entries"
            if isinstance(output, (tuple, list))
            else ""
        )
        kind = type(output).__name__ + (f" ({inside})" if inside else "")
        raise LitBumpError(f"{what} is a {kind}, not one tensor: choose a layer of it with @layer=NAME")
    if output.ndim < 2 or len(output) != len(example) or not output.is_floating_point():
        raise LitBumpError(f"{what} has shape {tuple(output.shape)} and {output.dtype}: features need a row an image")
    if output.ndim == 2:
        if pool is not None:
            raise LitBumpError(f"{what} is one vector an image already: leave pool={pool} out, or choose another layer")
        return encoder, ""
    chosen = pool or "mean"
    shape = "x".join(map(str, output.shape[1:]))
    if output.ndim == 3:
        words = {"mean": "mean over tokens", "token": "first token", "flatten": "flattened"}[chosen]
        return VectorFeatures(encoder, chosen), f"{words} of {shape}"
    if chosen == "token":
        raise LitBumpError(f"{what} is a map of {shape}, without tokens: give @pool=mean or @pool=flatten")
    # Swin and its kin keep the features last; a square map shows which way round it is.
    last = output.ndim == 4 and output.shape[1] == output.shape[2] != output.shape[3]
    words = {"mean": "mean over places", "flatten": "flattened"}[chosen]
    return VectorFeatures(encoder, chosen, channels_last=last), f"{words} of {shape}"
