"""Laws of reading series: exact numbers, the last written of a step, and no fault that spreads."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_bump.callbacks.profile_tensorboard import TENSOR_ROWS, VERDICTS, profile_table
from lit_bump_tensorboard import series
from lit_bump_tensorboard.series import (
    FIRST_ROWS,
    Series,
    SeriesReader,
    described,
    detailed,
    plain,
    point_of,
    row_names,
)
from tests.figures.drawn_profiles import drawn_profile
from tests.lit_bump_tensorboard.tab_server import LADDER, ROWS, table


@given(st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_numbers_come_back_exactly(values: list[float]) -> None:
    shown = json.loads(json.dumps(plain(np.array(values, dtype=np.float32)), allow_nan=False))
    for value, found in zip(values, shown, strict=True):
        if np.isfinite(value):
            assert np.float32(found) == np.float32(value)
        else:
            assert found is None


def test_the_writers_rows_are_the_readers() -> None:
    assert TENSOR_ROWS[:5] == FIRST_ROWS
    assert series.VERDICTS == VERDICTS
    profile = drawn_profile(5.0, n_images=6, n_lost=2)
    point = point_of(3, 1.0, profile_table(profile), list(TENSOR_ROWS))
    np.testing.assert_allclose(point.rows["median"], profile.median(), rtol=1e-6)
    np.testing.assert_array_equal(point.rows["n_kept"], profile.n_kept())
    np.testing.assert_allclose(point.images, profile.ratio, rtol=1e-6)
    bump = profile.bump()
    assert point.shown["verdict"] == "bump"
    assert point.shown["height"] == pytest.approx(bump.height, rel=1e-6)
    assert point.shown["log10_peak_eta"] == pytest.approx(bump.log10_eta, rel=1e-6)
    assert point.shown["median"][0] is None


@pytest.mark.parametrize(
    ("median", "verdict"),
    [
        (np.full(17, 1.0), "none"),
        (1 + 3 * np.exp(-((LADDER - 0.2) ** 2)), "bump"),
        (np.geomspace(1, 5, 17), "rising"),
        (np.full(17, np.nan), "undefined"),
    ],
)
def test_files_of_version_1_have_a_verdict_too(median: np.ndarray, verdict: str) -> None:
    rows = np.stack([LADDER, median, median, median, np.full(17, 8.0)])
    point = point_of(0, 0.0, rows, list(FIRST_ROWS))
    assert point.shown["verdict"] == verdict
    assert (point.shown["log10_peak_eta"] is not None) == (verdict == "bump")


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(17), np.zeros((3, 17)), np.zeros((10, 0)), np.array([[b"x"] * 17] * 10), np.zeros((10, 17)),
        np.full((10, 17), np.nan), np.zeros((2, 10, 17)),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"no table of a profile|does not increase"):
        point_of(0, 0.0, values, list(ROWS))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"rows": 3}', b'{"rows": ["x"]}', b"\xff", b"null", b"[" * 100_000]
)
def test_odd_metadata_falls_back_to_version_1(content: bytes) -> None:
    assert row_names(content)[0] == list(FIRST_ROWS)


def datum(step: int, wall_time: float, values: np.ndarray) -> Any:
    """Return what a data provider hands over."""
    return SimpleNamespace(step=step, wall_time=wall_time, numpy=values)


class Provider:
    """A data provider whose tensors are given; reading a broken one spoils the whole answer, as TensorBoard's does."""

    def __init__(self, held: dict[str, list[Any] | Exception]) -> None:
        self.held = held
        self.n_reads = 0

    def list_tensors(self, _context: Any, **_: Any) -> Any:
        """Return the newest step of each series."""
        facts = {}
        for tag, data in self.held.items():
            times = [one.wall_time for one in data] if isinstance(data, list) else [1.0]
            said = json.dumps({"probe": tag, "rows": list(ROWS)}).encode()
            facts[tag] = SimpleNamespace(max_step=len(times), max_wall_time=max(times), plugin_content=said)
        return {"run": facts}

    def read_tensors(self, _context: Any, *, run_tag_filter: Any, downsample: int, **_: Any) -> Any:
        """Return the tensors of some series."""
        assert downsample > 1000
        self.n_reads += 1
        for tag in run_tag_filter.tags:
            if isinstance(self.held[tag], Exception):
                raise self.held[tag]  # type: ignore[misc]
        return {"run": {tag: self.held[tag] for tag in run_tag_filter.tags}}


def test_steps_are_unique_and_sorted_and_the_last_written_counts() -> None:
    data = [
        datum(s, t, table(s, height=h)) for s, t, h in ((0, 1, 8), (100, 2, 8), (900, 3, 8), (100, 4, 2), (500, 5, 2))
    ]
    (one,) = SeriesReader(Provider({"a": data})).changes(None, "", 0)["series"]
    assert one["all_steps"] == [0, 100, 500, 900]
    assert [point["step"] for point in one["points"]] == [0, 100, 500, 900]
    assert one["points"][1]["median"] == plain(table(100, height=2)[1])


