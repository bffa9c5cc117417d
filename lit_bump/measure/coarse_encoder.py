"""The encoder in low precision, for rungs whose response is far above its rounding.

Paper: A.2 (the noise rule, here applied to a coarser arithmetic). Needs torch alone. Coarse evaluations never stand
alone: the pilot pairs are evaluated in both precisions, and their mean difference is put back.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure.frozen_encoder import FrozenEncoder, OutOfMemoryError
from lit_bump.measure.protocol import Protocol

COARSE = torch.bfloat16


def coarse_encoder(
    module: nn.Module,
    images: Float[Tensor, "image channel height width"],
    protocol: Protocol,
    *,
    channels_last: bool,
) -> FrozenEncoder | None:
    """Return the encoder in bfloat16, or None where the protocol, the device or the encoder does not take it.

    Args:
        module: the encoder, in evaluation mode.
        images: images on its device; the first is tried.
        protocol: with its ``precision``.
        channels_last: memory format of the encoder in full precision.

    Returns:
        The coarse encoder.

    Raises:
        OutOfMemoryError: if two images do not fit.

    """
    if protocol.precision != "auto" or not has_fast_bfloat16(images.device):
        return None
    coarse = FrozenEncoder(module, COARSE, images.device, channels_last=channels_last)
    if coarse.is_scripted:
        return None
    try:
        features = coarse(images[:2].to(COARSE))
    except OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError, LitBumpError):
        return None
    return coarse if bool(features.isfinite().all()) else None


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies bfloat16 in hardware.

    Args:
        device: a CPU or a GPU.

    Returns:
        False where it cannot be known.

    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)[0] >= 8
    if device.type == "cpu":
        known = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
        return any(bool(is_supported()) for is_supported in known if callable(is_supported))
    return False
