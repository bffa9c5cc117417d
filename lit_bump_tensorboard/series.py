"""Series of response profiles, from the tensors of event files to plain values that a page can draw.

Needs NumPy, and TensorBoard's data provider where there is one. A tensor is ``(row, rung)``; its first row is log10
eta, so that every step reads correctly by itself. What cannot be read marks its own series and no other.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

PLUGIN = "lit_bump"
FIRST_ROWS = ("log10_eta", "median", "q25", "q75", "n_kept")  # of version 1, which has no more
VERDICTS = ("undefined", "none", "rising", "bump")
_KEEP_ALL = 100_000  # steps asked of the provider; 0 would mean none here
_MARGIN = 1.1  # by which a peak exceeds plateau and last rung, where a file does not hold the verdict


@dataclass
class Point:
    """Hold one profile of a series.

    Args:
        step: optimiser step.
        wall_time: when it was written, seconds.
        rows: by name, each a value a rung; NaN where undefined.
        images: ratio of every image and rung; may be empty.
        arrived: when it was first read, as the reader counts; 0 where nobody asks for what is new.

    """

    step: int
    wall_time: float
    rows: Mapping[str, np.ndarray]
    images: np.ndarray
    arrived: float = 0.0

    @cached_property
    def ladder(self) -> tuple[float | None, ...]:
        """Log10 eta as a page takes it."""
        return _ladder(self.rows["log10_eta"].tobytes())

    @cached_property
    def shown(self) -> dict[str, Any]:
        """What the page draws of every point, without its ladder; made once, asked for by every page that opens."""
        height, place, verdict = _bump(self)
        median, kept = self.rows["median"], self.rows["n_kept"]
        numbers = plain(np.concatenate([median, kept, [height, place, _entry(self, 2)]]))  # at once: calls are dear
        return {
            "step": self.step,
            "wall_time": self.wall_time,
            "median": numbers[: len(median)],
            "n_kept": numbers[len(median) : -3],
            "height": numbers[-3],
            "log10_peak_eta": numbers[-2],
            "width": numbers[-1],
            "verdict": verdict,
        }


@dataclass
class Series:
    """Hold the profiles of one run on one probe set.

    Args:
        run: name of the run.
        tag: of the series.
        probe: name of the probe set.
        points: by step.
        error: what is wrong with it, empty where nothing is.

    """

    run: str
    tag: str
    probe: str
    points: dict[int, Point] = field(default_factory=dict)
    error: str = ""


def point_of(step: int, wall_time: float, table: np.ndarray, names: list[str]) -> Point:
    """Read one tensor.

    Args:
        step: of its event.
        wall_time: likewise.
        table: ``(row, rung)``.
        names: of the rows that come before the images'.

    Returns:
        The point.

    Raises:
        ValueError: if the tensor is no table of numbers on a ladder.

    """
    if table.ndim != 2 or table.dtype.kind not in "fi" or table.shape[0] < len(FIRST_ROWS) or not table.shape[1]:
        raise ValueError(f"a tensor of {table.dtype} and shape {table.shape} is no table of a profile")
    with np.errstate(all="ignore"):  # of NaNs that signal
        table = table.astype(np.float64)
    names = names[: table.shape[0]]
    rows = dict(zip(names, table, strict=False))
    ladder = rows.get("log10_eta")
    if ladder is None or not np.isfinite(ladder).all() or (ladder[1:] <= ladder[:-1]).any():
        raise ValueError("its ladder does not increase")
    return Point(step, wall_time if math.isfinite(wall_time) else 0.0, rows, table[len(names) :])


def row_names(content: bytes) -> tuple[list[str], str]:
    """Return the names of the rows, and of the probe set.

    Args:
        content: what the writer said of its tensors, JSON.

    Returns:
        Names of the rows before the images', and the probe set's (empty where it is not said).

    """
    try:
        said = json.loads(content.decode())
        names = [str(name) for name in said.get("rows", FIRST_ROWS)]
        probe = str(said.get("probe", ""))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return list(FIRST_ROWS), ""
    return (names if tuple(names[:5]) == FIRST_ROWS else list(FIRST_ROWS)), probe


def described(series: Iterable[Series], since: float = 0.0) -> dict[str, Any]:
    """Return series as the page takes them.

    Args:
        series: in the order to show.
        since: ``now`` of an earlier answer: points that were in it are left out, their steps are not; 0 for all.

    Returns:
        Plain values, None where undefined.

    """
    ladders: dict[tuple[float | None, ...], int] = {}
    shown, newest = [], since
    for one in series:
        points = []
        for point in (one.points[step] for step in sorted(one.points)):
            newest = max(newest, point.arrived)
            if since and point.arrived <= since:
                continue
            points.append({**point.shown, "ladder": ladders.setdefault(point.ladder, len(ladders))})
        facts = {"run": one.run, "tag": one.tag, "probe": one.probe or one.tag, "error": one.error or None}
        shown.append({**facts, "all_steps": sorted(one.points), "points": points})
    return {"version": 1, "now": newest, "ladders": [list(ladder) for ladder in ladders], "series": shown}


def detailed(one: Series, step: int) -> dict[str, Any] | None:
    """Return all that is known of one point.

    Args:
        one: its series.
        step: its step.

    Returns:
        Plain values, None where undefined; None for the whole where there is no such point.

    """
    point = one.points.get(step)
    if point is None:
        return None
    rows = {name: plain(values) for name, values in point.rows.items() if name not in ("log10_eta", "bump")}
    images = [plain(values) for values in point.images]
    ladder = plain(point.rows["log10_eta"])
    return {"run": one.run, "tag": one.tag, "step": step, "log10_eta": ladder, "rows": rows, "images": images}


def plain(values: Any) -> list[float | None]:
    """Return numbers for JSON, with the nine digits that tell any two of 32 bits apart.

    Args:
        values: numbers.

    Returns:
        None where a number is NaN or infinite.

    Example:
        >>> plain([0.1234567891234, float("nan")])
        [0.123456789, None]

    """
    array = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(array)
    tiny = np.abs(array) < 1e-290  # zero, and what the scale below would make infinite
    safe = np.where(finite & ~tiny, array, 1.0)
    scale = 10.0 ** (8 - np.floor(np.log10(np.abs(safe))))
    rounded = np.where(tiny, 0.0, np.round(safe * scale) / scale)
    return [value if keep else None for value, keep in zip(rounded.tolist(), finite.tolist(), strict=True)]


@lru_cache(maxsize=256)
def _ladder(content: bytes) -> tuple[float | None, ...]:
    return tuple(plain(np.frombuffer(content, dtype=np.float64)))


def _entry(point: Point, place: int) -> float:
    row = point.rows.get("bump")
    return float(row[place]) if row is not None and len(row) > place else math.nan


def _bump(point: Point) -> tuple[float, float, str]:
    """Return height, log10 of the peak's eta, and the verdict, as the writer said, else as the median shows."""
    code = _entry(point, 3)
    if math.isfinite(code) and 0 <= int(code) < len(VERDICTS):
        return _entry(point, 0), _entry(point, 1), VERDICTS[int(code)]
    median = point.rows["median"]
    kept = np.flatnonzero(np.isfinite(median))
    if len(kept) < 3:
        return math.nan, math.nan, "undefined"
    highest = int(kept[np.argmax(median[kept])])
    height = float(median[highest])
    if height < _MARGIN:
        return height, math.nan, "none"
    if highest == kept[-1] or height < _MARGIN * median[kept[-1]]:
        return height, math.nan, "rising"
    return height, float(point.rows["log10_eta"][highest]), "bump"


