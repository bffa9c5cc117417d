"""A measurement leaves everything as it was: also when the encoder raises, at whichever call."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from lit_bump.measure import measure_profile, no_trace
from tests.measure.tiny_encoders import Tiny, few, random_images, seeded, state_digest

PROTOCOL = few(n_pairs=2, n_noise=1)


def _mixed(net: nn.Module) -> nn.Module:
    """Return a net in training mode but for one part, with a frozen parameter and gradients."""
    net.train()
    net.get_submodule("stage").eval()
    net.get_parameter("stem.0.weight").requires_grad_(False)
    net.get_parameter("stage.0.weight").grad = torch.ones_like(net.get_parameter("stage.0.weight"))
    return net


class Caching(Tiny):
    """Sets, replaces, deletes and fills attributes of every kind while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: Tensor | None = None
        self.old: Tensor | None = torch.zeros(2)
        self.seen: list[Tensor] = [torch.ones(1)]
        self.calls = 0
        self.nested: dict[str, Any] = {"deep": [{"deeper": [1]}], "kept": (["inside a tuple"],)}
        self.counts = Counter({"forward": 3})
        self.by_name: defaultdict[str, list[int]] = defaultdict(list, {"a": [1]})
        self.recent: deque[int] = deque([1, 2], maxlen=2)
        self.shapes: set[tuple[int, ...]] = {(1, 2)}
        self.scratch = torch.zeros(3)
        self.bank = [torch.zeros(2)]
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("late", None)

    def forward(self, images: Tensor) -> Tensor:
        """Return features, and leave traces."""
        features = super().forward(images)
        self.cache = features
        self.fresh = features
        self.old = None
        if hasattr(self, "gone"):
            del self.gone
        self.seen.append(features)
        self.calls += 1
        self.nested["deep"][0]["deeper"].append(features)
        self.nested["kept"][0].append(1)
        self.nested["new"] = features
        self.counts["forward"] += 1
        self.by_name["b"].append(1)
        self.recent.append(self.calls)
        self.shapes.add(tuple(features.shape))
        with torch.no_grad(), contextlib.suppress(RuntimeError):  # refused under the derivative, done elsewhere
            self.scratch += 1
            self.bank[0].fill_(7)
            self.get_buffer("steps").add_(1)
            self.head.weight.clamp_(-1e-3, 1e-3)
            self.head.bias.data.zero_()
        self.late = torch.ones(1)
        self.extra = nn.Linear(1, 1)
        self.stage.training = True
        return features


def _spectral() -> nn.Module:
    net = Tiny()
    parametrizations.spectral_norm(net.get_submodule("stage.0"))
    parametrizations.weight_norm(net.get_submodule("stem.0"))
    return net


def _tied() -> nn.Module:
    net = Tiny(features=False)
    net.register_module("again", net.get_submodule("stage"))
    net.register_parameter("alias", net.get_parameter("head.weight"))
    return net


def _caching() -> nn.Module:
    net = Caching()
    net.__dict__["gone"] = "here"
    return net


def _hooked() -> nn.Module:
    net = Tiny()
    net.register_forward_hook(lambda module, args, output: None)
    net.get_submodule("stem").register_forward_pre_hook(lambda module, args: None)
    net.get_submodule("stem").register_full_backward_hook(lambda module, grads, outs: None)
    return net


BUILDS: dict[str, Callable[[], nn.Module]] = {
    "train": lambda: Tiny().train(),
    "mixed": lambda: _mixed(Tiny()),
    "caching": _caching,
    "spectral and weight norm": lambda: _spectral().train(),
    "channels last": lambda: Tiny().train().to(memory_format=torch.channels_last),
    "bfloat16": lambda: Tiny().train().bfloat16(),
    "float64": lambda: Tiny().train().double(),
    "tied": _tied,
    "hooked": _hooked,
}


@pytest.mark.parametrize("kind", list(BUILDS))
def test_a_measurement_leaves_no_trace(kind: str) -> None:
    net = seeded(BUILDS[kind])
    images = random_images(1)
    pixels = images.clone()
    before = state_digest(net)
    first = measure_profile(net, images, PROTOCOL)
    assert state_digest(net) == before
    second = measure_profile(net, images, PROTOCOL)
    assert (first.ratio == second.ratio).all()
    assert first.encoder_digest == second.encoder_digest
    assert torch.equal(images, pixels)


@pytest.mark.parametrize("kind", ["train", "mixed", "caching", "spectral and weight norm", "tied", "bfloat16"])
def test_training_goes_on_as_if_nothing_had_been_measured(kind: str) -> None:
    def trained(measured: bool) -> dict[str, Tensor]:
        net = seeded(BUILDS[kind]).train()
        optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for step in range(2):
                if measured:
                    measure_profile(net, random_images(1), PROTOCOL)
                loss = net(random_images(4, seed=step).to(next(net.parameters()).dtype)).square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return net.state_dict()

    plain, measured = trained(False), trained(True)
    assert plain.keys() == measured.keys()
    for name, tensor in plain.items():
        assert torch.equal(tensor, measured[name]), name


class Failing(Caching):
    """Raises at its k-th call."""

    def __init__(self, k: int, error: BaseException) -> None:
        super().__init__()
        self.left = [k]
        self.error = error

    def forward(self, images: Tensor) -> Tensor:
        """Return features until the calls are used up."""
        features = super().forward(images)
        self.left.append(0)
        if len(self.left) > self.left[0]:
            raise self.error
        return features


