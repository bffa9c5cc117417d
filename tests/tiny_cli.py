"""The tiny config of the command line's tests, and what is read from its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

TINY = """\
model: {class_path: ClassifierModule, init_args: {width: 4, lr: 1e-1}}
data: {class_path: ShapesDataModule, init_args: {n_train: 8, n_test: 8, batch_size: 4}}
rprofile:
  probes: [shapes2]
  protocol: {n_pairs: 2, etas: [0.01, 0.1, 1.0]}
  schedule: {per_decade: 1}
  figures: false
  max_share: null  # every scheduled step of a run of a second
trainer:
  max_steps: 2
  accelerator: cpu
  log_every_n_steps: 1
  enable_progress_bar: false
  enable_model_summary: false
"""


def checkpoint(folder: Path) -> Path:
    """Return the last checkpoint of a run."""
    (path,) = folder.glob("checkpoints/epoch*.ckpt")
    return path


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the last line on the error stream, after checking that no traceback stands before it."""
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return [line for line in text.splitlines() if line.strip()][-1]
