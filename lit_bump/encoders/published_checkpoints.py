"""Encoders of the paper that are published as files: adversarially trained, ImageNet-SD and SynCLR.

Paper: A.2 "Encoders" (Salman et al. 2020; Sariyildiz et al. 2023; Tian et al. 2023). Needs torchvision and timm. The
files hold training states under many prefixes; the weights are found and proved loaded. An attacker that clamps its
input is left out: the paper does not project perturbed images, and a clamp has no derivative where a pixel is 0 or 1.
"""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork
from lit_bump.encoders.preprocessing import Preprocessing
from lit_bump.encoders.timm_encoders import resample_positions
from lit_bump.encoders.torchvision_encoders import build
from lit_bump.encoders.weight_file import read_weights
from lit_bump.encoders.weight_match import Match, load_matched
from lit_bump.errors import LitBumpError, nearest

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
_ROBUST = re.compile(
    r"(?P<architecture>resnet18|resnet50|wide_resnet50_2|wide_resnet50_4)_(?P<norm>l2|linf)_eps(?P<eps>[\d.]+)"
)
_EXAMPLES = (
    "resnet50_l2_eps3",
    "resnet50_l2_eps0",
    "resnet18_l2_eps3",
    "wide_resnet50_2_l2_eps3",
    "resnet50_linf_eps4.0",
)
_RESNET_PREPROCESSING = Preprocessing(256, (224, 224))  # the published evaluation: 256, 224, bilinear


def load_robust(spec: EncoderSpec) -> LoadedNetwork:
    """Load an adversarially trained ImageNet network of Salman et al. (2020).

    Args:
        spec: ``robust:NAME:FILE``; the name, such as ``resnet50_l2_eps3``, gives architecture and budget.

    Returns:
        The network without its classifier; ``facts`` holds norm and eps.

    Raises:
        LitBumpError: if the name is none of the family's, or the file does not fit.

    """
    name, file = _name_and_file(spec)
    match = _ROBUST.fullmatch(name)
    if match is None:
        raise LitBumpError(f"no robust encoder {name!r}{nearest(name, _EXAMPLES)}")
    wide4 = match["architecture"] == "wide_resnet50_4"
    network = build("wide_resnet50_2", width_per_group=256) if wide4 else build(match["architecture"])
    fitted, n_features = _load(network, file)
    eps = float(match["eps"])
    notes = (
        f"{file}: {fitted}",
        "the published attacker clamps its input to [0, 1]; the clamp is not applied, since perturbed images are not "
        "projected and its derivative is 0 where a pixel is 0 or 1",
    )
    return _resnet(
        network, spec, f"Salman et al. (2020) {name}, {n_features} features", name, notes,
        {"norm": match["norm"], "eps": eps, "architecture": match["architecture"]},
    )  # fmt: skip


def load_imagenet_sd(spec: EncoderSpec) -> LoadedNetwork:
    """Load the ResNet-50 that was trained on Stable Diffusion renders (Sariyildiz et al. 2023).

    Args:
        spec: ``imagenet-sd:FILE``: a flat state dict, or one under ``model`` or ``state_dict``.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if the file does not fit.

    """
    network = build("resnet50")
    fitted, _ = _load(network, spec.name)
    return _resnet(network, spec, "ImageNet-SD ResNet-50", "imagenet-sd", (f"{spec.name}: {fitted}",), {})


def load_synclr(spec: EncoderSpec) -> LoadedNetwork:
    """Load the ViT-B/16 of SynCLR (Tian et al. 2023).

    Args:
        spec: ``synclr:FILE``; ``statistics`` chooses the normalisation.

    Returns:
        The network; its feature is the class token after the final norm.

    Raises:
        LitBumpError: if the file does not fit.

    """
    import timm

    side = spec.size or 224
    network: nn.Module = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=0)
    fitted = load_matched(network.eval(), read_weights(spec.name), source=spec.name, least=1.0)
    resampled = (resample_positions(network, spec),) if side != 224 else ()
    clip = spec.options.get("statistics", "clip") == "clip"
    chosen = (
        "normalised with CLIP's statistics, as in the published evaluation; statistics=imagenet: as in its training"
        if clip
        else "normalised with ImageNet's statistics, as in its training; statistics=clip for the published evaluation"
    )
    return LoadedNetwork(
        network, network, "class token after the final norm",
        Preprocessing(round(side * 256 / 224), (side, side), "bicubic"), CLIP_MEAN if clip else IMAGENET_MEAN,
        CLIP_STD if clip else IMAGENET_STD, "SynCLR ViT-B/16", "synclr", (f"{spec.name}: {fitted}", chosen, *resampled),
        {"statistics": "clip" if clip else "imagenet"},
    )  # fmt: skip


def _name_and_file(spec: EncoderSpec) -> tuple[str, str]:
    name, _, file = spec.name.partition(":")
    if not file:
        raise LitBumpError(f"encoder {spec} needs a file: write robust:resnet50_l2_eps3:FILE")
    return name, file


def _load(network: nn.Module, file: str) -> tuple[Match, int]:
    fitted = load_matched(network, read_weights(file), source=file, head=("fc.",), least=1.0)
    last: Any = network.fc
    return fitted, int(last.in_features)


def _resnet(
    network: nn.Module, spec: EncoderSpec, source: str, label: str, notes: tuple[str, ...], facts: dict[str, Any]
) -> LoadedNetwork:
    setattr(network, "fc", nn.Identity())  # noqa: B010
    side = spec.size
    preprocessing = _RESNET_PREPROCESSING if side is None else Preprocessing(round(side * 256 / 224), (side, side))
    return LoadedNetwork(
        network, network, "average pool", preprocessing, IMAGENET_MEAN, IMAGENET_STD, source, label, notes, facts
    )