def _n_calls() -> int:
    class Counting(nn.Module):
        total = 0

        def forward(self, images: Tensor) -> Tensor:
            Counting.total += 1
            return images.flatten(1)

    measure_profile(Counting(), random_images(1), PROTOCOL, chunk=8)
    return Counting.total


@pytest.mark.parametrize("error", [RuntimeError("broken"), ValueError("broken"), KeyboardInterrupt("broken")])
def test_an_encoder_that_raises_at_any_call_is_left_as_it_was(error: BaseException) -> None:
    assert _n_calls() > 10
    for k in range(1, _n_calls() + 1):
        net = seeded(lambda k=k: Failing(k, error)).train()  # type: ignore[misc]
        before = state_digest(net)
        with contextlib.suppress(type(error), ValueError):
            measure_profile(net, random_images(1), PROTOCOL, chunk=8)
        assert state_digest(net) == before, k


def test_an_interrupt_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt, match="now"):
        measure_profile(seeded(lambda: Failing(3, KeyboardInterrupt("now"))), random_images(1), PROTOCOL)


@contextlib.contextmanager
def _float64_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


CALLERS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "inference mode": torch.inference_mode,
    "no grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "float64 default": _float64_default,
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("caller", list(CALLERS))
def test_the_callers_mode_does_not_matter_and_stays(caller: str) -> None:
    net = seeded(lambda: Tiny().train())
    plain = measure_profile(net, random_images(), PROTOCOL)
    with CALLERS[caller]():
        before = state_digest(net)
        images = random_images().float() if caller == "float64 default" else random_images()
        profile = measure_profile(net, images, PROTOCOL)
        assert state_digest(net) == before
    if caller != "float64 default":  # which draws other images
        np.testing.assert_allclose(profile.ratio, plain.ratio, rtol=1e-6)
    net(random_images()).sum().backward()  # still trains


def test_images_made_in_inference_mode_are_measured_like_any_others() -> None:
    net = seeded(Tiny)
    with torch.inference_mode():
        images = random_images()
    plain = measure_profile(net, random_images(), PROTOCOL)
    outside = measure_profile(net, images, PROTOCOL)
    with torch.inference_mode():
        inside = measure_profile(net, images, PROTOCOL)
    assert (plain.ratio == outside.ratio).all()
    assert (plain.ratio == inside.ratio).all()


def test_an_encoder_that_writes_into_its_input_changes_no_image() -> None:
    def in_place(images: Tensor) -> Tensor:
        return images.sub_(0.5).div_(0.25).flatten(1)

    for chunk in (1, 2, None):
        images = random_images()
        pixels = images.clone()
        profile = measure_profile(in_place, images, PROTOCOL, chunk=chunk)
        assert torch.equal(images, pixels)
        np.testing.assert_allclose(profile.ratio, 1.0, rtol=1e-3)
    first = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten())
    np.testing.assert_allclose(
        measure_profile(first, random_images() * 0.5 + 0.4, PROTOCOL).ratio[:, 0], 1.0, rtol=1e-3
    )


def test_modules_out_of_sight_are_left_alone_too() -> None:
    class Hiding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen = nn.Flatten()
            self.teacher = [Tiny().train()]
            self.table = {"a": Tiny().train()}

        def forward(self, images: Tensor) -> Tensor:
            features: Tensor = self.teacher[0](images) + self.table["a"](images)
            return features

    net = seeded(Hiding)
    assert isinstance(net, Hiding)
    hidden = (net.teacher[0], net.table["a"])
    before = [state_digest(part) for part in (net, *hidden)]
    profile = measure_profile(net, random_images(), PROTOCOL)
    assert [state_digest(part) for part in (net, *hidden)] == before
    np.testing.assert_allclose(profile.ratio[:, 0], 1.0, rtol=0.05)


@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore:.*torch.jit.*")
def test_a_scripted_module_keeps_its_mode() -> None:
    scripted = torch.jit.script(seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout())))
    scripted.train()
    getattr(scripted, "1").eval()
    modes = [part.training for part in scripted.modules()]
    weights = {name: tensor.clone() for name, tensor in scripted.state_dict().items()}
    with no_trace(scripted):
        assert not any(part.training for part in scripted.modules())
        scripted(random_images())
    assert [part.training for part in scripted.modules()] == modes
    for name, tensor in scripted.state_dict().items():
        assert torch.equal(tensor, weights[name]), name


def test_train_and_eval_are_never_called() -> None:
    class Guarded(Tiny):
        def train(self, mode: bool = True) -> Guarded:
            raise AssertionError("train was called")

    measure_profile(seeded(Guarded), random_images(1), PROTOCOL)


def test_the_global_random_streams_are_put_back() -> None:
    def drawn() -> list[float]:
        return [float(np.random.random()), float(torch.rand(()))]  # noqa: NPY002

    with no_trace(nn.Flatten()):
        inside = drawn()
    assert drawn() == inside


def test_a_module_registered_twice_keeps_its_own_weights() -> None:
    shared = nn.Linear(192, 4)
    net = nn.Sequential(nn.Flatten(), shared)
    net.register_module("again", nn.Identity())
    net.register_module("same", shared)
    net.forward = lambda images: shared(images.flatten(1))  # type: ignore[method-assign]
    weights = [id(parameter) for parameter in net.parameters()]
    measure_profile(net, random_images(1), PROTOCOL)
    assert [id(parameter) for parameter in net.parameters()] == weights
    assert isinstance(shared.weight, nn.Parameter)
