"""Encoders of timm, pretrained, from the Hugging Face hub, or as they start, without their classifier.

Paper: A.2 "Encoders" (ViT-S/16 augreg). Needs timm. The model's own data configuration says how images are resized,
cropped and normalised. Features are what goes into the classifier.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from torch import nn

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork, seeded_weights
from lit_bump.encoders.preprocessing import Preprocessing
from lit_bump.encoders.torchvision_encoders import fetching
from lit_bump.encoders.weight_file import read_weights
from lit_bump.encoders.weight_match import load_matched
from lit_bump.errors import LitBumpError, nearest

_RESAMPLED = ("pos_embed", "set_input_size")  # of models whose position embedding has a size


def load_timm(spec: EncoderSpec) -> LoadedNetwork:
    """Load a pretrained model of timm, or from the Hugging Face hub.

    Args:
        spec: ``timm:NAME``, or ``hf-hub:OWNER/NAME``.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if timm has no such model or weights, or they cannot be fetched.

    """
    name = spec.name if spec.kind == "timm" else f"hf-hub:{spec.name}"
    file = spec.options.get("file")
    if spec.kind == "timm":
        _known(spec.name, pretrained=file is None)

    def cure() -> str:
        if spec.kind == "timm":
            return f"fetch its file on another machine and give timm:{spec.name}@file=FILE"
        return "run it once where there is a network, and copy its cache (HF_HOME)"

    with fetching(f"the weights of {name}", cure):
        network = _create(name, spec.size, pretrained=file is None)
    notes = [f"pretrained {name}"]
    if file is not None:
        resized = spec.size is not None and None not in (getattr(network, part, None) for part in _RESAMPLED)
        if resized:  # the file's are for the model's own size
            network = _create(name, None, pretrained=False)
        head = tuple(f"{part}." for part in _classifiers(network))
        match = load_matched(network, read_weights(file), source=file, head=head, least=1.0)
        notes = [f"{file}: {match}"]
        if resized:
            notes.append(resample_positions(network, spec))
    return without_classifier(network, spec, source=f"timm {name}", label=name.rsplit("/", 1)[-1], notes=tuple(notes))


def resample_positions(network: nn.Module, spec: EncoderSpec) -> str:
    """Change the input size of a model of timm whose weights are there; its position embedding is resampled.

    Args:
        network: the model.
        spec: for the size.

    Returns:
        What was done, for the notes.

    Raises:
        LitBumpError: if the model cannot take that size.

    """
    change: Any = network.set_input_size
    try:
        change(img_size=spec.size)
    except (AssertionError, ValueError, RuntimeError) as error:
        raise LitBumpError(f"{spec}: size={spec.size} does not suit its patches: {error}") from error
    return f"position embedding resampled for {spec.size} px"


def load_random_timm(name: str, spec: EncoderSpec) -> LoadedNetwork:
    """Build a model of timm with the weights that a seed starts it with.

    Args:
        name: of the model.
        spec: for seed and size.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if timm has no such model.

    """
    seed = int(spec.options.get("seed", 0))
    _known(name, pretrained=False)
    with seeded_weights(seed):
        network = _create(name, spec.size, pretrained=False)
    source = f"timm {name}, random weights of seed {seed}"
    return without_classifier(network, spec, source=source, label=name, notes=("random weights",))


def without_classifier(
    network: nn.Module, spec: EncoderSpec, *, source: str, label: str, notes: tuple[str, ...]
) -> LoadedNetwork:
    """Take the classifier off a model of timm.

    Args:
        network: the whole; it is changed.
        spec: for the size.
        source: of the weights, in words.
        label: for legends.
        notes: what a reader should know.

    Returns:
        The network whose output are the features.

    Raises:
        LitBumpError: if the model has no classifier to take off.

    """
    from timm.data import config as data_config

    resolve: Any = data_config.resolve_model_data_config
    config: dict[str, Any] = resolve(network)
    reset: Any = getattr(network, "reset_classifier", None)
    if reset is None:
        raise LitBumpError(f"{label} has no classifier to take off: choose a layer of it with @layer=NAME")
    reset(0)
    side = spec.size or int(config["input_size"][-1])
    resize = math.floor(side / float(config["crop_pct"])) if config.get("crop_mode", "center") != "squash" else side
    interpolation: Any = "bicubic" if config["interpolation"] == "bicubic" else "bilinear"
    is_token = getattr(network, "global_pool", "") == "token"
    feature = "class token after the final norm" if is_token else "input of the classifier"
    return LoadedNetwork(
        network.eval(), network, feature, Preprocessing(resize, (side, side), interpolation),
        tuple(map(float, config["mean"])), tuple(map(float, config["std"])), source, label, notes,
    )  # fmt: skip


def _create(name: str, size: int | None, *, pretrained: bool) -> nn.Module:
    import timm

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="timm")  # renamed models
        if size is not None:
            try:
                return timm.create_model(name, pretrained=pretrained, img_size=size).eval()
            except TypeError as error:  # a network that takes any size, and no such argument
                if "img_size" not in str(error):
                    raise
        network: nn.Module = timm.create_model(name, pretrained=pretrained)
    return network.eval()


def _classifiers(network: nn.Module) -> list[str]:
    named = getattr(network, "pretrained_cfg", {}).get("classifier") or "head"
    return [named] if isinstance(named, str) else list(named)


def _known(name: str, *, pretrained: bool) -> None:
    import timm

    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise LitBumpError(f"timm has no model {architecture!r}{nearest(architecture, timm.list_models())}")
    if pretrained:
        known = timm.list_pretrained(f"{architecture}*")
        tags = [one.partition(".")[2] for one in known if one.partition(".")[0] == architecture]
        if not tags:
            raise LitBumpError(f"timm has no weights for {architecture!r}: measure random:timm:{architecture}")
        if tag and tag not in tags:
            raise LitBumpError(f"timm has no weights {tag!r} for {architecture}{nearest(tag, tags)}")
