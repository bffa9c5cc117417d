"""The encoder as measured: exact derivatives, named failures, wrapped and compiled modules like bare ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import timm
import torch
import torch._dynamo
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from lit_bump.errors import LitBumpError
from lit_bump.measure import Reason, measure_profile
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.numerics import exact_numerics
from tests.measure.tiny_encoders import NETS, Tiny, few, process_state, random_images, seeded, state_digest
from tests.reference import jacobian

CPU = torch.device("cpu")


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", list(NETS))
def test_the_derivative_is_the_jacobian_times_the_direction(name: str, channels_last: bool) -> None:
    net = seeded(NETS[name]).eval()
    image = random_images(1)
    u = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        with exact_numerics(CPU, dtype):
            frozen = FrozenEncoder(net, dtype, CPU, channels_last=channels_last)
            product = frozen.derivative(image.to(dtype).expand(4, -1, -1, -1), u.to(dtype))
        matrix = jacobian(seeded(NETS[name]).eval().double(), image[0])
        expected = u.double().flatten(1) @ matrix.T
        torch.testing.assert_close(product.double(), expected, rtol=tolerance, atol=tolerance)


def test_the_derivative_sees_through_no_grad() -> None:
    net = seeded(NETS["gelu"])

    def stem_without_grad(images: Tensor) -> Tensor:
        with torch.no_grad():
            features: Tensor = net(images)
        return features

    np.testing.assert_allclose(
        measure_profile(stem_without_grad, random_images(), few()).ratio,
        measure_profile(net, random_images(), few()).ratio,
        rtol=1e-4,
    )


class _NoRule(torch.autograd.Function):
    @staticmethod
    def forward(images: Tensor) -> Tensor:
        return images.sign()

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        return grad


class _OldRule(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, images: Tensor) -> Tensor:
        return images.sign()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        return grad


class _Straight(nn.Module):
    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        signs: Tensor = self.function.apply(images)
        return signs


@pytest.mark.parametrize("function", [_NoRule, _OldRule])
def test_a_part_without_a_forward_derivative_is_named(function: type[torch.autograd.Function]) -> None:
    net = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.ReLU(), _Straight(function)), nn.Flatten()))
    before = state_digest(net)
    with pytest.raises(
        LitBumpError, match=r"^1\.1 \(_Straight\) has no forward-mode derivative \(.*give its"
    ) as caught:
        measure_profile(net, random_images(), few())
    assert "\n" not in str(caught.value)
    assert state_digest(net) == before


class _Checkpointed(Tiny):
    def forward(self, images: Tensor) -> Tensor:
        maps = checkpoint(
            self.stage, self.pool(self.stem((images - self.get_buffer("mean")) / 0.25)), use_reentrant=False
        )
        features: Tensor = maps.mean(dim=(2, 3))
        return features


class _Reentrant(Tiny):
    def forward(self, images: Tensor) -> Tensor:
        maps = checkpoint(self.stage, self.pool(self.stem(images)), use_reentrant=True)
        features: Tensor = maps.mean(dim=(2, 3))
        return features


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")  # torch's own, on any evaluation
def test_reentrant_checkpointing_is_said_in_one_line() -> None:
    net = seeded(_Reentrant)
    before = state_digest(net)
    with pytest.raises(LitBumpError, match="no forward-mode derivative") as caught:
        measure_profile(net, random_images(), few())
    assert "\n" not in str(caught.value)
    assert state_digest(net) == before


def test_checkpointing_changes_nothing() -> None:
    plain = measure_profile(seeded(Tiny), random_images(), few())
    np.testing.assert_allclose(
        measure_profile(seeded(_Checkpointed), random_images(), few()).ratio, plain.ratio, rtol=1e-6
    )


@pytest.fixture
def _process_group() -> Iterator[None]:
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_process_group")
def test_a_distributed_wrapper_is_measured_like_its_module_and_still_trains() -> None:
    net = seeded(lambda: Tiny().train())
    plain = measure_profile(net, random_images(), few())
    wrapped = nn.parallel.DistributedDataParallel(net)
    profile = measure_profile(wrapped, random_images(), few())
    np.testing.assert_allclose(profile.ratio, plain.ratio, rtol=1e-6)
    assert profile.encoder_digest == plain.encoder_digest
    wrapped(random_images()).sum().backward()
    assert net.get_parameter("stem.0.weight").grad is not None


@pytest.mark.usefixtures("_process_group")
def test_a_sharded_module_is_refused_with_the_cure() -> None:
    net = seeded(Tiny)
    with torch.random.fork_rng(devices=[]):
        fully_shard(net, mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(LitBumpError, match=r"parameters are sharded \(FSDP\); gather a full copy"):
        measure_profile(net, random_images(), few())


def _graphs() -> int:
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["torch.compile", "module.compile", "part"])
def test_a_compiled_module_is_measured_like_the_plain_one_without_new_graphs(way: str) -> None:
    net = seeded(Tiny).eval()
    plain = measure_profile(net, random_images(), few(), chunk=7)
    compiled: nn.Module = net
    if way == "torch.compile":
        compiled = torch.compile(net, backend="aot_eager")  # type: ignore[assignment]
    elif way == "module.compile":
        net.compile(backend="aot_eager")
    else:
        net.get_submodule("stage").compile(backend="aot_eager")
    compiled(random_images(4))
    before, state = _graphs(), state_digest(net)
    profile = measure_profile(compiled, random_images(), few(), chunk=7)
    assert _graphs() == before
    assert state_digest(net) == state
    np.testing.assert_allclose(profile.ratio, plain.ratio, rtol=1e-5)
    assert profile.encoder_digest == plain.encoder_digest
    compiled(random_images(4))
    assert _graphs() == before  # the user's graph is still the compiled one


def test_low_precision_weights_are_measured_in_float32() -> None:
    net = seeded(Tiny).bfloat16()
    upcast = seeded(Tiny).bfloat16().float()
    profile = measure_profile(net, random_images(), few())
    np.testing.assert_allclose(profile.ratio, measure_profile(upcast, random_images(), few()).ratio, rtol=1e-6)
    assert next(net.parameters()).dtype == torch.bfloat16


def test_channels_last_and_contiguous_agree() -> None:
    net = seeded(Tiny)
    plain = measure_profile(net, random_images(), few())
    last = torch.channels_last
    turned = measure_profile(net.to(memory_format=last), random_images().to(memory_format=last), few())
    np.testing.assert_allclose(turned.ratio, plain.ratio, atol=1e-4)


class _Viewing(Tiny):
    """Needs contiguous feature maps."""

    def forward(self, images: Tensor) -> Tensor:
        maps = self.stage(self.stem(images))
        features: Tensor = maps.view(len(maps), -1)
        return features


def test_an_encoder_that_needs_contiguous_maps_is_measured() -> None:
    profile = measure_profile(seeded(_Viewing), random_images(), few())
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=0.05)
    assert (profile.reason == Reason.KEPT).all()


@pytest.mark.parametrize("mode", [True, False])
def test_spectral_norm_in_any_mode_is_frozen(mode: bool) -> None:
    net = seeded(Tiny)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        parametrizations.spectral_norm(net.get_submodule("stage.0"))
    evaluated = measure_profile(net.eval(), random_images(), few())
    profile = measure_profile(net.train(mode), random_images(), few())
    assert (profile.ratio == evaluated.ratio).all()


ODD: dict[str, Callable[[], nn.Module]] = {}


def _odd(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    ODD[build.__name__] = build
    return build


@_odd
def one_feature() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 1), nn.Tanh())


@_odd
def four_dimensional_output() -> nn.Module:
    return nn.Conv2d(3, 2, 3)


@_odd
def alias_of_the_input() -> nn.Module:
    return nn.Identity()


@_odd
def transposed_output() -> nn.Module:
    class Transposed(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images.sin().transpose(1, 3)

    return Transposed()


@_odd
def complex_buffer() -> nn.Module:
    class Fourier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("phase", torch.exp(1j * torch.linspace(0, 1, 8)))

        def forward(self, images: Tensor) -> Tensor:
            power: Tensor = (torch.fft.fft(images) * self.phase).abs().square()
            return power

    return Fourier()


@_odd
def integer_parameter() -> nn.Module:
    class Gather(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.index = nn.Parameter(torch.arange(0, 192, 7), requires_grad=False)

        def forward(self, images: Tensor) -> Tensor:
            features: Tensor = images.flatten(1)[:, self.index].sin()
            return features

    return Gather()


@_odd
def derived_weight() -> nn.Module:
    """Return a net whose weight is no parameter but computed from one, with its graph."""

    class Derived(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.raw = nn.Parameter(torch.randn(5, 192))
            self.weight = 2 * self.raw

        def forward(self, images: Tensor) -> Tensor:
            return torch.tanh(images.flatten(1) @ self.weight.to(images).T)

    return Derived()


@_odd
def old_norms() -> nn.Module:
    """Return a net whose weights are recomputed by hooks at every forward."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(
            nn.utils.weight_norm(nn.Conv2d(3, 4, 3)), nn.utils.spectral_norm(nn.Conv2d(4, 4, 3)), nn.Flatten()
        )


