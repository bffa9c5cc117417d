"""What is read is a whole checkpoint of plain values, and nothing in it is run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from lit_bump.errors import LitBumpError
from lit_bump.runs.checkpoint_file import read_checkpoint


def test_a_checkpoint_is_read(run_folder: Path) -> None:
    assert read_checkpoint(run_folder / "checkpoints" / "step_00000002.ckpt")["global_step"] == 2


@pytest.mark.parametrize("kind", ["junk", "empty", "truncated", "tensor", "missing"])
def test_what_is_no_checkpoint_is_refused(kind: str, run_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.ckpt"
    if kind == "tensor":
        torch.save(torch.zeros(2), path)
    elif kind != "missing":
        whole = (run_folder / "checkpoints" / "step_00000002.ckpt").read_bytes()
        path.write_bytes({"junk": b"junk junk", "empty": b"", "truncated": whole[: len(whole) // 2]}[kind])
    with pytest.raises(LitBumpError, match=r"wrong\.ckpt (cannot be read|is no checkpoint)"):
        read_checkpoint(path)


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    torch.save({"state_dict": {}, "global_step": 1, "code": time.sleep}, tmp_path / "code.ckpt")
    with pytest.raises(LitBumpError, match="holds more than tensors and plain values"):
        read_checkpoint(tmp_path / "code.ckpt")
