"""A frozen encoder: Phi with its normalisation inside, and everything that a record must say of it.

Paper: section 2 (Phi), A.2 "Encoders". Needs torch. The images that it takes are in [0, 1] pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lit_bump.encoders.preprocessing import Preprocessing


class Encoder(nn.Module):
    """Map images in [0, 1] pixels to features; ``load_encoder`` makes one.

    Args:
        phi: images in [0, 1] pixels -> ``(image, feature)``.
        spec: how it was named.
        label: short name for legends.
        kind: where it comes from, as ``torchvision``.
        feature: what the features are, in words.
        n_features: how many there are.
        preprocessing: resize and crop for images of any size.
        mean: of the normalisation inside; None where it is the network's own.
        std: likewise.
        source: of the weights, in words.
        notes: choices that a reader should know.
        more: further plain values for the record.

    Attributes:
        weights_digest: SHA-256 over names, types, shapes and bytes of all tensors.
        input_size: channels, height and width of the images.

    """

    def __init__(
        self,
        phi: nn.Module,
        *,
        spec: str,
        label: str,
        kind: str,
        feature: str,
        n_features: int,
        preprocessing: Preprocessing,
        mean: tuple[float, ...] | None,
        std: tuple[float, ...] | None,
        source: str,
        notes: tuple[str, ...] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.phi = phi
        self.spec, self.label, self.kind = spec, label, kind
        self.feature, self.n_features = feature, n_features
        self.preprocessing = preprocessing
        self.mean, self.std = mean, std
        self.source, self.notes = source, notes
        self.more = dict(more or {})
        self.input_size = (len(mean) if mean else 3, *preprocessing.crop)
        self.weights_digest = _digest(phi)
        self.eval().requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features.

        Args:
            images: in [0, 1] pixels, axes (image, channel, height, width).

        Returns:
            Axes (image, feature).

        """
        features: Tensor = self.phi(images)
        return features

    def facts(self) -> dict[str, Any]:
        """Return what a record of a measurement must say, as plain values for JSON."""
        return {
            "spec": self.spec,
            "label": self.label,
            "kind": self.kind,
            "feature": self.feature,
            "n_features": self.n_features,
            "input_size": list(self.input_size),
            "preprocessing": self.preprocessing.to_dict(),
            "mean": list(self.mean) if self.mean else None,
            "std": list(self.std) if self.std else None,
            "source": self.source,
            "weights_digest": self.weights_digest,
            "notes": list(self.notes),
            **self.more,
        }

    def extra_repr(self) -> str:
        """Show spec, features and source in the printed module.

        Returns:
            One line.

        """
        return f"{self.spec}: {self.n_features} features ({self.feature}), {self.source}"


def _digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
