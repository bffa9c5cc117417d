"""Laws of the step checkpoints: each scheduled step once, step 0 before any update, resumable, nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor
from torch.utils.data import DataLoader

from lit_bump.callbacks.step_checkpoint import StepCheckpoint
from lit_bump.errors import LitBumpError
from lit_bump.schedules import LogSteps

pytestmark = pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")


class Line(LightningModule):
    """Fit three weights, with one optimiser or, by hand, with two."""

    def __init__(self, n_optimizers: int = 1) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.automatic_optimization = n_optimizers == 1
        self.n_optimizers = n_optimizers

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor | None:
        """Return the loss, or step by hand."""
        loss = (self.weight - batch).square().mean()
        if self.automatic_optimization:
            return loss
        self.manual_backward(loss)
        for optimizer in self.optimizers():  # type: ignore[union-attr]
            optimizer.step()
        return None

    def validation_step(self, batch: Tensor, batch_idx: int) -> None:
        """Do nothing; there only to have a sanity check."""

    def configure_optimizers(self) -> Any:
        """Return plain SGD, once or twice."""
        optimizers = [torch.optim.SGD([self.weight], lr=0.01) for _ in range(self.n_optimizers)]
        return optimizers if len(optimizers) > 1 else optimizers[0]


class StopAt(Callback):
    """End the run, or break it, after a step."""

    def __init__(self, step: int, error: BaseException | None = None) -> None:
        self.step, self.error = step, error

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """End the run at the step."""
        if trainer.global_step == self.step:
            if self.error is not None:
                raise self.error
            trainer.should_stop = True


def data() -> DataLoader[Tensor]:
    return DataLoader(torch.rand(8, 3, generator=torch.Generator().manual_seed(0)))  # type: ignore[arg-type]


def trainer(folder: Path, *callbacks: Callback, **arguments: Any) -> Trainer:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False}
    return Trainer(
        **{"accelerator": "cpu", "default_root_dir": folder, "logger": False, **quiet, **arguments},
        callbacks=list(callbacks),
    )


def saved_steps(folder: Path) -> list[int]:
    files = sorted((folder / "checkpoints").glob("*.ckpt"))
    for file in files:
        assert torch.load(file)["global_step"] == int(file.stem.removeprefix("step_"))
        assert len(file.stem) == len("step_00000000")
    return [int(file.stem.removeprefix("step_")) for file in files]


def test_saves_zero_the_scheduled_steps_and_the_last(tmp_path: Path) -> None:
    trainer(tmp_path, StepCheckpoint(), max_steps=16).fit(Line(), data())
    assert saved_steps(tmp_path) == list(LogSteps().targets(16)) == [0, 1, 2, 3, 6, 10, 16]


def test_step_zero_is_before_any_update(tmp_path: Path) -> None:
    trainer(tmp_path, StepCheckpoint(), max_steps=2).fit(Line(), data(), data())  # with a sanity check
    weights = [torch.load(tmp_path / f"checkpoints/step_0000000{i}.ckpt")["state_dict"]["weight"] for i in range(3)]
    assert torch.equal(weights[0], torch.zeros(3))
    assert not torch.equal(weights[1], weights[0])
    assert not torch.equal(weights[2], weights[1])


def test_training_is_the_same_with_and_without(tmp_path: Path) -> None:
    plain, watched = Line(), Line()
    trainer(tmp_path, max_steps=12, enable_checkpointing=False).fit(plain, data())
    trainer(tmp_path, StepCheckpoint(), max_steps=12).fit(watched, data())
    assert torch.equal(plain.weight, watched.weight)


def test_accumulated_batches_count_as_one_step(tmp_path: Path) -> None:
    schedule = LogSteps(steps=(0, 1, 2, 3, 4))
    trainer(tmp_path, StepCheckpoint(schedule), max_epochs=1, accumulate_grad_batches=2).fit(Line(), data())
    assert saved_steps(tmp_path) == [0, 1, 2, 3, 4]


def test_two_optimizers_meet_each_target_once(tmp_path: Path) -> None:
    schedule = LogSteps(steps=(1, 2, 4, 8, 16))
    trainer(tmp_path, StepCheckpoint(schedule), max_epochs=1).fit(Line(n_optimizers=2), data())
    assert saved_steps(tmp_path) == [2, 4, 8, 16]


def test_early_end_is_saved_unless_the_steps_are_listed(tmp_path: Path) -> None:
    trainer(tmp_path / "log", StepCheckpoint(), StopAt(5), max_epochs=4).fit(Line(), data())
    assert saved_steps(tmp_path / "log") == [0, 1, 2, 3, 5]
    listed = StepCheckpoint(LogSteps(steps=(0, 3, 20)))
    trainer(tmp_path / "listed", listed, StopAt(5), max_epochs=4).fit(Line(), data())
    assert saved_steps(tmp_path / "listed") == [0, 3]


def test_unknown_length_saves_the_end(tmp_path: Path) -> None:
    trainer(tmp_path, StepCheckpoint(), StopAt(11), max_epochs=-1).fit(Line(), data())
    assert saved_steps(tmp_path) == [0, 1, 2, 3, 6, 10, 11]


@pytest.mark.parametrize("resume_at", [6, 8, 10])
def test_resumed_run_saves_the_rest_once_and_ends_as_the_straight_one(tmp_path: Path, resume_at: int) -> None:
    straight, resumed = Line(), Line()
    schedule = LogSteps(steps=(0, 1, 3, 6, 8, 10, 14, 16))
    trainer(tmp_path / "straight", StepCheckpoint(schedule), max_steps=16).fit(straight, data())
    broken = trainer(tmp_path, StepCheckpoint(schedule), StopAt(11, RuntimeError("pulled the plug")), max_steps=16)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        broken.fit(Line(), data())
    first = saved_steps(tmp_path)
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "checkpoints").iterdir()}
    checkpoint = tmp_path / f"checkpoints/step_{resume_at:08d}.ckpt"
    callback = StepCheckpoint(schedule)
    trainer(tmp_path, callback, max_steps=16).fit(resumed, data(), ckpt_path=checkpoint)
    assert first == [0, 1, 3, 6, 8, 10]
    assert saved_steps(tmp_path) == [0, 1, 3, 6, 8, 10, 14, 16]
    kept = [file for file, time in times.items() if file.stat().st_mtime_ns == time]
    assert len(kept) == sum(step <= resume_at for step in first)
    # the loader starts its epoch anew after a mid-epoch stop, so only a stop at an epoch's end gives the same weights
    assert torch.equal(resumed.weight, straight.weight) or resume_at != 8


def test_run_resumed_from_another_kind_of_checkpoint_saves_the_steps_ahead(tmp_path: Path) -> None:
    runner, module = trainer(tmp_path, max_steps=4, enable_checkpointing=False), Line()
    runner.fit(module, data())
    runner.save_checkpoint(tmp_path / "four.ckpt")
    trainer(tmp_path, StepCheckpoint(), max_steps=12).fit(Line(), data(), ckpt_path=tmp_path / "four.ckpt")
    assert saved_steps(tmp_path) == [6, 10, 12]


def test_one_callback_serves_two_runs(tmp_path: Path) -> None:
    callback = StepCheckpoint(LogSteps(steps=(0, 2)))
    for name in ("first", "second"):
        trainer(tmp_path / name, callback, max_steps=2).fit(Line(), data())
        assert saved_steps(tmp_path / name) == [0, 2]


def test_continued_fit_does_not_go_back(tmp_path: Path) -> None:
    runner, module = trainer(tmp_path, StepCheckpoint(), max_epochs=1), Line()
    runner.fit(module, data())
    assert saved_steps(tmp_path) == [0, 1, 2, 3, 6, 8]
    runner.fit_loop.max_epochs = 2
    runner.fit(module, data())
    assert saved_steps(tmp_path) == [0, 1, 2, 3, 6, 8, 10, 16]


def test_files_lie_in_the_loggers_folder_or_where_told(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path, name="run", version=3)
    trainer(tmp_path, StepCheckpoint(), max_steps=1, logger=logger).fit(Line(), data())
    assert saved_steps(tmp_path / "run/version_3") == [0, 1]
    trainer(tmp_path, StepCheckpoint(dirpath=tmp_path / "other/checkpoints"), max_steps=1).fit(Line(), data())
    assert saved_steps(tmp_path / "other") == [0, 1]
    trainer(tmp_path, StepCheckpoint(dirpath=str(tmp_path / "text/checkpoints")), max_steps=1).fit(Line(), data())
    assert saved_steps(tmp_path / "text") == [0, 1]


def test_weights_only_leaves_out_the_optimizer(tmp_path: Path) -> None:
    trainer(tmp_path, StepCheckpoint(weights_only=True), max_steps=1).fit(Line(), data())
    assert "optimizer_states" not in torch.load(tmp_path / "checkpoints/step_00000001.ckpt")


def test_checkpoint_holds_the_other_callbacks_state_of_its_step(tmp_path: Path) -> None:
    class Count(Callback):
        n = 0

        def on_train_batch_end(self, *_: Any) -> None:
            self.n += 1

        def state_dict(self) -> dict[str, Any]:
            return {"n": self.n}

    trainer(tmp_path, StepCheckpoint(), Count(), max_steps=6).fit(Line(), data())
    for step in saved_steps(tmp_path):
        state = torch.load(tmp_path / f"checkpoints/step_{step:08d}.ckpt")["callbacks"]
        assert [value for key, value in state.items() if "Count" in key] == [{"n": step}]
        assert [value for key, value in state.items() if "StepCheckpoint" in key] == [{"last_step": step}]


def test_works_beside_model_checkpoint_and_another_schedule(tmp_path: Path) -> None:
    other = StepCheckpoint(LogSteps(steps=(5,)), dirpath=tmp_path / "other/checkpoints")
    own = ModelCheckpoint(dirpath=tmp_path / "own", every_n_train_steps=4)
    trainer(tmp_path, own, StepCheckpoint(), other, max_steps=8).fit(Line(), data())
    assert saved_steps(tmp_path) == [0, 1, 2, 3, 6, 8]
    assert saved_steps(tmp_path / "other") == [5]
    assert list((tmp_path / "own").iterdir())


def test_fast_dev_run_saves_nothing(tmp_path: Path) -> None:
    trainer(tmp_path, StepCheckpoint(LogSteps(steps=(0, 100))), fast_dev_run=True).fit(Line(), data(), data())
    assert not (tmp_path / "checkpoints").exists()


def test_step_beyond_the_run_is_refused_before_training(tmp_path: Path) -> None:
    module = Line()
    with pytest.raises(LitBumpError, match="step 100 is scheduled, but the run ends at step 8"):
        trainer(tmp_path, StepCheckpoint(LogSteps(steps=(0, 100))), max_epochs=1).fit(module, data())
    assert torch.equal(module.weight, torch.zeros(3))


def test_only_fit_saves(tmp_path: Path) -> None:
    runner = trainer(tmp_path, StepCheckpoint())
    runner.validate(Line(), data(), verbose=False)
    assert not (tmp_path / "checkpoints").exists()
