"""Runs in processes of their own: two of them share a measurement, and an interrupt loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lit_bump.callbacks.formation_table import read_table
from lit_bump.measure import load_formation, measure_profile
from tests.callbacks.tiny_run import SMALL, TinyModule, tiny_probe


def test_two_processes_give_the_answer_of_one_and_fail_together(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    done = run_python("-m", "tests.callbacks.two_processes", str(tmp_path), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert "RAISED lit_bump.errors.LitBumpError: probe set 'p' (3x8x8) cannot be measured (process 1)" in done.stdout
    assert not list((tmp_path / "fails").rglob("*.npz"))

    formations = load_formation(tmp_path / "works")
    assert {name: formation.steps for name, formation in formations.items()} == {"p": (0, 1, 2, 3), "one": (0, 1, 2, 3)}
    saved = torch.load(tmp_path / "trained.pt", weights_only=True)
    module = TinyModule()
    module.load_state_dict(saved["state"])
    for name, n_images in (("p", 5), ("one", 1)):
        probe, shared = tiny_probe(name, n_images=n_images), formations[name].profiles[-1]
        alone = measure_profile(module.forward_features, probe.images, SMALL, progress=False)
        assert shared.image_digests == alone.image_digests
        np.testing.assert_allclose(shared.ratio, alone.ratio, rtol=1e-4)
        assert shared.context["processes"] == 2

    rows = read_table(tmp_path / "works" / "metrics.csv")
    assert [row["step"] for row in rows if row["bump/max_r/p"]] == ["0", "1", "2", "3"]  # by one process alone
    height = formations["p"].profiles[-1].bump().height
    assert float(saved["monitored"]["bump/max_r/p"]) == np.float32(height)
    assert done.stdout.count("Response profiles") == 2  # of the run that works, and of that by budget

    opinions = [json.loads((tmp_path / f"rank{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    assert opinions == [{"steps": [0, 3], "skipped": 2}] * 2  # the first process decides
    last = load_formation(tmp_path / "budget")["p"].profiles[-1]
    assert "least number of pairs" in last.gave_up
    assert (last.n_directions == last.n_directions.flat[0]).all()  # also the images of the other process


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawn", "torchrun"])
def test_processes_started_in_any_way_give_one_history(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]], start: str
) -> None:
    module = ["-m", "tests.callbacks.two_processes", str(tmp_path)]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = [*torchrun, *module, "ddp"] if start == "torchrun" else [*module, "ddp_spawn"]
    done = run_python(*words, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    formations = load_formation(tmp_path / "works")
    assert {name: formation.steps for name, formation in formations.items()} == {"p": (0, 1, 2, 3), "one": (0, 1, 2, 3)}
    assert all(profile.context["processes"] == 2 for profile in formations["p"].profiles)
    rows = read_table(tmp_path / "works" / "profiles" / "formation.csv")
    assert [(row["step"], row["probe"]) for row in rows] == [(str(n), p) for n in range(4) for p in ("one", "p")]


def test_a_checkpoint_that_one_process_cannot_write_lets_none_wait(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    done = run_python("-m", "tests.callbacks.two_processes", str(tmp_path), "full", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3)


def test_an_interrupt_in_a_measurement_keeps_all_earlier_points_and_no_partial_one(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tests.callbacks.interrupted_run", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 240  # a busy machine takes long to import it all
        while not (tmp_path / "measuring").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    finally:
        process.kill()
        printed = process.communicate()[0].decode()
    assert (tmp_path / "measuring").exists(), printed
    assert process.returncode not in (0, 3, -signal.SIGKILL), printed
    assert load_formation(tmp_path / "run")["p"].steps == (0, 1)
    assert not list(tmp_path.rglob("*.partial"))
    rows = read_table(tmp_path / "run" / "profiles" / "formation.csv")
    assert [row["step"] for row in rows] == ["0", "1"]
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    assert [event.step for event in events.Scalars("bump/max_r/p")] == [0, 1]
