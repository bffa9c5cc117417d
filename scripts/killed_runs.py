"""Kill a run with signal 9 at random moments, resume each, and compare its points with those of an undisturbed run.

``python scripts/killed_runs.py --runs 30``. Each run is ``quickstart.yaml`` made short. Resumed is from the newest
checkpoint, or started anew where there is none yet. Every profile, table, checkpoint and event file has to be whole.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from lit_bump import Profile, load_formation
from lit_bump.callbacks.formation_table import read_table

SHORT = (
    "--data.n_train", "640", "--data.n_test", "64", "--trainer.max_epochs", "6", "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false", "--rprofile.max_share", "null",
    "--rprofile.protocol", "{target_se: 0.3}",
)  # fmt: skip


def command(folder: Path, checkpoint: Path | None) -> list[str]:
    """Return the command of a run, begun or resumed."""
    more = [] if checkpoint is None else ["--ckpt_path", str(checkpoint)]
    config = ["--config", "quickstart.yaml", "--trainer.default_root_dir", str(folder)]
    return [sys.executable, "-m", "lit_bump", "fit", *config, *SHORT, *more]


def run(folder: Path, checkpoint: Path | None = None, *, kill_after: float | None = None) -> float:
    """Run to the end, or kill it.

    Args:
        folder: working folder of the run.
        checkpoint: to resume from.
        kill_after: seconds; None to let it end.

    Returns:
        Seconds that it ran.

    Raises:
        RuntimeError: if it ends with an error.

    """
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with (folder / "log.txt").open("a") as log:
        process = subprocess.Popen(
            command(folder, checkpoint), cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = process.wait(kill_after)
            if code:
                raise RuntimeError(
                    f"exit code {code}: see {folder / 'log.txt'}\n{(folder / 'log.txt').read_text()[-2000:]}"
                )
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return time.perf_counter() - began


def steps_of(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the points of the newest run in a folder that holds profiles."""
    runs = sorted(folder.rglob("version_*"), key=lambda path: int(path.name.partition("_")[2]))
    newest = [path for path in runs if (path / "profiles").is_dir()][-1]
    return {name: formation.steps for name, formation in load_formation(newest).items()}


def faults(folder: Path) -> list[str]:
    """Return what is not whole in a folder."""
    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        try:
            if path.suffix == ".npz":
                Profile.load(path)
            elif path.suffix == ".ckpt":
                torch.load(path, map_location="cpu", weights_only=True)
            elif path.name == "formation.csv":
                assert all(row["step"].isdigit() for row in read_table(path))
            elif path.name.endswith(".partial"):
                found.append(f"{path.relative_to(folder)} is left over")
        except Exception as error:
            found.append(f"{path.relative_to(folder)}: {type(error).__name__}: {error}")
    return found


def main() -> None:
    """Print a line a run, and a summary; exit code 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as base:
        whole = run(Path(base, "whole"))
        expected = steps_of(Path(base, "whole"))
        print(f"undisturbed: {whole:.1f} s, points {expected}", flush=True)
        for number in range(options.runs):
            folder, moment = Path(base, f"run_{number}"), moments.uniform(0.1, 0.95) * whole
            run(folder, kill_after=moment)
            broken = faults(folder)
            checkpoints = sorted(folder.rglob("*.ckpt"), key=lambda path: path.stat().st_mtime)
            run(folder, checkpoints[-1] if checkpoints else None)
            found = steps_of(folder)
            broken += [fault for fault in faults(folder) if fault not in broken]
            bad += found != expected or any("left over" not in fault for fault in broken)
            at = checkpoints[-1].stem if checkpoints else "the beginning"
            print(
                f"killed after {moment:.1f} s, resumed from {at}: {'same points' if found == expected else found}",
                *broken,
                sep="; ",
                flush=True,
            )
    print(f"{options.runs} runs, {bad} with other points or broken files")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
