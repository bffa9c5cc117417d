"""``figures``: draws what the runs hold, writes whole files, prints their paths alone, and ends errors in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lit_bump.__main__ import main
from tests.conftest import RunPython
from tests.drawn_runs import drawn_run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, made the working folder, with a clean run and one of permuted labels in runs/."""
    monkeypatch.chdir(tmp_path)
    drawn_run(tmp_path / "runs", "clean", probes={"shapes6": [0.0, 9.0], "shapes6b1": [0.0, 12.0]})
    drawn_run(tmp_path / "runs", "labels", "permuted labels")
    return tmp_path


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the line with which a command ends that cannot be done."""
    assert main(["figures", *arguments]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert "Traceback" not in printed.err
    return printed.err.splitlines()[-1].removeprefix("lit_bump: error: ")


def test_all_draws_what_there_is_and_says_what_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures", "runs/clean", "runs/labels"]) == 0
    printed = capsys.readouterr()
    written = ["figure_1c.png", "figure_2b.png", "figure_2c.png", "profiles.png"]
    assert printed.out.splitlines() == [str(Path("figures", name)) for name in written]
    assert sorted(path.name for path in (folder / "figures").iterdir()) == written
    assert "left out 2a: no network has an adversarially trained run" in printed.err


def test_formats_and_folder_are_as_asked(folder: Path) -> None:
    done = ["figures", "runs/clean", "--figure", "1c", "profile", "--formats", "svg", "pdf", "--out", "a/b"]
    assert main(done) == 0
    names = {path.name for path in (folder / "a" / "b").iterdir()}
    assert names == {"figure_1c.svg", "figure_1c.pdf", "profiles.svg", "profiles.pdf"}


def test_a_run_given_twice_is_drawn_once(folder: Path) -> None:
    assert main(["figures", "runs/labels", "runs/labels/version_0", "--figure", "2c", "--formats", "svg"]) == 0
    drawn = (folder / "figures" / "figure_2c.svg").read_text(encoding="utf-8")
    assert "<!-- permuted labels -->" in drawn
    assert "labels/version_0" not in drawn  # there is nothing to tell it apart from


def test_a_run_without_profiles_is_named_and_passed_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn_run(folder / "runs", "bare", probes={})
    assert main(["figures", "runs/clean", "runs/bare", "--figure", "1c"]) == 0
    assert "bare/version_0: it holds no profiles" in " ".join(capsys.readouterr().err.split())
    assert "measure first, with python -m lit_bump measure RUN" in error(capsys, "runs/bare")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no run given; name its folder, such as runs/quickstart"),
        (["runs/clen"], "there is no run 'runs/clen' (did you mean 'clean'?)"),
        (["runs/clean", "--figure", "1d"], "no figure '1d'"),
        (["runs/clean", "--figure", "2a"], "figure 2a: no network has an adversarially trained run"),
        (["runs/clean", "--probe", "shape6"], "no run was measured on 'shape6' (did you mean 'shapes6'?)"),
        (["runs/clean", "--formats", "pgn"], "no format 'pgn' for figures (did you mean 'png'?)"),
        (["runs/clean", "--band", "quartile"], "did you mean 'quartiles'?"),
        (["runs/clean", "--fgure", "1c"], "no option 'fgure' (did you mean 'figure'?)"),
        (["runs/clean", "--out", "runs/clean/version_0/config.yaml"], "cannot be written to"),
    ],
)
def test_a_wrong_word_ends_in_one_line_with_the_cure(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in error(capsys, *arguments)
    assert not (folder / "figures").exists()


def test_a_damaged_profile_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "runs/clean/version_0/profiles/shapes6/step_00000000.npz"
    path.write_bytes(b"half")
    assert "step_00000000.npz is not a saved profile that can be read" in error(capsys, "runs/clean")


def test_help_is_one_page_and_loads_no_torch(run_python: RunPython) -> None:
    program = (
        "import sys\nfrom lit_bump.__main__ import main\n"
        "try:\n    main(['figures', '--help'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "assert not {'torch', 'lightning', 'matplotlib'} & set(sys.modules)"
    )
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 20 < len(lines) <= 50
    assert max(map(len, lines)) <= 120
    for word in ("1c", "2a", "2b", "2c", "profile", "--probe", "--out", "--formats", "--band"):
        assert word in done.stdout


def test_figures_need_no_lightning(folder: Path, run_python: RunPython) -> None:
    program = (
        "import sys\nfrom lit_bump.__main__ import main\ncode = main(['figures', 'runs/clean', '--figure', '1c'])\n"
        "assert not {'lightning', 'matplotlib.pyplot'} & set(sys.modules)\nsys.exit(code)"
    )
    done = run_python("-c", program, cwd=folder)
    assert done.returncode == 0, done.stderr
