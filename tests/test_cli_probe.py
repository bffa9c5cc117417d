"""The command ``probe`` from end to end: table, files and figures, and errors of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lit_bump.__main__ import main

SMALL, BROKEN = (f"import:tests.probing.tiny_encoders.{name}" for name in ("small", "broken"))
LITTLE = ["--protocol.estimator=matched", "--protocol.n_pairs=3", "--images", "shapes4"]


def test_probe_prints_a_table_and_writes_tables_and_figures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--encoder", SMALL, "random:timm:test_vit@size=32", "--out", str(tmp_path), *LITTLE]) == 0
    said = capfd.readouterr().out
    assert "normalised with mean 0.5 0.5 0.5" in said
    assert "normalisation folded in" in said
    assert "verdict" in said
    written = [tmp_path / name for name in ("profiles.csv", "summary.csv", "figures/compare_shapes4.png")]
    assert all(path.is_file() and str(path) in said for path in written)


def test_an_encoder_that_fails_is_named_after_the_table_of_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ladder = "--protocol.etas=[0.01, 1.0, 500.0]"
    assert main(["probe", "--encoder", BROKEN, SMALL, "--out", str(tmp_path), *LITTLE, ladder]) == 2
    said = capfd.readouterr()
    assert "small" in said.out
    assert said.err.splitlines()[-1].startswith(
        "lit_bump: error: 1 of 2 profiles could not be measured; broken on shapes4"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--images", "shapes4"], "no --encoder given"),
        (["--encoder", "demo"], "no --images given"),
        (["--encoder", "dmo", "--images", "shapes4"], "no kind of encoder 'dmo'"),
        (["--encoder", "demo", "--imags", "shapes4"], "imags"),
        (["--encoder", SMALL, "--images", "shapes4", "--protocol", "papr"], "papr"),
        (["--encoder", SMALL, "--images", "shapes4", "--devices", "many"], "devices"),
    ],
)
def test_wrong_words_end_in_one_line(
    arguments: list[str], says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", *arguments, "--out", str(tmp_path / "out")]) == 2
    error = capfd.readouterr().err
    assert says in error.splitlines()[-1]
    assert "Traceback" not in error


def test_help_is_one_page(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["probe", "--help"])
    page = capfd.readouterr().out
    assert "--encoder" in page
    assert len(page.splitlines()) < 60


@pytest.mark.parametrize(("command", "says"), [("encoders", "timm:NAME"), ("probes", "val64:DIR")])
def test_what_there_is_is_listed(command: str, says: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 0
    assert says in capfd.readouterr().out
