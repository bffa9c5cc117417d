"""Laws of naming encoders: a spec reads back as itself, and a wrong part is named with the nearest right one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_bump.encoders.encoder_spec import ENCODERS, EncoderSpec
from lit_bump.errors import LitBumpError

SPECS = [
    "demo",
    "torchvision:resnet50:IMAGENET1K_V2",
    "timm:vit_small_patch16_224.augreg_in1k@layer=blocks.2+blocks.6,pool=token",
    "robust:resnet50_l2_eps3:/data/resnet50_l2_eps3.ckpt",
    "hf-hub:timm/resnet18.a1_in1k",
    "random:torchvision:resnet50@seed=0",
    "ckpt:runs/quickstart/version_0@size=32",
    "synclr:file.pth@statistics=imagenet",
    "import:my.package.encoder",
]


@pytest.mark.parametrize("text", SPECS)
def test_a_spec_reads_back_as_itself(text: str) -> None:
    spec = EncoderSpec.parse(text)
    assert str(spec) == text
    assert EncoderSpec.parse(str(spec)) == spec


def test_options_at_the_end_are_options() -> None:
    spec = EncoderSpec.parse("random:timm:resnet18:seed=3")
    assert (spec.name, spec.options) == ("timm:resnet18", {"seed": "3"})
    spec = EncoderSpec.parse("ckpt:a/b.ckpt:module=my.Module@layer=net.0")
    assert (spec.name, spec.options) == ("a/b.ckpt", {"module": "my.Module", "layer": "net.0"})


@pytest.mark.parametrize(
    "path", ["/data/me@home/file.ckpt", "C:/data/file.ckpt", "/data/a=b/file.ckpt", "/with space/x"]
)
def test_a_path_may_hold_what_options_hold(path: str) -> None:
    spec = EncoderSpec.parse(f"ckpt:{path}@size=64")
    assert (spec.name, spec.size) == (path, 64)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("timmm:x", "did you mean 'timm'"),
        ("", "no kind of encoder ''"),
        ("timm", "write timm:NAME"),
        ("demo:x", "takes no 'x'"),
        ("timm:x@layr=1", "did you mean 'layer'"),
        ("timm:x@pool=max", "pool is 'max'"),
        ("timm:x@size=big", "size is 'big'; give a whole number"),
        ("timm:x@size=0", "size is 0"),
        ("timm:x@layer=a+", "give names"),
        ("timm:x@seed=1", "no option 'seed'"),
        ("synclr:x@statistics=clp", "did you mean 'clip'"),
    ],
)
def test_a_wrong_part_is_named(text: str, says: str) -> None:
    with pytest.raises(LitBumpError, match=says):
        EncoderSpec.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_spec_or_one_line(text: str) -> None:
    try:
        spec = EncoderSpec.parse(text)
    except LitBumpError:
        return
    assert spec.kind


def test_every_kind_is_listed() -> None:
    from lit_bump.encoders.load_encoder import _LOADERS

    listed = {pattern.split(":")[0] for pattern in ENCODERS if not pattern.startswith("...")}
    assert listed == set(_LOADERS)