def test_only_what_is_new_is_sent_and_read() -> None:
    provider = Provider({"a": [datum(0, 1.0, table(0)), datum(5, 2.0, table(5))], "b": [datum(0, 1.5, table(0))]})
    reader = SeriesReader(provider)
    first = reader.changes(None, "", 0)
    assert sum(len(one["points"]) for one in first["series"]) == 3
    assert reader.changes(None, "", first["now"])["series"][0]["points"] == []
    assert provider.n_reads == 1
    provider.held["a"].append(datum(9, 3.0, table(9)))  # type: ignore[union-attr]
    second = reader.changes(None, "", first["now"])
    assert [[point["step"] for point in one["points"]] for one in second["series"]] == [[9], []]
    assert second["series"][0]["all_steps"] == [0, 5, 9]


def test_a_series_that_is_read_late_is_sent_however_old_it_is() -> None:
    provider = Provider({"new": [datum(0, 100.0, table(0))]})
    reader = SeriesReader(provider)
    first = reader.changes(None, "", 0)
    provider.held["old"] = [datum(0, 50.0, table(0)), datum(5, 60.0, table(5))]
    second = reader.changes(None, "", first["now"])
    assert [len(one["points"]) for one in second["series"]] == [0, 2]
    assert all(not one["points"] for one in reader.changes(None, "", second["now"])["series"])


def test_a_step_that_is_written_again_is_sent_again() -> None:
    provider = Provider({"a": [datum(0, 1.0, table(0)), datum(5, 2.0, table(5))]})
    reader = SeriesReader(provider)
    first = reader.changes(None, "", 0)
    provider.held["a"].append(datum(5, 3.0, table(5, height=2)))  # type: ignore[union-attr]
    (one,) = reader.changes(None, "", first["now"])["series"]
    assert [point["step"] for point in one["points"]] == [5]


@pytest.mark.parametrize("value", [1e-320, 5e-324, -1e-300, 1.7e308])
def test_extreme_numbers_spoil_no_answer(value: float) -> None:
    values = table(1).astype(np.float64)
    values[1, 0] = value
    answer = SeriesReader(Provider({"a": [datum(0, float("inf"), values), datum(1, float("nan"), values)]}))
    json.dumps(answer.changes(None, "", 0), allow_nan=False)


def test_a_broken_series_marks_itself_alone() -> None:
    bad = [datum(0, 1.0, table(0)), datum(1, 2.0, np.zeros(3))]
    held: dict[str, Any] = {"good": [datum(0, 1.0, table(0))], "cut": ValueError("truncated"), "odd": bad}
    found = {one["tag"]: one for one in SeriesReader(Provider(held)).changes(None, "", 0)["series"]}
    assert found["good"]["error"] is None
    assert len(found["good"]["points"]) == 1
    assert found["cut"]["error"] == "a tensor of this series cannot be read"
    assert found["odd"]["error"] == "1 of 2 profiles of this series cannot be read"
    assert len(found["odd"]["points"]) == 1


def test_a_run_that_vanishes_and_comes_back_is_sent_whole() -> None:
    provider = Provider({"a": [datum(0, 1.0, table(0)), datum(5, 2.0, table(5))], "b": [datum(0, 1.5, table(0))]})
    reader = SeriesReader(provider)
    now = reader.changes(None, "", 0)["now"]
    kept = provider.held.pop("a")
    now = reader.changes(None, "", now)["now"]
    provider.held["a"] = kept
    found = {one["tag"]: one for one in reader.changes(None, "", now)["series"]}
    assert [point["step"] for point in found["a"]["points"]] == [0, 5]


def test_a_fault_that_passes_is_forgotten() -> None:
    provider = Provider({"a": OSError("away for a moment")})
    reader = SeriesReader(provider)
    assert reader.changes(None, "", 0)["series"][0]["error"]
    provider.held["a"] = [datum(0, 1.0, table(0))]
    (one,) = reader.changes(None, "", 0)["series"]
    assert (one["error"], one["all_steps"]) == (None, [0])


def test_details_hold_all_rows_and_images() -> None:
    one = Series("run", "tag", "probe", {3: point_of(3, 1.0, table(3, n_images=5), list(ROWS))})
    found = detailed(one, 3)
    assert found is not None
    assert set(found["rows"]) == set(ROWS) - {"log10_eta", "bump"}
    assert len(found["images"]) == 5
    assert detailed(one, 4) is None


def test_ladders_are_sent_once_each() -> None:
    other = table(1)
    other[0] += 1
    points = {0: point_of(0, 1.0, table(0), list(ROWS)), 1: point_of(1, 2.0, other, list(ROWS))}
    found = described([Series("r", "t", "p", points), Series("r", "u", "q", dict(points))])
    assert len(found["ladders"]) == 2
    assert [point["ladder"] for point in found["series"][1]["points"]] == [0, 1]
