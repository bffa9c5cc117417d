"""Laws that hold for every network: shapes, dtypes, memory formats, exact derivatives, the start of the weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.networks import NETWORKS, ImageNetwork, build_network

FEATURES = {"resnet18": 8, "vgg16": 8, "wrn28x10": 4}  # channels of the last map over the width
pytestmark = pytest.mark.parametrize("name", sorted(NETWORKS))


def narrow(name: str, width: int = 4, **arguments: object) -> ImageNetwork:
    """Return a small network in evaluation mode whose BatchNorms have seen data."""
    torch.manual_seed(0)
    network = build_network(name, width=width, **arguments)
    with torch.no_grad():
        network(torch.rand(16, 3, 32, 32))
    return network.eval()


def images(n: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(n, 3, 32, 32, generator=torch.Generator().manual_seed(1), dtype=dtype)


def test_shapes_follow_from_width_and_classes(name: str) -> None:
    network = narrow(name, width=3, num_classes=7)
    assert network.num_features == 3 * FEATURES[name]
    assert network.forward_features(images(2)).shape == (2, network.num_features)
    assert network(images(2)).shape == (2, 7)


def test_logits_are_the_head_of_the_features(name: str) -> None:
    network = narrow(name)
    assert torch.equal(network(images(2)), network.fc(network.forward_features(images(2))))


def test_features_are_the_mean_of_the_map_of_normalised_images(name: str) -> None:
    network = narrow(name)
    feature_map = network.feature_map(network.normalise(images(2)))
    assert torch.allclose(network.forward_features(images(2)), feature_map.flatten(2).mean(2), atol=1e-6)


def test_normalisation_is_inside(name: str) -> None:
    network = narrow(name)
    twin = narrow(name, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    twin.load_state_dict({k: v for k, v in network.state_dict().items() if "normalise" not in k}, strict=False)
    assert torch.allclose(network(images(2)), twin(network.normalise(images(2))), atol=1e-5)


def test_channels_last_equals_contiguous(name: str) -> None:
    network = narrow(name)
    contiguous = network(images(3))
    network = network.to(memory_format=torch.channels_last)
    assert torch.allclose(network(images(3).contiguous(memory_format=torch.channels_last)), contiguous, atol=1e-5)


def test_float64_refines_float32(name: str) -> None:
    network = narrow(name)
    single = network(images(2))
    double = network.double()(images(2, torch.float64))
    assert double.dtype == torch.float64
    assert torch.allclose(network.float()(images(2, torch.float64).float()), double.float(), atol=1e-4)
    assert single.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by torch.func itself, at its first use
def test_forward_derivative_equals_central_difference(name: str) -> None:
    network = narrow(name).double()
    points, direction = images(2, torch.float64), torch.randn(2, 3, 32, 32, dtype=torch.float64)
    direction /= direction.norm()
    with torch.no_grad():
        derivative = torch.func.jvp(network.forward_features, (points,), (direction,))[1]
        eta = 1e-7
        above, below = (network.forward_features(points + sign * eta * direction) for sign in (1, -1))
    difference = (above - below) / (2 * eta)
    assert derivative.norm() > 0
    assert (derivative - difference).norm() < 1e-6 * difference.norm()


def test_single_image_does_not_depend_on_its_company(name: str) -> None:
    network = narrow(name)
    assert torch.allclose(network(images(4))[:1], network(images(4)[:1]), atol=1e-5)


def test_convolutions_start_by_fan_out_and_biases_at_zero(name: str) -> None:
    torch.manual_seed(0)
    network = build_network(name, width=16)
    convolutions = [
        layer for layer in network.modules() if isinstance(layer, nn.Conv2d) and layer.weight.numel() > 4000
    ]
    assert len(convolutions) > 5
    for layer in convolutions:
        expected = math.sqrt(2 / (layer.out_channels * layer.kernel_size[0] ** 2))
        assert layer.weight.std().item() == pytest.approx(expected, rel=0.06)
    biases = [parameter for key, parameter in network.named_parameters() if key.endswith("bias") and "bn" not in key]
    assert biases
    assert not any(bias.any() for bias in biases)


def test_same_seed_gives_the_same_weights(name: str) -> None:
    first, second = narrow(name).state_dict(), narrow(name).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_activations_are_not_changed_in_place(name: str) -> None:
    network = narrow(name)
    seen: list[tuple[Tensor, Tensor]] = []
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(lambda _module, _inputs, output: seen.append((output, output.clone())))
    network(images(1))
    assert seen
    assert all(torch.equal(now, then) for now, then in seen)


def test_other_numbers_of_channels(name: str) -> None:
    grey = build_network(name, width=2, mean=(0.5,), std=(0.25,)).eval()
    assert grey(torch.rand(1, 1, 32, 32)).shape == (1, 10)
    with pytest.raises(LitBumpError, match=r"images have shape \(1, 3, 32, 32\): this network takes \(image, 1,"):
        grey(torch.rand(1, 3, 32, 32))


def test_counts_below_one_are_refused(name: str) -> None:
    with pytest.raises(LitBumpError, match="0 features: give a width of at least 1"):
        build_network(name, width=0)
    with pytest.raises(LitBumpError, match="num_classes=0: give at least 1"):
        build_network(name, width=1, num_classes=0)
