"""The table: one row a step and probe set, undefined values empty, other rows untouched, never half written."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lit_bump.callbacks.formation_table import COLUMNS, Row, formation_row, read_table, write_table
from lit_bump.errors import LitBumpError
from lit_bump.measure import Protocol
from tests.figures.drawn_profiles import drawn_profile


def row(step: int, probe: str = "p", height: float = 0.0) -> Row:
    return formation_row(drawn_profile(height, step=step).with_context(probe=probe, seconds=1.5, share=0.25))


def test_a_row_has_the_bump_and_the_cost() -> None:
    flat, high = row(3), row(4, height=9.0)
    assert (flat["verdict"], high["verdict"]) == ("none", "bump")
    assert math.isnan(flat["eta"])
    assert high["eta"] == pytest.approx(4.0, rel=0.1)
    assert high["max_r_low"] < high["max_r"] < high["max_r_high"]
    assert (high["n_images"], high["n_kept"], high["seconds"], high["share"]) == (6, 6, 1.5, 0.25)
    assert set(high) == set(COLUMNS)


def test_a_raised_standard_error_is_that_of_the_middle_image_at_the_worst_rung() -> None:
    profile = drawn_profile(9.0, step=1)
    error = profile.ratio * np.linspace(0.01, 0.2, len(profile.etas))
    error[0] = 0.9 * profile.ratio[0]  # one bad image does not speak for all
    profile = replace(profile, standard_error=error, protocol=Protocol.quick(), gave_up="precision")
    profile = profile.with_context(probe="p")
    assert formation_row(profile)["thinned_se"] == pytest.approx(0.2)
    assert math.isnan(formation_row(replace(profile, gave_up=""))["thinned_se"])
    assert math.isnan(formation_row(replace(profile, protocol=Protocol.paper()))["thinned_se"])


def test_rows_come_back_as_text_in_order_with_undefined_values_empty(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "formation.csv"
    write_table(path, [row(10), row(2, height=9.0)])
    lines = read_table(path)
    assert [line["step"] for line in lines] == ["2", "10"]
    assert float(lines[0]["eta"]) == pytest.approx(4.0, rel=0.1)
    assert lines[1]["eta"] == ""
    with path.open(newline="") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS


def test_rows_of_other_probe_sets_stay(tmp_path: Path) -> None:
    path = tmp_path / "formation.csv"
    write_table(path, [row(0, "a"), row(5, "a")])
    write_table(path, [row(0, "b")])
    write_table(path, [row(0, "a")])
    assert [(line["step"], line["probe"]) for line in read_table(path)] == [("0", "a"), ("0", "b")]


def test_a_failing_write_leaves_the_old_table_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "formation.csv"
    write_table(path, [row(0)])
    before = path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_table(path, [row(0), row(1)])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_table_is_named_when_read_and_made_anew_when_written(tmp_path: Path) -> None:
    path = tmp_path / "formation.csv"
    path.write_bytes(b"step,probe\n\xff\xfe,p\n")
    with pytest.raises(LitBumpError, match=r"is no table .* remove it"):
        read_table(path)
    write_table(path, [])
    assert read_table(path) == []
