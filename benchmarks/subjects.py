"""The networks and images that are measured: some trained here on drawn shapes, the others with random weights.

Needs the package, torchvision and timm. Training is a plain loop, once; the state is kept in a cache folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.shared import Setting
from lit_bump.images import draw_shapes
from lit_bump.measure import MethodEncoder, no_trace
from lit_bump.measure.directions import directions
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.numerics import exact_numerics
from lit_bump.networks import ResNet18, WideResNet28x10

N_TRAIN, N_TEST, BATCH, LR = 8000, 1000, 64, 0.05


@dataclass(frozen=True)
class Subject:
    """Hold an encoder to measure.

    Args:
        name: for tables.
        encoder: in evaluation mode.
        size: channels, height and width of its images.
        weights: where they come from.

    """

    name: str
    encoder: nn.Module
    size: tuple[int, int, int]
    weights: str = "random"

    def images(self, n: int) -> Tensor:
        """Return the first ``n`` drawn test shapes, enlarged where the size asks for it."""
        images = draw_shapes(n, seed=1, split="test")[0].float() / 255
        if self.size[1:] != images.shape[2:]:
            images = functional.interpolate(images, self.size[1:], mode="bilinear", antialias=True).clamp(0, 1)
        device = next((tensor.device for tensor in self.encoder.parameters()), images.device)
        return images.to(device)

    def half(self, n_pairs: int) -> Tensor:
        """Return the directions that the package draws for the first image, for the obvious code."""
        image = self.images(1)
        return directions(0, n_pairs, image.numel(), seed=0, image=0).view(-1, *self.size).to(image.device)


def _resnet18(width: int) -> nn.Module:
    return MethodEncoder(ResNet18(width=width), "forward_features")


def _torchvision(name: str) -> nn.Module:
    import torchvision  # here, and timm below: they take seconds to load

    network: nn.Module = getattr(torchvision.models, name)(weights=None)
    network.fc = nn.Identity()
    return network


def _vit_tiny() -> nn.Module:
    import timm

    network: nn.Module = timm.create_model("vit_tiny_patch16_224", img_size=64, patch_size=8, num_classes=0)
    return network


RANDOM: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "ResNet-18 width 4": (lambda: _resnet18(4), 32),
    "ResNet-18 width 16": (lambda: _resnet18(16), 32),
    "ResNet-18 width 64": (lambda: _resnet18(64), 32),
    "WRN-16-4": (lambda: MethodEncoder(WideResNet28x10(width=64, depth=16), "forward_features"), 32),
    "ViT-tiny 64 px": (_vit_tiny, 64),
    "torchvision ResNet-18 224 px": (lambda: _torchvision("resnet18"), 224),
    "torchvision ResNet-50 224 px": (lambda: _torchvision("resnet50"), 224),
}


def random_subject(name: str, setting: Setting) -> Subject:
    """Return a network with the weights that seed 0 starts it with."""
    build, side = RANDOM[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = build().eval().to(setting.device)
    return Subject(name, encoder, (3, side, side))


def trained_subject(width: int, n_steps: int, setting: Setting) -> Subject:
    """Return a ResNet-18 trained on drawn shapes: now, or as it was kept.

    Args:
        width: of the network.
        n_steps: optimiser steps of 64 images, warmed up over the first 30 %, then cosine.
        setting: device and cache.

    Returns:
        The subject; its accuracy on 1,000 test images stands in ``weights``.

    """
    path = Path(setting.cache) / f"resnet18_width{width}_steps{n_steps}.pt"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = ResNet18(width=width)
        if path.exists():
            kept = torch.load(path, map_location="cpu", weights_only=True)
            network.load_state_dict(kept["state"])
            accuracy = float(kept["accuracy"])
        else:
            accuracy = _train(network.to(setting.device), n_steps, setting)
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({"state": network.cpu().state_dict(), "accuracy": accuracy}, path)
    weights = f"{n_steps} steps on shapes, test accuracy {accuracy:.2f}"
    encoder = MethodEncoder(network.to(setting.device).eval(), "forward_features")
    return Subject(f"ResNet-18 width {width}", encoder, (3, 32, 32), weights)


def _train(network: nn.Module, n_steps: int, setting: Setting) -> float:
    images, labels = draw_shapes(setting.pick(100, N_TRAIN, N_TRAIN), seed=0, split="train")
    test, test_labels = draw_shapes(setting.pick(100, N_TEST, N_TEST), seed=0, split="test")
    network.train().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(network.parameters(), lr=LR, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LR, total_steps=n_steps, cycle_momentum=False)
    for _ in range(n_steps):
        chosen = torch.randint(len(images), (BATCH,))
        batch = (images[chosen].float() / 255).to(setting.device, memory_format=torch.channels_last)
        with torch.autocast(setting.device, dtype=torch.bfloat16):
            loss = functional.cross_entropy(network(batch).float(), labels[chosen].to(setting.device))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    network.eval()
    with torch.no_grad():
        guesses = [network(part.float().to(setting.device) / 255).argmax(1).cpu() for part in torch.split(test, 250)]
    return float((torch.cat(guesses) == test_labels).float().mean())


@contextmanager
def frozen(subject: Subject) -> Iterator[FrozenEncoder]:
    """Yield the encoder as the measurement runs it, in float32."""
    device = subject.images(1).device
    with no_trace(subject.encoder), exact_numerics(device, torch.float32):
        yield FrozenEncoder(subject.encoder, torch.float32, device, channels_last=True)
