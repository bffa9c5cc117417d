"""Laws of loading encoders: the right features, normalised once, the streams of randomness untouched."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

from lit_bump.encoders import Preprocessing, load_encoder, load_encoders
from lit_bump.errors import LitBumpError
from lit_bump.measure import NormalisedEncoder

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def images(n: int = 2, side: int = 64) -> Tensor:
    """Make seeded images.

    Returns:
        Axes (image, channel, height, width).

    """
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(0))


def normalised(pixels: Tensor, mean: tuple[float, ...] = MEAN, std: tuple[float, ...] = STD) -> Tensor:
    """Normalise by hand.

    Returns:
        Images as a network takes them.

    """
    return (pixels - torch.tensor(mean).view(-1, 1, 1)) / torch.tensor(std).view(-1, 1, 1)


@pytest.mark.parametrize(
    ("spec", "n_features"),
    [
        ("torchvision:resnet18", 512),
        ("torchvision:convnext_tiny", 768),
        ("torchvision:vit_b_16", 768),  # the class token
        ("torchvision:mobilenet_v3_small", 1024),
        ("torchvision:squeezenet1_1", 512),
        ("timm:mobilenetv3_large_100", 1280),  # after the head's convolution, not the 960 before it
        ("timm:test_vit", 64),
        ("timm:test_resnet", 96),
        ("demo", 1280),
    ],
)
def test_features_are_what_goes_into_the_classifier(spec: str, n_features: int) -> None:
    encoder = load_encoder(f"random:{spec}@size=64")
    assert encoder.n_features == n_features
    assert encoder(images()).shape == (2, n_features)
    assert encoder.kind == "random"
    assert not encoder.training


def test_resnet_features_and_normalisation_are_those_of_torchvision() -> None:
    encoder = load_encoder("random:torchvision:resnet18:seed=3@size=64")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        net = torchvision.models.resnet18(weights=None).eval()
    net.fc = nn.Identity()
    torch.testing.assert_close(encoder(images()), net(normalised(images())), rtol=1e-5, atol=1e-5)
    assert (encoder.mean, encoder.std) == (MEAN, STD)


def test_timm_features_and_normalisation_are_those_of_its_configuration() -> None:
    encoder = load_encoder("random:timm:vit_tiny_patch16_224@size=32")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net: Any = timm.create_model("vit_tiny_patch16_224", img_size=32).eval()
    expected = net.forward_head(
        net.forward_features(normalised(images(side=32), (0.5,) * 3, (0.5,) * 3)), pre_logits=True
    )
    torch.testing.assert_close(encoder(images(side=32)), expected, rtol=1e-5, atol=1e-5)
    assert encoder.mean == (0.5, 0.5, 0.5)


def test_convnext_has_two_features_and_says_which() -> None:
    pooled = load_encoder("random:torchvision:convnext_tiny@size=32")
    after = load_encoder("random:torchvision:convnext_tiny@size=32,feature=pre_logits")
    assert pooled.n_features == after.n_features == 768
    assert "before the last LayerNorm" in pooled.feature
    assert "feature=pre_logits" in " ".join(pooled.notes)
    assert not torch.allclose(pooled(images(side=32)), after(images(side=32)))


def test_seeds_give_weights_and_leave_the_streams_alone() -> None:
    before = torch.get_rng_state()
    one, again, other = (load_encoder(f"random:timm:test_vit:seed={seed}@size=32") for seed in (1, 1, 2))
    load_encoder("demo@size=32")
    assert torch.equal(before, torch.get_rng_state())
    assert one.weights_digest == again.weights_digest != other.weights_digest


def test_several_layers_share_one_network() -> None:
    first, last = load_encoders("random:timm:test_vit@size=32,layer=blocks.0+blocks.3")
    assert (first.n_features, last.n_features) == (64, 64)
    assert first.spec.endswith("layer=blocks.0")
    assert {p.data_ptr() for p in first.parameters()} == {p.data_ptr() for p in last.parameters()}
    assert not torch.allclose(first(images(side=32)), last(images(side=32)))
    with pytest.raises(LitBumpError, match="names 2 layers"):
        load_encoder("random:timm:test_vit@layer=blocks.0+blocks.1")


@pytest.mark.parametrize(
    ("options", "n_features", "says"),
    [
        ("layer=blocks.1", 64, "mean over tokens of 5x64"),
        ("layer=blocks.1,pool=token", 64, "first token"),
        ("layer=blocks.1,pool=flatten", 320, "flattened"),
    ],
)
def test_tokens_become_one_vector(options: str, n_features: int, says: str) -> None:
    encoder = load_encoder(f"random:timm:test_vit@size=32,{options}")
    assert encoder.n_features == n_features
    assert says in encoder.feature


def test_maps_with_features_last_are_averaged_over_places() -> None:
    encoder = load_encoder("random:torchvision:swin_t@size=64,layer=features.1")
    assert encoder.n_features == 96
    assert "mean over places of 16x16x96" in encoder.feature


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("random:torchvision:resnet5", "did you mean 'resnet50'"),
        ("random:timm:vit_smll_patch16_224", "did you mean"),
        ("random:keras:x", "no random encoder"),
        ("torchvision:resnet50:IMAGENET1K_V3", "did you mean 'IMAGENET1K_V"),
        ("timm:vit_small_patch16_224.augreg", "did you mean 'augreg_in1k'"),
        ("random:timm:test_vit@layer=blcks.1", "did you mean 'blocks"),
        ("random:torchvision:resnet18@pool=token,layer=layer1", "without tokens"),
        ("random:torchvision:resnet18@feature=avgpool", "one kind of feature"),
        ("random:torchvision:resnet18@size=32,pool=token", "one vector an image already"),
        ("random:torchvision:vit_b_16@size=33", "cannot build|does not take"),
        ("robust:resnet50_l2_eps3", "needs a file"),
        ("robust:resnt50_l2_eps3:x", "did you mean 'resnet50_l2_eps"),
        ("synclr:nowhere.pth", "no file of weights 'nowhere.pth'"),
        ("ckpt:nowhere.ckpt", "nowhere"),
        ("import:nowhere.encoder", "cannot be called"),
    ],
)
def test_wrong_specs_end_in_one_line(spec: str, says: str) -> None:
    with pytest.raises(LitBumpError, match=says) as caught:
        load_encoders(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_that_is_not_there_is_said() -> None:
    with pytest.raises(LitBumpError, match="no CUDA device"):
        load_encoder("random:timm:test_vit@size=32", device="cuda")


class Maps(nn.Module):
    """Return something else than a tensor."""

    def __init__(self, kind: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, pixels: Tensor) -> Any:
        """Return it."""
        return self.kind(pixels)


class AttackerModel(nn.Module):
    """Clamps its input, as the published one does."""


def _net() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Maps(lambda x: {"features": x}), r"is a dict \(features\)"),
        (lambda: Maps(lambda x: (x, x)), r"is a tuple \(2 entries\)"),
        (lambda: Maps(lambda x: x.mean()), "a row an image"),
        (lambda: 3, "returned int"),
        (lambda: (_net(), {"men": 1}), "did you mean 'mean'"),
        (lambda: (_net(), {"mean": MEAN, "size": 8}), "one of mean and std"),
        (lambda: (NormalisedEncoder(_net(), MEAN, STD), {"mean": MEAN, "std": STD}), "normalises already, in Norm"),
        (lambda: AttackerModel(), "an AttackerModel, which clamps"),
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(7, 2)), "does not take images of 3x8x8"),
    ],
)
def test_what_a_function_returns_is_checked(monkeypatch: pytest.MonkeyPatch, made: Any, says: str) -> None:
    module = types.ModuleType("users_own")
    module.encoder = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "users_own", module)
    with pytest.raises(LitBumpError, match=says):
        load_encoder("import:users_own.encoder@size=8")


def test_normalisation_given_by_a_function_is_folded_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    net, module = _net(), types.ModuleType("users_own")
    module.given = lambda: (net, {"mean": MEAN, "std": STD, "size": 8})  # type: ignore[attr-defined]
    module.inside = lambda: NormalisedEncoder(net, MEAN, STD)  # type: ignore[attr-defined]
    module.none = lambda: net  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "users_own", module)
    given, inside, none = (load_encoder(f"import:users_own.{name}@size=8") for name in ("given", "inside", "none"))
    expected = net(normalised(images(side=8)))
    torch.testing.assert_close(given(images(side=8)), expected)
    torch.testing.assert_close(inside(images(side=8)), expected)
    assert "inside, in NormalisedEncoder" in inside.notes[0]
    assert "taken to be inside" in none.notes[0]


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_preprocessing_is_that_of_torchvision(interpolation: str) -> None:
    preprocessing = Preprocessing(40, (32, 32), interpolation)  # type: ignore[arg-type]
    picture = Image.fromarray((images(1, 64)[0].permute(1, 2, 0).numpy() * 255).astype("uint8")).resize((100, 70))
    pixels = torchvision.transforms.functional.to_tensor(picture)
    transforms = torchvision.transforms.v2
    usual = transforms.Compose(
        [
            transforms.Resize(40, torchvision.transforms.InterpolationMode(interpolation), antialias=True),
            transforms.CenterCrop(32),
        ]
    )
    expected = torchvision.transforms.functional.to_tensor(usual(picture))
    assert (preprocessing(pixels) - expected).abs().max() < 2.5 / 255  # the usual one rounds to bytes twice


def test_an_image_of_the_right_size_is_left_as_it_is() -> None:
    assert torch.equal(Preprocessing(32, (32, 32))(images(1, 32)[0]), images(1, 32)[0])


def test_facts_are_plain_values(tmp_path: Path) -> None:
    import json

    facts = load_encoder("random:timm:test_vit@size=32").facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["spec"] == "random:timm:test_vit@size=32"
