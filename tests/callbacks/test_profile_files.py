"""The files of a run are one history, also after going back, in a new folder, and beside an older run."""

from __future__ import annotations

from pathlib import Path

from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.measure import Profile, load_formation
from tests.figures.drawn_profiles import drawn_profile


def profile(step: int) -> Profile:
    return drawn_profile(step=step).with_context(seconds=0.5)


def filled(folder: Path, *steps: int, label: str = "drawn6") -> ProfileFiles:
    files = ProfileFiles(folder, [label])
    for step in steps:
        files.add(label, step, profile(step))
    return files


def test_going_back_moves_later_files_aside_and_reads_the_rest(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1, 2, 4, 6)
    files = ProfileFiles(tmp_path, ["drawn6"])
    assert files.go_back_to(2, None) == tmp_path / "profiles.1"
    assert [path.name for path in sorted((tmp_path / "profiles.1" / "drawn6").iterdir())] == [
        "step_00000004.npz",
        "step_00000006.npz",
    ]
    assert files.go_back_to(2, None) is None
    assert files.formation("drawn6").steps == load_formation(tmp_path)["drawn6"].steps == (0, 1, 2)
    assert [row["step"] for row in files.rows()] == [0, 1, 2]


def test_a_new_folder_gets_copies_up_to_the_step(tmp_path: Path) -> None:
    filled(tmp_path / "a", 0, 1, 4)
    files = ProfileFiles(tmp_path / "b", ["drawn6"])
    assert files.go_back_to(1, tmp_path / "a") is None
    assert files.formation("drawn6").steps == (0, 1)
    assert load_formation(tmp_path / "a")["drawn6"].steps == (0, 1, 4)


def test_an_earlier_folder_that_is_gone_is_no_fault(tmp_path: Path) -> None:
    files = ProfileFiles(tmp_path / "b", ["drawn6"])
    assert files.go_back_to(1, tmp_path / "gone") is None
    assert files.rows() == []


def test_an_older_run_is_moved_aside_whole_and_again(tmp_path: Path) -> None:
    for number in (1, 2):
        files = filled(tmp_path, 0, number)
        files.write_table(files.rows())
        assert files.set_aside() == tmp_path / f"profiles.{number}"
        assert (tmp_path / f"profiles.{number}" / "formation.csv").exists()
    assert not (tmp_path / "profiles").exists()
    assert ProfileFiles(tmp_path, ["x"]).set_aside() is None
