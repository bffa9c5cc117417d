"""Encoders of torchvision, with its weights or as they start, without their classifier.

Paper: A.2 "Encoders" (ResNet-50, ConvNeXt-Tiny). Needs torchvision. The weights' own transforms say how images are
resized, cropped and normalised; random networks take those of the default weights.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from torch import nn
from torchvision import models

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork, seeded_weights
from lit_bump.encoders.preprocessing import Preprocessing
from lit_bump.encoders.weight_file import read_weights
from lit_bump.encoders.weight_match import load_matched
from lit_bump.errors import LitBumpError, nearest


def load_torchvision(spec: EncoderSpec) -> LoadedNetwork:
    """Load a network of torchvision with weights.

    Args:
        spec: ``torchvision:NAME:WEIGHTS``; the default weights where none are named.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if the name or the weights are unknown, or they cannot be fetched; where to put a file is said.

    """
    name, _, wanted = spec.name.partition(":")
    weights = _weights(name, wanted)
    if spec.size is not None and name.startswith("vit_"):
        raise LitBumpError(f"the weights of {name} are for {_crop(weights)} px: leave size={spec.size} out")
    if "file" in spec.options:
        network = build(name)
        heads = _heads(network)
        file = spec.options["file"]
        match = load_matched(network, read_weights(file), source=file, head=heads, least=1.0)
        notes = (f"{file}: {match}",)
    else:
        network = _pretrained(name, weights)
        notes = (f"weights {weights.name}", *(() if wanted else ("torchvision's default weights",)))
    return without_classifier(network, name, weights, spec, source=f"torchvision {name} {weights.name}", notes=notes)


def load_random_torchvision(name: str, spec: EncoderSpec) -> LoadedNetwork:
    """Build a network of torchvision with the weights that a seed starts it with.

    Args:
        name: of the network.
        spec: for seed and size.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if the name is unknown.

    """
    seed = int(spec.options.get("seed", 0))
    options = {"image_size": spec.size} if spec.size is not None and name.startswith("vit_") else {}
    with seeded_weights(seed):
        network = build(name, **options)
    source = f"torchvision {name}, random weights of seed {seed}"
    return without_classifier(network, name, _weights(name, ""), spec, source=source, notes=("random weights",))


def build(name: str, **options: Any) -> nn.Module:
    """Build a network of torchvision with random weights.

    Args:
        name: of the network.
        options: of its constructor.

    Returns:
        The network in evaluation mode.

    Raises:
        LitBumpError: if torchvision cannot build it so.

    """
    _known(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # how Inception and GoogLeNet start
        try:
            network: nn.Module = models.get_model(name, weights=None, **options)
        except (TypeError, ValueError, AssertionError) as error:
            raise LitBumpError(f"torchvision cannot build {name} with {options}: {error}") from error
    return network.eval()


def without_classifier(
    network: nn.Module, name: str, weights: Any, spec: EncoderSpec, *, source: str, notes: tuple[str, ...]
) -> LoadedNetwork:
    """Take the classifier off a network of torchvision.

    Args:
        network: the whole; it is changed.
        name: of the architecture.
        weights: whose transforms are the preprocessing.
        spec: for size and feature.
        source: of the weights, in words.
        notes: what a reader should know.

    Returns:
        The network whose output are the features.

    Raises:
        LitBumpError: if ``feature`` is asked for where there is no choice.

    """
    network.eval()
    feature = "input of the last linear layer"
    if name.startswith("convnext"):
        feature, notes = _convnext(network, spec.options.get("feature", "avgpool"), notes)
    elif "feature" in spec.options:
        raise LitBumpError(f"{name} has one kind of feature: leave feature={spec.options['feature']} out")
    elif name.startswith("squeezenet"):
        setattr(network, "classifier", nn.Sequential(nn.AdaptiveAvgPool2d(1)))  # noqa: B010
        feature = "average pool of the last features"
    else:
        _replace_last_linear(network)
        if name.startswith(("resnet", "wide_resnet", "resnext", "regnet", "efficientnet", "densenet", "shufflenet")):
            feature = "average pool"
        elif name.startswith("vit_"):
            feature = "class token after the final norm"
    transforms = weights.transforms()
    crop, resize = int(transforms.crop_size[0]), int(transforms.resize_size[0])
    if spec.size is not None:
        crop, resize = spec.size, round(spec.size * resize / crop)
    interpolation: Any = "bicubic" if transforms.interpolation.value == "bicubic" else "bilinear"
    return LoadedNetwork(
        network, network, feature, Preprocessing(resize, (crop, crop), interpolation), tuple(transforms.mean),
        tuple(transforms.std), source, name, notes,
    )  # fmt: skip


def _convnext(network: nn.Module, feature: str, notes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Choose between the two features of a ConvNeXt: the paper does not say which of them it means.

    Returns:
        The features in words, and the notes with the choice.

    """
    norm, flatten, _ = network.classifier  # type: ignore[misc]  # LayerNorm2d, Flatten, Linear
    avgpool = feature == "avgpool"
    setattr(network, "classifier", flatten if avgpool else nn.Sequential(norm, flatten))  # noqa: B010
    other = "feature=pre_logits takes them after it" if avgpool else "feature=avgpool takes them before it"
    words = "average pool, before the last LayerNorm" if avgpool else "after the last LayerNorm"
    return words, (*notes, f"features {words}; {other}")


def _replace_last_linear(network: nn.Module) -> None:
    name = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)][-1]
    parent, _, child = name.rpartition(".")
    setattr(network.get_submodule(parent), child, nn.Identity())


def _heads(network: nn.Module) -> tuple[str, ...]:
    linear = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    return (f"{linear[-1]}.",) if linear else ("classifier.",)


def _known(name: str) -> None:
    names = models.list_models(module=models)
    if name not in names:
        raise LitBumpError(f"torchvision has no classifier {name!r}{nearest(name, names)}")


def _weights(name: str, wanted: str) -> Any:
    _known(name)
    kinds = models.get_model_weights(name)
    if not wanted or wanted == "DEFAULT":
        return kinds.DEFAULT
    names = [kind.name for kind in kinds]
    if wanted not in names:
        raise LitBumpError(f"torchvision has no weights {wanted!r} for {name}{nearest(wanted, names)}")
    return kinds[wanted]


def _crop(weights: Any) -> int:
    return int(weights.transforms().crop_size[0])


def _pretrained(name: str, weights: Any) -> nn.Module:
    def where() -> str:
        import torch

        file = weights.url.rsplit("/", 1)[-1]
        return f"fetch {weights.url} on another machine and put it into {torch.hub.get_dir()}/checkpoints/{file}"

    with fetching(f"the weights {weights.name} of torchvision's {name}", where):
        network: nn.Module = models.get_model(name, weights=weights)
    return network.eval()


@contextlib.contextmanager
def fetching(what: str, cure: Callable[[], str]) -> Any:
    """Turn the errors of a download into one line.

    Args:
        what: is fetched.
        cure: says what to do instead.

    Yields:
        Nothing.

    Raises:
        LitBumpError: if the block cannot reach the network or the file is broken.

    """
    try:
        yield
    except LitBumpError:
        raise
    except Exception as error:  # the libraries in between raise many kinds
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise LitBumpError(f"{what} cannot be loaded ({reason}); {cure()}") from error
