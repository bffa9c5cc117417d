"""Encoders and images small enough for laws to be checked in milliseconds, and the digest of everything they hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from lit_bump.measure import Protocol

SDP_KERNELS = ("flash", "mem_efficient", "math", "cudnn")


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """Return a module built under a seed, leaving the global random stream as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def random_images(n: int = 2, size: tuple[int, int, int] = (3, 8, 8), seed: int = 0) -> Tensor:
    """Return float32 images in [0, 1)."""
    return torch.rand(n, *size, generator=torch.Generator().manual_seed(seed))


def few(size: tuple[int, int, int] = (3, 8, 8), n_pairs: int = 6, **values: object) -> Protocol:
    """Return a matched protocol with five rungs."""
    scale = float(np.sqrt(np.prod(size) / 192))
    settings: dict[str, object] = {
        "etas": [scale * eta for eta in (0.01, 0.1, 0.5, 1.0, 4.0)],
        "n_pairs": n_pairs,
        "n_jvp": n_pairs,
        "estimator": "matched",
        "n_noise": 2,
    }
    return Protocol.from_dict({**settings, **values})


class Tiny(nn.Module):
    """The rig of the tests: normalisation, two convolutions with BatchNorm, pooling, dropout and a head."""

    def __init__(self, features: bool = True) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((1, 3, 1, 1), 0.5))
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.pool = nn.MaxPool2d(2)
        self.stage = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(6, 3)
        self.features = features
        with torch.no_grad():
            for name, buffer in self.named_buffers():
                if name.endswith("running_mean"):
                    buffer.uniform_(-0.1, 0.1)
                elif name.endswith("running_var"):
                    buffer.uniform_(0.5, 2.0)

    def forward_features(self, images: Tensor) -> Tensor:
        """Return six features an image."""
        maps = self.stage(self.pool(self.stem((images - self.get_buffer("mean")) / 0.25)))
        features: Tensor = self.dropout(maps).mean(dim=(2, 3))
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Return features, or logits."""
        features = self.forward_features(images)
        return features if self.features else self.head(features)


class PatchAttention(nn.Module):
    """One attention block over 2x2 patches, through the fused kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 2, stride=2)
        self.qkv = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)

    def forward(self, images: Tensor) -> Tensor:
        """Return the mean token."""
        tokens = self.embed(images).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(tokens)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(4 * q, 4 * k, v).transpose(1, 2).flatten(2)
        features: Tensor = (tokens + attended).mean(dim=1)
        return features


def gelu_net() -> nn.Module:
    """Return a smooth convolutional net."""
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Conv2d(4, 4, 3, stride=2), nn.GELU(), nn.Flatten())


def relu_net() -> nn.Module:
    """Return a net that is affine up to the border of its activation region; 4x4 images."""
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 12), nn.ReLU(), nn.Linear(12, 5))


NETS: dict[str, Callable[[], nn.Module]] = {
    "batchnorm_maxpool": Tiny,
    "gelu": gelu_net,
    "attention": PatchAttention,
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 5)),
}


def _bytes(tensor: Tensor | None) -> str:
    if tensor is None:
        return "none"
    flat = tensor.detach().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {hashlib.sha256(data).hexdigest()}"


def _described(value: object) -> object:
    if isinstance(value, Tensor):
        return (id(value), type(value).__name__, _bytes(value))
    if isinstance(value, dict):
        return (id(value), [(key, _described(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (id(value), [_described(item) for item in value])
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    return id(value)


def state_digest(module: nn.Module) -> dict[str, object]:
    """Return everything that a measurement has to leave alone: the module's state and the process's."""
    state: dict[str, object] = {}
    for name, part in module.named_modules():
        state[f"{name}: training"] = part.training
        for key, value in vars(part).items():
            state[f"{name}: {key}"] = _described(value)
    for name, parameter in module.named_parameters():
        state[f"{name} (parameter)"] = (parameter.requires_grad, _bytes(parameter), _bytes(parameter.grad))
    for name, tensor in module.state_dict().items():
        state[f"{name} (state_dict)"] = _bytes(tensor)
    state.update(process_state())
    return state


def process_state() -> dict[str, object]:
    """Return random streams, modes and switches of the process; not Python's stream: shape checks draw from it."""
    return {
        "numpy stream": [part if isinstance(part, (int, str, float)) else list(part) for part in np.random.get_state()],  # noqa: NPY002
        "torch stream": torch.get_rng_state().tolist(),
        "default dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "mha": torch.backends.mha.get_fastpath_enabled(),
        "sdp": [getattr(torch.backends.cuda, f"{kind}_sdp_enabled")() for kind in SDP_KERNELS],
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
    }
