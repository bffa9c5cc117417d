"""From a spec to an encoder: load the network, choose the layer, fold the normalisation in.

Paper: A.2 "Encoders" and "Protocol". Needs torch; each kind of encoder loads its own library on first use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module

import torch
from torch import nn

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.feature_layer import vector_features
from lit_bump.encoders.frozen_image_encoder import Encoder
from lit_bump.encoders.loaded_network import LoadedNetwork
from lit_bump.errors import LitBumpError
from lit_bump.measure import NormalisedEncoder

_LOADERS = {
    "torchvision": "torchvision_encoders.load_torchvision",
    "timm": "timm_encoders.load_timm",
    "hf-hub": "timm_encoders.load_timm",
    "random": "random_encoders.load_random",
    "robust": "published_checkpoints.load_robust",
    "imagenet-sd": "published_checkpoints.load_imagenet_sd",
    "synclr": "published_checkpoints.load_synclr",
    "ckpt": "training_checkpoint.load_training_checkpoint",
    "import": "imported_encoder.load_imported",
    "demo": "demo_encoder.load_demo",
}


def load_encoder(spec: str, *, device: str | torch.device | None = None) -> Encoder:
    """Load a frozen encoder by its spec: Phi with its normalisation inside, for images in [0, 1] pixels.

    Args:
        spec: as ``python -m lit_bump encoders`` lists, with at most one layer.
        device: where to put it; the CPU where None.

    Returns:
        The encoder in evaluation mode. Global random streams are as they were.

    Raises:
        LitBumpError: if the spec is wrong, weights are missing or do not fit, or the layer gives no vector.

    Example:
        >>> encoder = load_encoder("random:timm:test_vit@size=32")
        >>> encoder(torch.rand(2, *encoder.input_size)).shape == (2, encoder.n_features)
        True

    """
    encoders = load_encoders(spec, device=device)
    if len(encoders) > 1:
        raise LitBumpError(f"encoder {spec} names {len(encoders)} layers: give one, or call load_encoders")
    return encoders[0]


def load_encoders(spec: str, *, device: str | torch.device | None = None) -> list[Encoder]:
    """Load a frozen encoder once, with each of the layers that its spec names.

    Args:
        spec: as for ``load_encoder``; several layers stand as ``@layer=blocks.2+blocks.6``.
        device: as for ``load_encoder``.

    Returns:
        An encoder a layer; they share the network's tensors.

    Raises:
        LitBumpError: as ``load_encoder``.

    """
    parsed = EncoderSpec.parse(spec)
    file, _, function = _LOADERS[parsed.kind].partition(".")
    load: Callable[[EncoderSpec], LoadedNetwork] = getattr(import_module(f"lit_bump.encoders.{file}"), function)
    with torch.random.fork_rng(devices=[]):  # networks are built with random weights before the real ones are put in
        loaded = load(parsed)
    target = torch.device(device or "cpu")
    if target.type == "cuda" and not torch.cuda.is_available():
        raise LitBumpError(f"device is {str(target)!r}, but no CUDA device is there: leave it out for the CPU")
    loaded.network.to(target)
    return [_encoder(parsed, loaded, layer, target) for layer in parsed.layers or (None,)]


def _encoder(spec: EncoderSpec, loaded: LoadedNetwork, layer: str | None, device: torch.device) -> Encoder:
    channels = len(loaded.mean) if loaded.mean else 3
    example = torch.full((2, channels, *loaded.preprocessing.crop), 0.5, device=device)
    try:
        phi, how = vector_features(loaded.network.eval(), loaded.features, layer, spec.options.get("pool"), example)
        folded: nn.Module = phi
        if loaded.mean is not None and loaded.std is not None:
            folded = NormalisedEncoder(phi, loaded.mean, loaded.std).to(device)
        with torch.no_grad():
            n_features = folded(example).shape[1]
    except LitBumpError:
        raise
    except Exception as error:  # a network of another input size raises many kinds
        size = "x".join(map(str, example.shape[1:]))
        reason = " ".join(str(error).split())[:160]
        raise LitBumpError(f"encoder {spec} does not take images of {size} ({reason}): give @size=PIXELS") from error
    feature = loaded.feature if layer is None else f"layer {layer}"
    used = spec if layer is None else spec.with_layer(layer)
    for note in loaded.notes:
        if "; not found: " in note:
            warnings.warn(f"{spec}: {note}", stacklevel=2)
    return Encoder(
        folded,
        spec=str(used),
        label=loaded.label + (f" {layer}" if layer else ""),
        kind=spec.kind,
        feature=f"{feature}, {how}" if how else feature,
        n_features=int(n_features),
        preprocessing=loaded.preprocessing,
        mean=loaded.mean,
        std=loaded.std,
        source=loaded.source,
        notes=loaded.notes,
        more=loaded.facts,
    )
