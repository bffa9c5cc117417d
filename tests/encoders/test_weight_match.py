"""Laws of putting weights into a network: all of them under any prefix, or an error that names what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lit_bump.encoders.weight_match import load_matched
from lit_bump.errors import LitBumpError

State = dict[str, Tensor]


class Net(nn.Module):
    """A small network with a head."""

    def __init__(self, n_classes: int = 10, width: int = 4) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width))
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(20))
        self.fc = nn.Linear(width, n_classes)


def state(n_classes: int = 10, seed: int = 1) -> State:
    """Return seeded weights of the network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return dict(Net(n_classes).state_dict())


def under(prefix: str) -> Callable[[State], State]:
    """Return a function that puts a prefix before every name."""
    return lambda weights: {prefix + name: value for name, value in weights.items()}


@pytest.mark.parametrize("entry", [None, "model", "state_dict", "ema"])
@pytest.mark.parametrize(
    "prefix", ["", "module.", "model.", "_orig_mod.", "module._orig_mod.model.", "net.encoder.", "module.visual."]
)
def test_all_tensors_are_found_under_any_prefix(prefix: str, entry: str | None) -> None:
    weights, net = state(), Net()
    saved: dict[str, Any] = under(prefix)(weights)
    match = load_matched(net, {entry: saved, "epoch": 3} if entry else saved, source="file")
    assert match.n_matched == match.n_total
    assert (match.prefix, match.entry) == (prefix, entry or "")
    assert all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())


def test_the_copy_of_an_attacker_is_not_taken() -> None:
    weights, other, net = state(seed=1), state(seed=2), Net()
    saved = under("module.attacker.model.")(other) | under("module.model.")(weights)
    saved |= {"module.normalizer.new_mean": torch.zeros(3, 1, 1)}
    assert load_matched(net, {"model": saved}, source="file").prefix == "module.model."
    assert torch.equal(net.state_dict()["fc.weight"], weights["fc.weight"])


def test_another_head_is_allowed_and_said() -> None:
    net = Net(n_classes=10)
    before = net.fc.weight.clone()
    match = load_matched(net, state(n_classes=1000), source="file", head=("fc.",))
    assert match.n_matched == match.n_total == len(net.state_dict()) - 3  # the head's two, and BatchNorm's counter
    assert "head not loaded (fc.bias, fc.weight)" in str(match)
    assert torch.equal(net.fc.weight, before)


@pytest.mark.parametrize(
    "weights",
    [{f"other.{i}": torch.ones(2) for i in range(5)}, {k: v for k, v in state().items() if k.startswith("blocks.1")}],
    ids=["nothing", "some"],
)
def test_few_matches_are_refused_and_change_nothing(weights: State) -> None:
    net = Net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(
        LitBumpError, match=r"fits only \d+ of 48 tensors of this Net: missing \S+, \S+, \S+; unexpected"
    ):
        load_matched(net, weights, source="file")
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_other_shapes_are_not_taken_for_a_match() -> None:
    with torch.random.fork_rng(devices=[]):
        wide = Net(width=8).state_dict()
    with pytest.raises(LitBumpError, match=r"shape \(8,\), not \(4,\)"):
        load_matched(Net(), dict(wide), source="file", head=("fc.",))


def test_a_file_without_counters_of_batch_norm_is_whole() -> None:
    weights = {name: value for name, value in state().items() if "num_batches_tracked" not in name}
    match = load_matched(Net(), weights, source="file")
    assert match.n_matched == match.n_total


def test_half_precision_weights_are_converted() -> None:
    net = Net()
    load_matched(net, {name: value.half() for name, value in state().items()}, source="file")
    assert net.fc.weight.dtype == torch.float32


def test_a_file_without_tensors_is_refused() -> None:
    with pytest.raises(LitBumpError, match="holds no tensors by name"):
        load_matched(Net(), {"epoch": 3}, source="file")


def test_nearly_all_is_said_to_be_nearly_all() -> None:
    weights = state()
    del weights["blocks.3.bias"]
    match = load_matched(Net(), weights, source="file")
    assert match.missing == ("blocks.3.bias",)
    assert "not found: blocks.3.bias" in str(match)
