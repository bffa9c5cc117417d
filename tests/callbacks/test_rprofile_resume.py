"""Stopped and resumed runs: the points of a straight run, each once, in files, table, TensorBoard and monitors."""

# ruff: noqa: D102
from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from lit_bump.callbacks import RProfileCallback, StepCheckpoint
from lit_bump.callbacks.formation_table import read_table
from lit_bump.errors import LitBumpError
from lit_bump.measure import load_formation
from lit_bump.schedules import LogSteps
from tests.callbacks.tiny_run import TinyModule, tiny_callback, tiny_probe, tiny_trainer

# These runs bring no StepCheckpoint the second time, and go on in the folder of the first.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Be aware that when using",
    "ignore:Checkpoint directory .* exists",
    "ignore:You're resuming from a checkpoint that ended before the epoch ended",
)
SCHEDULE = LogSteps(steps=(0, 1, 2, 4, 8, 16))
N_BATCHES = 8  # an epoch; so step 6 is in the middle of one


class KilledError(RuntimeError):
    """A run that ends as by a power cut."""


class KillAt(pl.Callback):
    """End a run after a step, once its checkpoints are written."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.global_step == self.step:
            raise KilledError


def straight(folder: Path) -> dict[int, Any]:
    pl.seed_everything(1, verbose=False)
    tiny_trainer(folder, tiny_callback(schedule=SCHEDULE), max_steps=16).fit(TinyModule())
    measured = load_formation(folder)["p"]
    return dict(zip(measured.steps, measured.profiles, strict=True))


def stopped(folder: Path, *, at: int, checkpoints: tuple[int, ...], **changes: Any) -> RProfileCallback:
    # Trains up to a step, with checkpoints at others, from the same seeds as ``straight``.
    pl.seed_everything(1, verbose=False)
    saved = StepCheckpoint(LogSteps(steps=checkpoints), dirpath=folder / "saved")
    callback = tiny_callback(schedule=SCHEDULE)
    with pytest.raises(KilledError):
        tiny_trainer(folder, callback, saved, KillAt(at), max_steps=16, **changes).fit(TinyModule())
    return callback


def resumed(folder: Path, step: int, callback: RProfileCallback | None = None, **changes: Any) -> RProfileCallback:
    callback = callback or tiny_callback(schedule=SCHEDULE)
    trainer = tiny_trainer(folder, callback, **{"max_steps": 16, **changes})
    trainer.fit(TinyModule(), ckpt_path=folder_of(folder) / "saved" / f"step_{step:08d}.ckpt", weights_only=False)
    return callback


def folder_of(folder: Path) -> Path:
    return folder if (folder / "saved").exists() else folder.parent


def test_resumed_where_it_stopped_it_has_the_points_of_a_straight_run(tmp_path: Path) -> None:
    expected = straight(tmp_path / "straight")
    stopped(tmp_path / "cut", at=6, checkpoints=(6,))
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*.npz")}
    resumed(tmp_path / "cut", 6)
    measured = load_formation(tmp_path / "cut")["p"]
    assert measured.steps == tuple(expected) == (0, 1, 2, 4, 8, 16)
    assert all(path.stat().st_mtime_ns == before for path, before in times.items())  # nothing is measured twice
    for step, profile in zip(measured.steps[:4], measured.profiles, strict=False):
        np.testing.assert_array_equal(profile.ratio, expected[step].ratio)
    rows = read_table(tmp_path / "cut" / "profiles" / "formation.csv")
    assert [int(row["step"]) for row in rows] == [0, 1, 2, 4, 8, 16]


def test_resumed_from_an_older_checkpoint_it_moves_aside_what_came_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stopped(tmp_path, at=10, checkpoints=(5,))
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 4, 8)
    abandoned = tmp_path / "profiles" / "p" / "step_00000008.npz"
    before = abandoned.read_bytes()
    with caplog.at_level("INFO"):
        resumed(tmp_path, 5, max_steps=9, callback=tiny_callback(schedule=LogSteps(steps=(0, 1, 2, 4, 8))))
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 4, 8)
    assert (tmp_path / "profiles.1" / "p" / abandoned.name).read_bytes() == before
    assert abandoned.read_bytes() != before
    assert sum("goes on from step 5; later profiles" in line for line in caplog.messages) == 1
    rows = read_table(tmp_path / "profiles" / "formation.csv")
    assert [int(row["step"]) for row in rows] == [0, 1, 2, 4, 8]


def test_a_final_point_is_dropped_when_the_run_goes_on_from_before_it(tmp_path: Path) -> None:
    pl.seed_everything(1, verbose=False)
    saved = StepCheckpoint(LogSteps(steps=(5,)), dirpath=tmp_path / "saved")
    tiny_trainer(tmp_path, tiny_callback(), saved, max_steps=7).fit(TinyModule())
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 6, 7)
    resumed(tmp_path, 5, callback=tiny_callback())
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 6, 10, 16)


def test_a_new_folder_gets_the_earlier_points_too(tmp_path: Path) -> None:
    stopped(tmp_path / "a", at=6, checkpoints=(5,))
    trainer = tiny_trainer(tmp_path / "b", tiny_callback(schedule=SCHEDULE), max_steps=16)
    trainer.fit(TinyModule(), ckpt_path=tmp_path / "a" / "saved" / "step_00000005.ckpt", weights_only=False)
    assert load_formation(tmp_path / "b")["p"].steps == (0, 1, 2, 4, 8, 16)
    assert load_formation(tmp_path / "a")["p"].steps == (0, 1, 2, 4)
    assert len(read_table(tmp_path / "b" / "profiles" / "formation.csv")) == 6


def test_a_run_resumed_from_another_working_folder_finds_its_earlier_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    stopped(Path("a"), at=6, checkpoints=(5,))
    monkeypatch.chdir(tmp_path / "two")
    trainer = tiny_trainer(Path("b"), tiny_callback(schedule=SCHEDULE), max_steps=16)
    trainer.fit(TinyModule(), ckpt_path=tmp_path / "one/a/saved/step_00000005.ckpt", weights_only=False)
    assert load_formation("b")["p"].steps == (0, 1, 2, 4, 8, 16)


def test_earlier_points_whose_files_are_gone_are_named_and_stay_in_the_table(tmp_path: Path) -> None:
    stopped(tmp_path / "a", at=6, checkpoints=(5,))
    (tmp_path / "a" / "profiles").rename(tmp_path / "elsewhere")
    trainer = tiny_trainer(tmp_path / "b", tiny_callback(schedule=SCHEDULE), max_steps=16)
    with pytest.warns(UserWarning, match=r"no saved profiles of steps 0, 1, 2, 4 in .*b or .*a: the figures") as warned:
        trainer.fit(TinyModule(), ckpt_path=tmp_path / "a" / "saved" / "step_00000005.ckpt", weights_only=False)
    assert len([warning for warning in warned if "no saved profiles" in str(warning.message)]) == 1
    assert load_formation(tmp_path / "b")["p"].steps == (8, 16)
    assert len(read_table(tmp_path / "b" / "profiles" / "formation.csv")) == 6


def test_a_checkpoint_taken_before_a_due_point_loses_nothing(tmp_path: Path) -> None:
    stopped(tmp_path, at=6, checkpoints=(4,))
    state_path = tmp_path / "saved" / "step_00000004.ckpt"
    import torch

    state = torch.load(state_path, weights_only=False)
    (key,) = [key for key in state["callbacks"] if key.startswith("RProfileCallback")]
    state["callbacks"][key]["last_step"] = 2  # as if another callback had saved it just before the measurement
    state["callbacks"][key]["rows"] = state["callbacks"][key]["rows"][:3]
    torch.save(state, state_path)
    (tmp_path / "profiles" / "p" / "step_00000004.npz").unlink()
    resumed(tmp_path, 4)
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 4, 8, 16)


def test_resuming_a_run_that_had_no_callback_begins_at_the_next_target(tmp_path: Path) -> None:
    saved = StepCheckpoint(LogSteps(steps=(5,)), dirpath=tmp_path / "saved")
    tiny_trainer(tmp_path, saved, max_steps=5).fit(TinyModule())
    resumed(tmp_path, 5)
    assert load_formation(tmp_path)["p"].steps == (8, 16)


def test_training_on_with_the_same_trainer_keeps_one_history(tmp_path: Path) -> None:
    trainer, module = tiny_trainer(tmp_path, tiny_callback(schedule=SCHEDULE), max_steps=16), TinyModule()
    trainer.fit_loop.epoch_loop.max_steps = 4
    callback = tiny_callback()
    trainer.callbacks = [callback]  # type: ignore[attr-defined]
    trainer.fit(module)
    trainer.fit_loop.epoch_loop.max_steps = 10
    trainer.fit(module)
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 4, 6, 10)


def test_two_callbacks_each_take_up_their_own_history(tmp_path: Path) -> None:
    def callbacks() -> tuple[RProfileCallback, RProfileCallback]:
        other = LogSteps(steps=(0, 3, 7, 16))
        return tiny_callback(schedule=SCHEDULE), tiny_callback(schedule=other, name="half", encoder="backbone.0")

    saved = StepCheckpoint(LogSteps(steps=(5,)), dirpath=tmp_path / "saved")
    with pytest.raises(KilledError):
        tiny_trainer(tmp_path, *callbacks(), saved, KillAt(5), max_steps=16).fit(TinyModule())
    again = callbacks()
    tiny_trainer(tmp_path, *again, max_steps=16).fit(
        TinyModule(), ckpt_path=tmp_path / "saved" / "step_00000005.ckpt", weights_only=False
    )
    expected = {"p": (0, 1, 2, 4, 8, 16), "half-p": (0, 3, 7, 16)}
    assert {name: measured.steps for name, measured in load_formation(tmp_path).items()} == expected
    assert [{row["step"] for row in callback.record.rows} for callback in again] == [set(s) for s in expected.values()]


def test_other_images_under_the_old_name_are_refused(tmp_path: Path) -> None:
    stopped(tmp_path, at=3, checkpoints=(2,))
    other = tiny_callback(schedule=SCHEDULE, probes=tiny_probe(seed=8))
    with pytest.raises(LitBumpError, match="probe set 'p' has other images than in the run that is resumed"):
        resumed(tmp_path, 2, callback=other)


def test_seconds_and_share_carry_on(tmp_path: Path) -> None:
    before = stopped(tmp_path, at=6, checkpoints=(6,)).record.state_dict()
    second = resumed(tmp_path, 6)
    assert second.record.seconds > before["seconds"] > 0
    assert second.record.elapsed() > second.record.seconds
    assert 0 < second.record.share() < 1


def test_monitors_find_their_key_right_after_resuming(tmp_path: Path) -> None:
    def checkpoint() -> ModelCheckpoint:
        return ModelCheckpoint(
            tmp_path / "best", monitor="bump/max_r/p", mode="max", every_n_train_steps=1, save_top_k=-1
        )

    callback = tiny_callback(schedule=SCHEDULE)
    saved = StepCheckpoint(LogSteps(steps=(5,)), dirpath=tmp_path / "saved")
    tiny_trainer(tmp_path, callback, saved, checkpoint(), max_steps=16).fit(TinyModule())
    again = tiny_trainer(tmp_path, tiny_callback(schedule=SCHEDULE), checkpoint(), max_steps=16)
    again.fit(TinyModule(), ckpt_path=tmp_path / "saved" / "step_00000005.ckpt", weights_only=False)
    assert len(list((tmp_path / "best").iterdir())) >= 16


def test_tensorboard_shows_every_step_once_after_going_back(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path, name="", version="run")
    stopped(tmp_path, at=10, checkpoints=(3,), logger=logger)
    time.sleep(1.1)  # files are read in the order of their names, which hold the second and the process
    resumed(tmp_path, 3, logger=TensorBoardLogger(tmp_path, name="", version="run"))
    events = EventAccumulator(str(tmp_path / "run"), tensor_size_guidance={"lit_bump": 0, "scalars": 0})
    events.Reload()

    def steps(tag: str) -> list[int]:
        return [event.step for event in events.Tensors(tag)]  # a reader that keeps scalars, too, as tensors

    assert steps("bump/max_r/p") == steps("bump/tensor/p") == [0, 1, 2, 4, 8, 16]
    assert steps("bump_vs_1000log10step/max_r/p") == [0, 301, 477, 699, 954, 1230]
