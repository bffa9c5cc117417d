"""A killed command goes on and ends with the same table; what fails is said and stops nothing else."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lit_bump.claims.condition import Condition
from lit_bump.claims.condition_run import MADE_OF, check_made_of, complete, fit_words, made_of
from lit_bump.claims.evidence import is_finished
from lit_bump.claims.pool import run_conditions
from lit_bump.cli_claims import check_claims, train
from lit_bump.errors import LitBumpError
from tests.claims.tiny_claims import PROTOCOL, tiny_scale

pytestmark = pytest.mark.filterwarnings("ignore:The number of training batches")
SCRIPT = Path(__file__).with_name("tiny_claims.py")


def start(out: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with (out.parent / f"{out.name}.log").open("ab") as log:
        return subprocess.Popen([sys.executable, str(SCRIPT), str(out)], env=environment, stdout=log, stderr=log)


def table(out: Path) -> Any:
    record = json.loads((out / "claims.json").read_text(encoding="utf-8"))
    profiles = {name: run["profiles"] for name, run in record["conditions"].items()}
    metrics = {name: run["metrics"] for name, run in record["conditions"].items()}
    return record["claims"], profiles, metrics


@pytest.mark.slow
def test_killed_at_random_moments_it_goes_on_to_the_same_table(tmp_path: Path) -> None:
    whole = start(tmp_path / "whole")
    assert whole.wait(timeout=300) == 0, (tmp_path / "whole.log").read_text(encoding="utf-8")
    moment = random.Random(time.time_ns()).uniform(6, 25)  # another one in every run of this test
    process = start(tmp_path / "killed")
    try:
        process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    process = start(tmp_path / "killed")
    assert process.wait(timeout=300) == 0, (tmp_path / "killed.log").read_text(encoding="utf-8")
    assert table(tmp_path / "killed") == table(tmp_path / "whole"), f"killed after {moment:.1f} s"
    for name in ("report.html", "formation.html", "claims.md", "claims.json", "C2.png", "C4.png"):
        assert (tmp_path / "killed" / name).stat().st_size > 0


def failing(words: list[str], run_name: str) -> Any:
    """Stand for a training that fails in a child process.

    Raises:
        LitBumpError: always.

    """
    raise LitBumpError(f"no {run_name}\ntoday")


@pytest.mark.slow
def test_a_condition_that_fails_is_said_and_those_after_it_are_left(tmp_path: Path) -> None:
    options = {"train": failing, "protocol": PROTOCOL, "data_dir": None, "extra": ()}
    failed = run_conditions(tiny_scale(), tmp_path, jobs=2, options=options, console=Console(quiet=True))
    assert failed == {
        "resnet18_clean": "no resnet18_clean today",
        "resnet18_adv": "it starts from resnet18_clean, which failed",
    }
    assert "LitBumpError" in (tmp_path / "logs" / "resnet18_clean.log").read_text(encoding="utf-8")


def test_other_options_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    scale = tiny_scale()
    clean = scale.conditions[0]
    (tmp_path / "runs" / clean.name).mkdir(parents=True)
    made = made_of(clean, PROTOCOL, ())
    (tmp_path / "runs" / clean.name / MADE_OF).write_text(json.dumps(made), encoding="utf-8")
    check_made_of(clean, tmp_path / "runs", protocol=PROTOCOL)
    options: dict[str, Any] = {"train": failing, "protocol": PROTOCOL, "data_dir": None, "extra": ()}
    changed = replace(scale, conditions=(replace(clean, options=(*clean.options, "--model.lr=0.5")),))
    with pytest.raises(LitBumpError, match=r"made with options \[\], now \['--model.lr=0.5'\]: give another --out"):
        run_conditions(changed, tmp_path, jobs=1, options=options, console=Console(quiet=True))
    with pytest.raises(LitBumpError, match=r"was made with protocol .*, now \{'preset': 'paper'\}"):
        check_made_of(clean, tmp_path / "runs", protocol={"preset": "paper"})


def test_a_finished_condition_is_not_trained_again(tmp_path: Path) -> None:
    condition = tiny_scale().conditions[0]
    (tmp_path / condition.name).mkdir()
    result = {"run": "version_0", "checkpoint": "checkpoints/a.ckpt", "metrics": {}, "steps": 18}
    (tmp_path / condition.name / "result.json").write_text(json.dumps(result), encoding="utf-8")
    places = [tmp_path / condition.name / "version_0" / "profiles" / probe for probe in condition.probes]
    checkpoint = tmp_path / condition.name / "version_0" / "checkpoints" / "a.ckpt"
    for path in (checkpoint, *(place / "step_00000018.npz" for place in places)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert complete(condition, tmp_path, train=failing, protocol=PROTOCOL) == result
    assert is_finished(tmp_path, condition)
    words = fit_words(tiny_scale().conditions[1], tmp_path, data_dir=None)
    assert f"--model.init_from={tmp_path}/resnet18_clean/version_0/checkpoints/a.ckpt" in words
    checkpoint.unlink()
    with pytest.raises(LitBumpError, match=r"a.ckpt, which is gone: remove .*resnet18_clean, and it is trained again"):
        fit_words(tiny_scale().conditions[1], tmp_path, data_dir=None)
    (places[0] / "step_00000018.npz").unlink()
    assert not is_finished(tmp_path, condition)  # an earlier step must not stand for the last one


@pytest.mark.parametrize("name", ["result.json", "trained.json", "made_of.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_record_that_a_full_disk_cut_is_as_if_it_were_not_there(name: str, content: str, tmp_path: Path) -> None:
    condition = tiny_scale().conditions[0]
    (tmp_path / condition.name).mkdir()
    (tmp_path / condition.name / name).write_text(content, encoding="utf-8")
    assert not is_finished(tmp_path, condition)
    if name != "made_of.json" or content != "{}":
        check_made_of(condition, tmp_path, protocol=PROTOCOL)


def test_a_condition_that_starts_from_an_unfinished_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match="resnet18_adv starts from resnet18_clean, which is not finished"):
        fit_words(tiny_scale().conditions[1], tmp_path, data_dir=None)


CHEAP = ("--rprofile.schedule={n_points: 2, per_decade: 4}", "--rprofile.protocol={n_pairs: 8}", "--data.n_test=200")
LEARNING = ("--data.n_train=4096", "--trainer.max_epochs=2", *CHEAP)
PERMUTED = (
    *("--data=PermutedLabelsShapesDataModule", "--data.n_train=128", "--trainer.max_epochs=60"),
    *("--trainer.check_val_every_n_epoch=30", *CHEAP),
)


@pytest.mark.slow
def test_a_broken_pipeline_is_caught(tmp_path: Path) -> None:
    # The same condition, once as it should be and once with its labels permuted: real trainings, some hundred steps.
    scale = tiny_scale()
    verdicts = []
    for name, options in (("right", LEARNING), ("broken", PERMUTED)):
        clean = Condition("resnet18_clean", "quickstart.yaml", options, "shapes4", ("shapes4", "shapes4train"))
        sets = replace(scale.sets, test="shapes4", train="shapes4train")
        one = replace(scale, conditions=(clean,), sets=sets)
        console = Console(file=io.StringIO(), width=200)
        findings, failed = check_claims(one, tmp_path / name, console=console, jobs=1, protocol={"n_pairs": 8})
        assert not failed
        verdicts.append({finding.claim: finding for finding in findings})
    right, broken = verdicts
    assert broken["C2"].verdict == "does not hold"
    assert right["C2"].verdict == "undecided"  # the other networks are not there, but nothing contradicts
    assert not right["C2"].measured[0].startswith("resnet18, shapes4: none"), right["C2"].measured
    assert right["C1"].measured[0].startswith("resnet18, step 0")


def test_train_is_the_fit_command(tmp_path: Path) -> None:
    condition = tiny_scale().conditions[0]
    words = fit_words(condition, tmp_path, data_dir=None, extra=("--trainer.max_steps=1",))
    trainer = train([*words, "--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"], "x")
    assert trainer.global_step == 1
    assert (tmp_path / "resnet18_clean" / "version_0" / "config.yaml").is_file()
