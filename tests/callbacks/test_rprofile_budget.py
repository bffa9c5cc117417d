"""The callback keeps to its budget in real runs: it takes fewer pairs, leaves steps out, and says so."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
from torch import Tensor

from lit_bump.callbacks.formation_table import read_table
from lit_bump.measure import Formation, Protocol, load_formation
from lit_bump.schedules import LogSteps
from tests.callbacks.test_rprofile import StopAt
from tests.callbacks.tiny_run import SIZE, TinyModule, tiny_callback, tiny_probe, tiny_trainer

QUICK = Protocol.quick(SIZE)


def formation(folder: Path) -> Formation:
    return load_formation(folder)["p"]


class SlowSteps(pl.Callback):
    """Make every step take some time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_train_batch_start(self, *_: Any) -> None:  # noqa: D102
        time.sleep(self.seconds)


def test_no_time_leaves_out_all_but_the_first_and_the_last_which_takes_few_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    callback = tiny_callback(max_share=1e-6, protocol=QUICK)
    with caplog.at_level("INFO"):
        tiny_trainer(tmp_path, callback, max_steps=10).fit(TinyModule())
    measured = formation(tmp_path)
    assert measured.steps == (0, 10)
    first, last = measured.profiles
    assert not first.gave_up  # nothing is known of the training's length
    assert "least number of pairs" in last.gave_up
    assert last.n_directions.sum() < first.n_directions.sum()
    rows = read_table(tmp_path / "profiles" / "formation.csv")
    assert [bool(row["thinned_se"]) for row in rows] == [False, True]
    said = [line for line in caplog.messages if "(limit: 0.0001 % of training; said once)" in line]
    assert len(said) == 1
    assert said[0].startswith("Step 1: no response profile: the least costs")
    end = capsys.readouterr().out.splitlines()[-1]
    assert "; 4 left out, standard error up to" in end
    assert end.endswith("% at 1 step, to keep to 0.0001 % of training")


def test_a_run_cut_short_on_a_step_left_out_still_has_its_last(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(max_share=1e-6), StopAt(6), max_steps=100).fit(TinyModule())
    assert formation(tmp_path).steps == (0, 6)


def test_long_steps_leave_nothing_out_and_give_up_nothing(tmp_path: Path) -> None:
    callback = tiny_callback(max_share=0.9, schedule=LogSteps(steps=(0, 2, 4)))
    tiny_trainer(tmp_path, callback, SlowSteps(0.2)).fit(TinyModule())
    measured = formation(tmp_path)
    assert measured.steps == (0, 2, 4)
    assert not any(profile.gave_up for profile in measured.profiles)
    assert callback.record.share() < 0.9


def test_seconds_of_one_measurement_thin_every_one_the_first_included(tmp_path: Path) -> None:
    callback = tiny_callback(
        budget_seconds=1e-3, protocol=QUICK, probes=[tiny_probe(), tiny_probe("two", n_images=2, seed=8)]
    )
    tiny_trainer(tmp_path, callback, max_steps=2).fit(TinyModule())
    for measured in load_formation(tmp_path).values():
        assert measured.steps == (0, 1, 2)
        assert all("least number of pairs" in profile.gave_up for profile in measured.profiles)


def test_time_of_measurements_is_nobody_s_training_time(tmp_path: Path) -> None:
    module = TinyModule()

    def slow(images: Tensor) -> Tensor:
        time.sleep(0.01)
        return module.forward_features(images)

    callbacks = tiny_callback(max_share=1.0), tiny_callback(name="slow", encoder=slow)
    tiny_trainer(tmp_path, *callbacks).fit(module)
    seconds = [callback.record.seconds for callback in callbacks]
    for callback in callbacks:
        training = callback.budget.training.seconds()
        assert 0 < training < callback.record.elapsed() - max(seconds)
        assert not callback.budget.training.runs


def test_a_checkpoint_of_a_measured_step_holds_the_plan(tmp_path: Path) -> None:
    import torch

    callback = tiny_callback(max_share=1.0, save_checkpoints=True, protocol=QUICK)
    tiny_trainer(tmp_path, callback, SlowSteps(0.02), max_steps=3).fit(TinyModule())
    saved = torch.load(tmp_path / "checkpoints" / "step_00000002.ckpt", weights_only=True)
    (state,) = (state for key, state in saved["callbacks"].items() if key.startswith("RProfileCallback"))
    step, seconds = state["budget"]["first"]
    assert step == 1
    assert 0.02 < seconds < state["budget"]["training"] < callback.budget.training.seconds()
    assert 0 < state["budget"]["least"] < state["seconds"]
    again = tiny_callback(max_share=1.0, protocol=QUICK)
    again.load_state_dict(state)
    assert again.state_dict()["budget"] == state["budget"]
    del state["budget"]  # as older versions wrote it
    tiny_callback().load_state_dict(state)
