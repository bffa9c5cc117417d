"""The prober in a loop: what is scheduled is measured once, training is left alone, a fault costs a point at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lit_bump import LitBumpError, LogSteps, Prober, load_formation
from lit_bump.callbacks.formation_table import read_table
from lit_bump.measure import measure_profile
from tests.callbacks.tiny_run import SMALL, tiny_probe


def network() -> nn.Sequential:
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(256, 5))


def train(steps: int, prober: Prober | None = None, start: int = 0, model: nn.Module | None = None) -> nn.Module:
    """Train for some steps, measured or not.

    Returns:
        The network.

    """
    model = network() if model is None else model
    optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    torch.manual_seed(1)
    if prober is not None:
        prober(start, model)
    for step in range(start + 1, steps + 1):
        images, labels = torch.rand(4, 3, 8, 8), torch.randint(0, 5, (4,))
        loss = nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if prober is not None:
            prober(step, model)
    if prober is not None:
        prober.close(model)
    return model


def prober(folder: Path, **changes: Any) -> Prober:
    options: dict[str, Any] = {"protocol": SMALL, "figures": False, "max_share": None, "total_steps": 6}
    return Prober(changes.pop("probes", tiny_probe()), folder, **{**options, **changes})


def test_the_loop_is_bit_for_bit_the_same(tmp_path: Path) -> None:
    plain, measured = train(6), train(6, prober(tmp_path))
    for one, other in zip(plain.state_dict().values(), measured.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    assert all(part.training for part in measured.modules())


def test_the_files_are_those_of_a_direct_measurement(tmp_path: Path) -> None:
    model = train(6, prober(tmp_path))
    formation = load_formation(tmp_path)["p"]
    assert formation.steps == (0, 1, 2, 3, 6)
    expected = measure_profile(model, tiny_probe().images, SMALL)
    np.testing.assert_array_equal(formation.profiles[-1].ratio, expected.ratio)
    assert [row["step"] for row in read_table(tmp_path / "profiles" / "formation.csv")] == ["0", "1", "2", "3", "6"]


@settings(deadline=None, max_examples=20)
@given(total=st.integers(0, 60), known=st.booleans(), stride=st.integers(1, 4))
def test_every_target_is_measured_once(
    tmp_path_factory: pytest.TempPathFactory, total: int, known: bool, stride: int
) -> None:
    folder, schedule = tmp_path_factory.mktemp("run"), LogSteps()
    one = prober(folder, total_steps=total if known else None, schedule=schedule)
    flat = nn.Flatten()
    steps = list(range(0, total + 1, stride))
    measured = [step for step in steps if one(step, flat)]
    one.close(flat)
    found = load_formation(folder)["p"].steps
    assert set(measured) <= set(found)
    expected, last = [], -1
    for step in steps:
        target = schedule.next_target(last, total if known else None)
        if target is not None and target <= step:
            expected.append(step)
            last = step
    assert list(found) == sorted({*expected, steps[-1]})


def test_a_resumed_loop_has_one_history(tmp_path: Path) -> None:
    first = prober(tmp_path, total_steps=10)
    model = network()
    for step in range(5):
        first(step, model)
    state = first.state_dict()
    for step in (5, 6):  # these are lost with the process
        first(step, model)
    second = prober(tmp_path, total_steps=10)
    second.load_state_dict(state)
    for step in range(4, 11):
        second(step, model)
    second.close(model)
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 6, 10)
    assert (tmp_path / "profiles.1" / "p" / "step_00000006.npz").is_file()  # nothing is deleted
    assert [int(row["step"]) for row in second.rows] == [0, 1, 2, 3, 6, 10]


def test_a_resumed_loop_without_state_reads_the_files(tmp_path: Path) -> None:
    first, model = prober(tmp_path, total_steps=10), network()
    for step in range(5):
        first(step, model)
    second = prober(tmp_path, total_steps=10)
    for step in range(4, 11):
        second(step, model)
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 6, 10)
    assert [int(row["step"]) for row in second.rows] == [0, 1, 2, 3, 6, 10]


class Failing(nn.Module):
    """Work, and then raise."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def forward(self, images: Tensor) -> Tensor:
        """Return the pixels.

        Raises:
            ValueError: once it is broken.

        """
        if self.broken:
            raise ValueError("no more")
        return images.flatten(1)


def test_a_later_fault_costs_one_point(tmp_path: Path) -> None:
    one, encoder = prober(tmp_path), Failing()
    one(0, encoder)
    encoder.broken = True
    with pytest.warns(UserWarning, match="no response profile of 'p' at step 1: ValueError: no more"):
        assert one(1, encoder) == {}
    encoder.broken = False
    assert one(2, encoder)
    assert load_formation(tmp_path)["p"].steps == (0, 2)


def test_the_first_fault_is_an_error(tmp_path: Path) -> None:
    encoder = Failing()
    encoder.broken = True
    with pytest.raises(LitBumpError, match="'p' cannot be measured: ValueError: no more"):
        prober(tmp_path)(0, encoder)


def test_a_writer_gets_it_all_and_its_fault_costs_one_warning(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    one = prober(tmp_path, writer=writer, figures=True)
    one(0, nn.Flatten())
    writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Tags()["images"] == ["bump/profile/p"]
    assert "bump/max_r/p" in events.Tags()["scalars"]
    assert events.Tensors("bump/tensor/p")

    class Broken:
        def add_scalar(self, *_: Any) -> None:
            """Fail.

            Raises:
                OSError: always.

            """
            raise OSError("full")

    one.writer = Broken()
    with pytest.warns(UserWarning, match="no more response profiles"):
        one(1, nn.Flatten())
    one(2, nn.Flatten())
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"probes": []}, "empty list"),
        ({"probes": [tiny_probe(), tiny_probe()]}, "one name"),
        ({"protocol": {"preset": "qick"}}, "qick"),
        ({"mean": (0.5,) * 3}, "give both or neither"),
        ({"max_share": 0.0}, "max_share"),
        ({"schedule": LogSteps(steps=(0, 9))}, "step 9"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(LitBumpError, match=says):
        prober(tmp_path, **changes)


def test_steps_that_go_backwards_are_refused(tmp_path: Path) -> None:
    one = prober(tmp_path)
    one(3, nn.Flatten())
    with pytest.raises(LitBumpError, match="step 2 after step 3"):
        one(2, nn.Flatten())


def test_a_share_leaves_measurements_out_but_never_first_and_last(tmp_path: Path) -> None:
    one = prober(tmp_path, total_steps=40, max_share=1e-6)
    for step in range(41):
        one(step, nn.Flatten())
    assert load_formation(tmp_path)["p"].steps == (0, 40)
