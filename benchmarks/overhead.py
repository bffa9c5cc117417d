"""What lit_bump costs where it does not measure: import, ``--help``, and a training step with nothing scheduled."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.shared import Setting, Table
from lit_bump import ClassifierModule, ProbeSet, RProfileCallback


def tables(setting: Setting) -> list[Table]:
    """Measure imports, the command line's help, and the callback's hooks.

    Args:
        setting: of the benchmark.

    Returns:
        Seconds of each; of the hooks per training step, with the step's own time beside them.

    """
    starts = Table("starts, s", ("what", "n", "median", "smallest"))
    for what, words in (
        ("python -c pass", ["-c", "pass"]),
        ("python -c 'import lit_bump'", ["-c", "import lit_bump"]),
        ("python -m lit_bump --help", ["-m", "lit_bump", "--help"]),
    ):
        seconds = []
        for _ in range(max(setting.repeats, 3)):
            began = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            seconds.append(time.perf_counter() - began)
        starts.add(what, len(seconds), statistics.median(seconds), min(seconds))
    return [starts, _hooks(setting)]


def _hooks(setting: Setting) -> Table:
    n_steps = setting.pick(4, 30, 100)
    spent: dict[str, float] = {}
    probe = ProbeSet.from_tensor(torch.rand(4, 3, 32, 32), name="p")
    callback = RProfileCallback(probe, figures=False)
    callback.schedule = _Never()  # type: ignore[assignment]
    for name in ("on_train_batch_start", "on_train_batch_end", "on_train_epoch_end"):
        setattr(callback, name, _timed(getattr(callback, name), name, spent))
    images, labels = torch.rand(16 * n_steps, 3, 32, 32), torch.randint(0, 10, (16 * n_steps,))
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(
            accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=Path(folder), callbacks=[callback],
        )  # fmt: skip
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no validation set
            trainer.fit(
                ClassifierModule("resnet18", width=16), DataLoader(TensorDataset(images, labels), batch_size=16)
            )
        step = (time.perf_counter() - began) / n_steps
    table = Table(
        "hooks of a callback that has nothing to measure: ResNet-18, width 16, batches of 16",
        ("what", "microseconds a step", "share of a step, %"),
    )
    for name, seconds in spent.items():
        table.add(name, 1e6 * seconds / n_steps, 100 * seconds / n_steps / step)
    table.add("all", 1e6 * sum(spent.values()) / n_steps, 100 * sum(spent.values()) / n_steps / step)
    table.add("the step itself", 1e6 * step, 100.0)
    return table


class _Never:
    """A schedule of which nothing is ever due."""

    includes_last = False

    def next_target(self, step: int, total: int | None) -> int:
        """Return a step that no run reaches."""
        return 10**12

    def n_targets_above(self, step: int, total: int | None) -> int:
        """Return one."""
        return 1


def _timed(hook: Any, name: str, spent: dict[str, float]) -> Any:
    spent[name] = 0.0

    def wrapped(*args: Any) -> Tensor | None:
        began = time.perf_counter()
        result: Tensor | None = hook(*args)
        spent[name] += time.perf_counter() - began
        return result

    return wrapped
