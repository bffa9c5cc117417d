"""The command's own words: its help, its plan, and one line for every wrong option."""

from __future__ import annotations

from pathlib import Path

import pytest

from lit_bump.__main__ import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scale", "lapto"], "there is no scale 'lapto' (did you mean 'laptop'?)"),
        (["--only", "C8"], "there is no claim 'C8'"),
        (["--jobs", "0"], "jobs is 0; it must be at least 1"),
        (["--formats", "pgn"], "'pgn'"),
        (["--scale", "cifar-small"], "--scale cifar-small needs CIFAR-10: give its folder, --data_dir DIR"),
        (["--scale", "paper", "--dry-run", "--data_dir", "nowhere"], "is no folder: give the one that holds CIFAR-10"),
        (["--scal", "laptop"], "no option 'scal' (did you mean 'scale'?)"),
    ],
)
def test_wrong_option_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["claims", *words]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("lit_bump: error: ")
    assert message in last
    assert not list(tmp_path.iterdir())


def test_out_that_is_a_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.touch()
    assert main(["claims", "--out", str(path)]) == 2
    assert f"--out {str(path)!r} cannot be written to" in capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.parametrize("scale", ["laptop", "cifar-small", "paper"])
def test_plan_names_every_condition_and_trains_nothing(
    scale: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["claims", "--scale", scale, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "resnet18_clean.yaml" in printed or "quickstart.yaml" in printed
    assert " hours on " in printed
    assert all(len(line.split()) > 10 for line in printed.splitlines() if "lit_bump fit" in line)  # whole, to be copied
    assert not list(tmp_path.iterdir())


def test_help_is_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["claims", "--help"])
    printed = capsys.readouterr().out
    assert "--data_dir" in printed
    assert len(printed.splitlines()) < 40
