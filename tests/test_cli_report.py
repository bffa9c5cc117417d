"""The report: the numbers of the files, in one page that needs nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from lit_bump.__main__ import main
from lit_bump.callbacks.profile_tensorboard import TENSOR_ROWS, profile_table
from lit_bump.measure import load_formation
from lit_bump.measure.formation import step_file
from tests.figures.drawn_profiles import drawn_profile


def run_of(folder: Path, *heights: float) -> Path:
    """Write a run with made-up profiles.

    Returns:
        Its folder.

    """
    for step, height in enumerate(heights):
        drawn_profile(height, step=step, n_lost=1).save(step_file(folder, "shapes8", step))
    (folder / "config.yaml").write_text("{}\n")
    return folder


def test_the_page_holds_the_numbers_of_the_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run, out = run_of(tmp_path / "run" / "version_0", 0.0, 3.0, 6.0), tmp_path / "deep" / "report.html"
    assert main(["report", str(run), "-o", str(out)]) == 0
    assert capfd.readouterr().out.strip() == str(out)
    page = out.read_text(encoding="utf-8")
    data = json.loads(re.findall(r'id="lit-bump-data">(.*?)</script>', page, re.DOTALL)[0])
    (series,) = data["changes"]["series"]
    formation = load_formation(run)["shapes8"]
    assert series["all_steps"] == [0, 1, 2]
    for point, profile, bump in zip(series["points"], formation.profiles, formation.bumps(), strict=True):
        found = np.array([np.nan if value is None else value for value in point["median"]])
        np.testing.assert_allclose(found, profile.median(), rtol=1e-6)
        assert point["verdict"] == bump.verdict
        assert point["height"] == pytest.approx(bump.height, rel=1e-6)
    for detail, profile in zip(data["details"], formation.profiles, strict=True):
        expected = profile_table(profile)
        for place, name in enumerate(TENSOR_ROWS[:-1]):
            row = detail["log10_eta"] if name == "log10_eta" else detail["rows"][name]
            np.testing.assert_array_equal(np.array(row, dtype=np.float32), expected[place], err_msg=name)
        np.testing.assert_array_equal(np.array(detail["images"], dtype=np.float32), expected[len(TENSOR_ROWS) :])
    assert len(data["details"]) == 3
    assert "Content-Security-Policy" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [([], "no run given"), (["nowhere"], "nowhere"), (["--outt", "x"], "outt")],
)
def test_errors_are_one_line(arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *arguments]) == 2
    error = capfd.readouterr().err
    assert says in error.splitlines()[-1]
    assert "Traceback" not in error


def test_runs_of_one_name_are_both_there(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / place / "run" / "version_0", height) for place, height in (("a", 1.0), ("b", 5.0))]
    out = tmp_path / "report.html"
    assert main(["report", *map(str, runs), "-o", str(out)]) == 0
    data = json.loads(re.findall(r'id="lit-bump-data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL)[0])
    assert [one["run"] for one in data["changes"]["series"]] == [str(run) for run in runs]


def test_a_run_without_profiles_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("{}\n")
    assert main(["report", str(tmp_path)]) == 2
    assert "measure first" in capfd.readouterr().err