class SeriesReader:
    """Read series through a data provider, each tensor once.

    Args:
        provider: of TensorBoard.

    """

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._held: dict[tuple[str, str, str], tuple[tuple[Any, ...], Series]] = {}
        self._lock = threading.Lock()  # else a page could miss what another page's request is reading
        self._clock = 0.0

    def changes(self, context: Any, experiment: str, since: float) -> dict[str, Any]:
        """Return all series, and the points that were read after an earlier answer.

        When a point was written does not tell: TensorBoard reads runs one after another, old ones last at times.

        Args:
            context: of the request.
            experiment: likewise.
            since: ``now`` of the earlier answer; 0 for everything. It outlives a restart of the server.

        Returns:
            As ``described``.

        """
        with self._lock:
            return described(self._series(context, experiment), since)

    def detail(self, context: Any, experiment: str, run: str, tag: str, step: int) -> dict[str, Any] | None:
        """Return all that is known of one point.

        Args:
            context: of the request.
            experiment: likewise.
            run: name of the run.
            tag: of the series.
            step: of the point.

        Returns:
            As ``detailed``.

        """
        with self._lock:
            found = self._series(context, experiment)
        for one in found:
            if (one.run, one.tag) == (run, tag):
                return detailed(one, step)
        return None

    def _series(self, context: Any, experiment: str) -> list[Series]:
        listed = self._provider.list_tensors(context, experiment_id=experiment, plugin_name=PLUGIN)
        stale: dict[str, list[str]] = {}
        marks: dict[tuple[str, str], tuple[Any, ...]] = {}
        for run, tags in listed.items():
            for tag, facts in tags.items():
                marks[run, tag] = (facts.max_step, facts.max_wall_time, facts.plugin_content)
                held = self._held.get((experiment, run, tag))
                if held is None or held[0] != marks[run, tag]:
                    stale.setdefault(run, []).append(tag)
        if stale:
            for run, tag, data in self._read(context, experiment, stale):
                names, probe = row_names(marks[run, tag][2])
                one = _series_of(run, tag, probe, data, names)
                before = self._held.get((experiment, run, tag))
                self._mark_arrivals(one, before[1].points if before is not None else {})
                mark = () if isinstance(data, Exception) else marks[run, tag]  # a fault may pass: it is read again
                self._held[experiment, run, tag] = (mark, one)
        for key in [key for key in self._held if key[0] == experiment and key[1:] not in marks]:
            del self._held[key]  # should it come back, all its points are new
        return [
            self._held[experiment, run, tag][1] for run, tag in sorted(marks) if (experiment, run, tag) in self._held
        ]

    def _mark_arrivals(self, one: Series, before: Mapping[int, Point]) -> None:
        """Say of each point when it was first read; one that was written again counts as new."""
        self._clock = max(time.time(), self._clock + 1e-5)
        for step, point in one.points.items():
            old = before.get(step)
            point.arrived = old.arrived if old is not None and old.wall_time == point.wall_time else self._clock

    def _read(self, context: Any, experiment: str, wanted: dict[str, list[str]]) -> Iterable[tuple[str, str, Any]]:
        """Yield the data of each series, or the error that reading it raises."""
        runs, tags = list(wanted), sorted({tag for tags in wanted.values() for tag in tags})
        try:
            found = self._tensors(context, experiment, runs, tags)
        except Exception:  # one truncated tensor spoils the whole answer: ask for each alone
            for run in runs:
                for tag in wanted[run]:
                    try:
                        yield run, tag, self._tensors(context, experiment, [run], [tag]).get(run, {}).get(tag, [])
                    except Exception as error:  # what a provider raises is its own affair; the series says so
                        yield run, tag, error
            return
        yield from ((run, tag, found.get(run, {}).get(tag, [])) for run in runs for tag in wanted[run])

    def _tensors(self, context: Any, experiment: str, runs: list[str], tags: list[str]) -> Any:
        from tensorboard.data.provider import RunTagFilter

        return self._provider.read_tensors(
            context,
            experiment_id=experiment,
            plugin_name=PLUGIN,
            downsample=_KEEP_ALL,
            run_tag_filter=RunTagFilter(runs=runs, tags=tags),
        )


def _series_of(run: str, tag: str, probe: str, data: Any, names: list[str]) -> Series:
    one = Series(run, tag, probe)
    if isinstance(data, Exception):
        one.error = "a tensor of this series cannot be read"
        return one
    unreadable = 0
    for datum in sorted(data, key=lambda datum: datum.wall_time):  # the last written of a step is the one that counts
        try:
            one.points[int(datum.step)] = point_of(int(datum.step), float(datum.wall_time), datum.numpy, names)
        except (ValueError, TypeError, AttributeError):
            unreadable += 1
    if unreadable:
        one.error = f"{unreadable} of {len(data)} profiles of this series cannot be read"
    return one