@_odd
def shared_part() -> nn.Module:
    part = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Tanh())
    return nn.Sequential(part, part, nn.Sequential(part), nn.Flatten())


@_odd
def output_buffer() -> nn.Module:
    """Returns the same tensor every time, overwritten."""

    class Reusing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.room: dict[torch.Size, Tensor] = {}

        def forward(self, images: Tensor) -> Tensor:
            features = images.sin().flatten(1)
            if torch._C._functorch.peek_interpreter_stack() is not None or features.dtype != torch.float32:
                return features
            return self.room.setdefault(features.shape, torch.empty_like(features)).copy_(features)

    return Reusing()


@pytest.mark.parametrize("name", list(ODD))
def test_odd_encoders_are_measured_and_left_alone(name: str) -> None:
    net = seeded(ODD[name]).train()
    before = state_digest(net)
    profile = measure_profile(net, random_images(), few())
    assert state_digest(net) == before
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=1e-2)
    assert (profile.reason == Reason.KEPT).all()
    double = measure_profile(net, random_images(), few(precision="float64"))
    np.testing.assert_allclose(profile.ratio, double.ratio, rtol=5e-3)


@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore:.*torch.jit.*")
def test_a_scripted_module_is_measured_and_says_how() -> None:
    net = seeded(NETS["gelu"])
    plain = measure_profile(net, random_images(), few())
    scripted = torch.jit.script(net)
    profile = measure_profile(scripted, random_images(), few())
    np.testing.assert_allclose(profile.ratio, plain.ratio, rtol=1e-3)
    assert "scripted module" in profile.noise_method


