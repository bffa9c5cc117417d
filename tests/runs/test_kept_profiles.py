"""A formation holds one protocol, one set of images and one encoder; nothing saved is ever lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, measure_profile
from lit_bump.measure.extended_ladder import further_etas
from lit_bump.measure.formation import step_file
from lit_bump.probes import ProbeSet
from lit_bump.runs.kept_profiles import KeptProfiles, Task

SHORT = Protocol((0.1, 1.0, 10.0), n_pairs=2, n_jvp=2)
PROBE = ProbeSet.from_tensor(torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)), name="p")
TASK = Task(PROBE, SHORT, "forward_features", extend=False)
OTHERS = {
    "images": (replace(TASK, probe=ProbeSet("p", PROBE.images.flip(0))), "other images"),
    "encoder": (replace(TASK, encoder="net"), r"another encoder \(forward_features, now net\)"),
    "pairs": (replace(TASK, protocol=replace(SHORT, n_pairs=3)), r"another protocol \(n_pairs 2, now 3\)"),
    "ladder": (
        replace(TASK, protocol=replace(SHORT, etas=(0.1, 2.0))),
        r"another protocol \(etas 3 rungs 0\.1\.\.10, now 2",
    ),
    "rungs": (replace(TASK, protocol=replace(SHORT, etas=(0.1, 2.0, 10.0))), r"another protocol \(etas\)"),
}


def profile_at(step: int, **changes: Any) -> Profile:
    profile = measure_profile(nn.Flatten(), PROBE.images, SHORT)
    return replace(profile, **changes).with_context(step=step, probe="p", encoder="forward_features")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run's folder with profiles of two steps."""
    kept = KeptProfiles(tmp_path, {"p": TASK}, overwrite=False)
    for step in (0, 5):
        kept.add("p", step, profile_at(step))
    return tmp_path


def test_what_is_asked_for_stands(folder: Path) -> None:
    kept = KeptProfiles(folder, {"p": TASK}, overwrite=True)
    assert kept.formation("p", (5,)).steps == (5,)
    assert kept.get("p", 5) is not None
    assert kept.get("p", 3) is None
    assert not (folder / "profiles.1").exists()


@pytest.mark.parametrize(("task", "message"), OTHERS.values(), ids=OTHERS)
def test_what_differs_is_refused_and_named(task: Task, message: str, folder: Path) -> None:
    with pytest.raises(LitBumpError, match=rf"step_00000000\.npz was measured with {message}.*; give --name X"):
        KeptProfiles(folder, {"p": task}, overwrite=False)


@pytest.mark.parametrize(("task", "message"), OTHERS.values(), ids=OTHERS)
def test_what_differs_is_moved_where_it_may_be_overwritten(task: Task, message: str, folder: Path) -> None:
    old = step_file(folder, "p", 0).read_bytes()
    kept = KeptProfiles(folder, {"p": task}, overwrite=True)
    assert (kept.get("p", 0), kept.get("p", 5)) == (None, None)
    assert (folder / "profiles.1" / "p" / "step_00000000.npz").read_bytes() == old
    assert (folder / "profiles.1" / "p" / "step_00000005.npz").is_file()


def test_each_time_gets_a_folder_of_its_own(folder: Path) -> None:
    other = OTHERS["pairs"][0]
    KeptProfiles(folder, {"p": other}, overwrite=True).add("p", 0, profile_at(0, protocol=other.protocol))
    KeptProfiles(folder, {"p": TASK}, overwrite=True)
    assert (folder / "profiles.2" / "p" / "step_00000000.npz").is_file()


def test_further_rungs_stand_where_they_may_follow(folder: Path) -> None:
    short = replace(SHORT, etas=SHORT.etas[:2])
    assert SHORT.etas[2:] == pytest.approx(further_etas(short.etas, 1))
    longer = replace(short, etas=short.etas + further_etas(short.etas, 1))
    longer_one = measure_profile(nn.Flatten(), PROBE.images, longer).with_context(step=7, probe="q", encoder="net")
    longer_one.save(step_file(folder, "q", 7))
    task = Task(PROBE, short, "net", extend=True)
    assert KeptProfiles(folder, {"q": task}, overwrite=False).get("q", 7) is not None
    with pytest.raises(LitBumpError, match="1 further rungs, which --extend true takes"):
        KeptProfiles(folder, {"q": replace(task, extend=False)}, overwrite=False)


def test_a_missing_row_is_written_again(folder: Path) -> None:
    table = folder / "profiles" / "formation.csv"
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(lines[:-1]), encoding="utf-8")
    KeptProfiles(folder, {"p": TASK}, overwrite=False)
    assert table.read_text(encoding="utf-8") == "".join(lines)


def test_a_damaged_file_is_named(folder: Path) -> None:
    step_file(folder, "p", 5).write_bytes(b"junk")
    with pytest.raises(LitBumpError, match=r"step_00000005\.npz is not a saved profile"):
        KeptProfiles(folder, {"p": TASK}, overwrite=True)
