"""Every example runs, with the real library that it shows, and leaves profiles that can be read."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lit_bump import Profile, load_formation

pytestmark = pytest.mark.slow
QUICK = ("--target_se", "0.5")
FOREIGN = pytest.mark.filterwarnings("ignore")  # what these libraries warn of is not ours


def example(repository: Path, name: str) -> ModuleType:
    """Import an example from its file.

    Returns:
        The module.

    """
    spec = importlib.util.spec_from_file_location(name, repository / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected_steps(total: int) -> tuple[int, ...]:
    from lit_bump import LogSteps

    return LogSteps().targets(total)


@FOREIGN
@pytest.mark.parametrize("name", ["plain_loop", "fabric_loop", "timm_loop"])
def test_loops_measure_what_is_scheduled(repository: Path, tmp_path: Path, name: str) -> None:
    example(repository, name).main(["--out", str(tmp_path), "--steps", "4", *QUICK])
    formation = load_formation(tmp_path)["shapes8"]
    assert formation.steps == expected_steps(4)
    assert (tmp_path / "profiles" / "shapes8" / "formation.png").is_file()
    assert (tmp_path / "profiles" / "formation.csv").is_file()
    assert formation.profiles[0].encoder_digest != formation.profiles[-1].encoder_digest


@FOREIGN
def test_the_average_is_measured_apart(repository: Path, tmp_path: Path) -> None:
    example(repository, "torchvision_loop").main(["--out", str(tmp_path), "--steps", "3", *QUICK])
    raw, average = (load_formation(tmp_path / name)["shapes8"] for name in ("raw", "average"))
    assert raw.steps == average.steps == (0, 1, 3)
    assert raw.profiles[0].encoder_digest == average.profiles[0].encoder_digest
    assert raw.profiles[-1].encoder_digest != average.profiles[-1].encoder_digest


@FOREIGN
def test_a_stopped_loop_goes_on(repository: Path, tmp_path: Path) -> None:
    loop = example(repository, "plain_loop")
    options = ("--images", "128", *QUICK)  # two steps an epoch
    loop.main(["--out", str(tmp_path / "whole"), "--steps", "6", *options])
    loop.main(["--out", str(tmp_path / "parts"), "--steps", "4", *options])
    loop.main(["--out", str(tmp_path / "parts"), "--steps", "6", *options])
    whole, parts = (load_formation(tmp_path / name)["shapes8"] for name in ("whole", "parts"))
    assert whole.steps == (0, 1, 2, 3, 6)
    assert parts.steps == (0, 1, 2, 3, 4, 6)  # 4 was the last, once
    for i in range(4):
        np.testing.assert_array_equal(parts.profiles[i].ratio, whole.profiles[i].ratio)
    events = list((tmp_path / "parts").glob("events*"))
    assert len(events) == 2


@FOREIGN
def test_the_trainer_of_transformers(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    example(repository, "huggingface_trainer").main(["--out", str(tmp_path), "--steps", "3", *QUICK])
    assert load_formation(tmp_path)["shapes8"].steps == (0, 1, 2, 3)


@FOREIGN
def test_four_loggers_at_once(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    pytest.importorskip("mlflow")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    example(repository, "loggers").main(["--out", str(tmp_path), "--steps", "3", *QUICK])
    profiles = load_formation(next((tmp_path / "tensorboard").glob("*/version_0")))["shapes8"]
    assert profiles.steps == (0, 1, 2, 3)
    heights = [bump.height for bump in profiles.bumps()]
    metric = next((tmp_path / "mlruns").rglob("bump/max_r/shapes8"))
    assert [float(line.split()[1]) for line in metric.read_text().splitlines()] == pytest.approx(heights, rel=1e-5)
    table = next((tmp_path / "csv").rglob("metrics.csv")).read_text()
    assert "bump/max_r/shapes8" in table.splitlines()[0]
    import wandb

    wandb.finish()  # else it writes in its own time
    history = wandb_history(next(tmp_path.rglob("*.wandb")))
    found = [(row["trainer/global_step"], row["bump/max_r/shapes8"]) for row in history if "bump/max_r/shapes8" in row]
    assert [step for step, _ in found] == [0, 1, 2, 3]
    assert [height for _, height in found] == pytest.approx(heights, rel=1e-5)


def wandb_history(path: Path) -> list[dict[str, Any]]:
    """Read what W&B has written offline.

    Returns:
        One row a step.

    """
    import json

    from wandb.proto import wandb_internal_pb2

    new_record: Any = wandb_internal_pb2.Record  # type: ignore[attr-defined,unused-ignore]

    content, rows, place, whole = path.read_bytes(), [], 7, b""
    while place + 7 <= len(content):  # blocks of 32 KiB; a record's parts have a check sum, a length and a type
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # all of it, or its last part
            record = new_record()
            record.ParseFromString(whole)
            whole = b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
    return rows


@FOREIGN
def test_the_metric(repository: Path, tmp_path: Path) -> None:
    example(repository, "metric").main(["--out", str(tmp_path), "--images", "5", *QUICK])
    assert Profile.load(tmp_path / "profile.npz").n_images == 5
    assert (tmp_path / "profile.png").stat().st_size > 5_000
