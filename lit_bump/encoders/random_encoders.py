"""Encoders as they start, as controls: the same network, with the weights of a seed.

Paper: A.2 "Encoders" (randomly initialised ResNet-50, ConvNeXt-Tiny and ViT-S/16).
"""

from __future__ import annotations

from dataclasses import replace

from lit_bump.encoders.demo_encoder import load_random_demo
from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork
from lit_bump.encoders.timm_encoders import load_random_timm
from lit_bump.encoders.torchvision_encoders import load_random_torchvision
from lit_bump.errors import LitBumpError, nearest


def load_random(spec: EncoderSpec) -> LoadedNetwork:
    """Build an encoder with the weights of a seed; global random streams stay as they were.

    Args:
        spec: ``random:torchvision:NAME``, ``random:timm:NAME`` or ``random:demo``, with ``seed``.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if there is no such library or network.

    """
    library, _, name = spec.name.partition(":")
    if library == "demo" and not name:
        loaded = load_random_demo(spec)
    elif library == "torchvision" and name:
        loaded = load_random_torchvision(name, spec)
    elif library == "timm" and name:
        loaded = load_random_timm(name, spec)
    else:
        known = ("torchvision:NAME", "timm:NAME", "demo")
        raise LitBumpError(f"no random encoder {spec.name!r}{nearest(spec.name, known)}")
    return replace(loaded, label=f"{loaded.label} (random)")
