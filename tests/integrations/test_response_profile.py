"""The metric: the answer of one measurement however it is updated, copied, moved or synchronised."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing as torch_processes
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torchmetrics import MetricCollection

from lit_bump import LitBumpError, ResponseProfile
from lit_bump.measure import measure_profile
from tests.callbacks.tiny_run import SMALL


def encoder() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 6), nn.Tanh())


IMAGES = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(3))


@settings(deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(1, 5), max_size=3))
def test_any_division_into_updates_gives_the_answer_of_one_measurement(cuts: list[int]) -> None:
    net = encoder()
    metric = ResponseProfile(net, SMALL)
    edges = [0, *sorted(set(cuts)), 6]
    for start, stop in itertools.pairwise(edges):
        metric.update(IMAGES[start:stop])
    expected = measure_profile(net, IMAGES, SMALL)
    np.testing.assert_allclose(metric.profile().ratio, expected.ratio, rtol=1e-4)
    found = metric.compute()
    assert float(found["max_r"]) == pytest.approx(expected.bump().height, rel=1e-4)
    np.testing.assert_allclose(found["median"].numpy(), expected.median(), rtol=1e-4)
    assert found["n_kept"].tolist() == expected.n_kept().tolist()


def test_it_follows_the_weights_and_leaves_them_alone() -> None:
    net = encoder().train()
    before = copy.deepcopy(net.state_dict())
    metric = ResponseProfile(net, SMALL)
    metric.update(IMAGES)
    first = metric.compute()["median"]
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not list(metric.parameters())
    assert not metric.state_dict()
    with torch.no_grad():
        net[1].weight.mul_(3.0)  # type: ignore[index]
    metric.update(IMAGES)
    with pytest.raises(LitBumpError, match="weights have changed"):
        metric.compute()
    metric.reset()
    metric.update(IMAGES)
    assert not torch.equal(metric.compute()["median"], first)


def test_a_clone_shares_the_encoder_and_a_pickle_keeps_what_was_measured() -> None:
    net = encoder()
    metric = ResponseProfile(net, SMALL)
    metric.update(IMAGES[:3])
    other: Any = metric.clone()
    assert other._encoder.it is net
    again = pickle.loads(pickle.dumps(metric))
    for one in (other, again):
        assert torch.equal(one.compute()["median"], metric.compute()["median"])
    other.update(IMAGES[3:])
    assert int(other.n_images) == 6
    assert int(metric.n_images) == 3


def test_in_a_collection() -> None:
    collection = MetricCollection({"a": ResponseProfile(encoder(), SMALL), "b": ResponseProfile(nn.Flatten(), SMALL)})
    collection.update(IMAGES[:2])
    found = collection.compute()
    assert found["a_max_r"] != found["b_max_r"]


def test_plot_draws_on_given_axes_or_new_ones() -> None:
    from matplotlib.figure import Figure

    metric = ResponseProfile(encoder(), SMALL)
    metric.update(IMAGES)
    figure, axes = metric.plot()
    assert axes.get_xscale() == "log"
    own = Figure().subplots()
    assert metric.plot(ax=own) == (own.figure, own)
    assert len(own.lines) == len(axes.lines)
    assert figure is not own.figure


def test_what_is_missing_or_wrong_is_said() -> None:
    metric = ResponseProfile(encoder(), SMALL)
    with pytest.warns(UserWarning, match="compute"), pytest.raises(LitBumpError, match="nothing measured yet"):
        metric.compute()
    with pytest.raises(LitBumpError, match="qick"):
        ResponseProfile(encoder(), {"preset": "qick"})
    with pytest.raises(LitBumpError, match="both or neither"):
        ResponseProfile(encoder(), SMALL, mean=(0.5,) * 3)
    metric.update(IMAGES)
    with pytest.raises(LitBumpError, match="val is a str"):
        metric.plot("x")


def _synchronised(rank: int, address: str, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    metric = ResponseProfile(encoder(), SMALL)
    metric.update(IMAGES[2 * rank : 2 * rank + 2 + rank])  # two and three images
    found = metric.compute()
    torch.save({"n": found["n_kept"], "median": found["median"]}, Path(folder) / f"{rank}.pt")
    assert int(metric.n_images) == 2 + rank  # as before the sync
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_have_all_images(tmp_path: Path) -> None:
    address = f"file://{tmp_path / 'meet'}"
    torch_processes.spawn(_synchronised, args=(address, str(tmp_path)), nprocs=2)  # type: ignore[attr-defined,no-untyped-call,unused-ignore]
    found: list[dict[str, Any]] = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    assert found[0]["n"].tolist() == [5.0] * len(SMALL.etas)
    assert torch.equal(found[0]["median"], found[1]["median"])