@pytest.mark.filterwarnings("ignore")
def test_a_vision_transformer_needs_no_help_and_keeps_its_kernels() -> None:
    net = seeded(lambda: timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=0, depth=2))
    images = random_images(1, (3, 64, 64))
    before = process_state()
    profile = measure_profile(net, images, few((3, 64, 64), n_pairs=2, n_noise=1, etas=[0.05, 0.5]))
    assert process_state() == before
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=0.02)
    u = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0)).double()
    with exact_numerics(CPU, torch.float64):
        frozen = FrozenEncoder(net.eval(), torch.float64, CPU, channels_last=False)
        x, h = images.double(), 1e-5
        central = (frozen(x + h * u) - frozen(x - h * u)) / (2 * h)
        torch.testing.assert_close(frozen.derivative(x, u), central, rtol=1e-4, atol=1e-6)


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(12, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, images: Tensor) -> Tensor:
        tokens = nn.functional.pixel_unshuffle(images, 2).flatten(2).transpose(1, 2)
        encoded: Tensor = self.encoder(tokens)
        return encoded.mean(dim=1)


def test_torchs_own_transformer_and_its_fast_path() -> None:
    net = seeded(_Transformer)
    before = process_state()
    profile = measure_profile(net, random_images(), few())
    assert process_state() == before
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=1e-2)
    double = measure_profile(net, random_images(), few(precision="float64"))
    np.testing.assert_allclose(profile.ratio, double.ratio, rtol=5e-3)
