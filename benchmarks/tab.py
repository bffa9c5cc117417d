"""The Bump tab with many runs: how long TensorBoard, the plugin's answers and the page take.

Needs chromium and chromedriver; without them the page's own times are left out.
"""

from __future__ import annotations

import gzip
import shutil
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.shared import Setting, Table
from tests.lit_bump_tensorboard.tab_server import changes, served, write_runs


def tables(setting: Setting) -> list[Table]:
    """Measure a log directory of made-up runs.

    Args:
        setting: of the benchmark.

    Returns:
        Times of the server's answers and of the page; times of the start with and without the plugin.

    """
    n_runs, n_steps, probes = setting.pick((2, 5, 1), (12, 60, 3), (24, 150, 3))
    names = tuple(f"shapes{8 * (i + 1)}" for i in range(probes))
    table = Table(
        f"{n_runs} runs x {n_steps} steps x {probes} probe sets", ("what", "n", "median", "smallest", "largest")
    )
    with tempfile.TemporaryDirectory() as folder:
        log, extra = Path(folder, "log"), Path(folder, "extra")
        write_runs(log, n_runs, n_steps, names)
        with served(log, extra) as address:
            route = f"{address}/data/plugin/lit_bump/changes?since="
            newest = changes(address, until=n_runs * n_steps * probes)["now"]
            for what, since in (("all points", 0.0), ("nothing new", newest)):
                seconds, size = zip(*(_asked(f"{route}{since}") for _ in range(setting.repeats)), strict=True)
                _add(table, f"answer with {what}, ms", [1e3 * one for one in seconds])
                _add(table, f"answer with {what}, kB compressed", [one / 1e3 for one in size[:1]])
            if shutil.which("chromium") and shutil.which("chromedriver"):
                first, redraws = _drawn(address, n_steps, setting.repeats)
                _add(table, "first drawing after the page began, ms", first)
                _add(table, "redraw at another step, ms", redraws)
        start = Table("start of TensorBoard to its first answer", ("what", "n", "median", "smallest", "largest"))
        times: dict[str, list[float]] = {"with the plugin, s": [], "without, s": []}
        for _ in range(setting.repeats):
            for name, of in times.items():
                began = time.perf_counter()
                with served(log, extra, with_plugin=name.startswith("with the")):
                    of.append(time.perf_counter() - began)
        for name, of in times.items():
            _add(start, name, of)
    return [table, start]


def _add(table: Table, what: str, values: list[float]) -> None:
    table.add(what, len(values), statistics.median(values), min(values), max(values))


def _asked(address: str) -> tuple[float, int]:
    began = time.perf_counter()
    request = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        content = answer.read()
    seconds = time.perf_counter() - began
    gzip.decompress(content)
    return seconds, len(content)


def _drawn(address: str, n_curves: int, repeats: int) -> tuple[list[float], list[float]]:
    from tests.lit_bump_tensorboard.test_browser import headless, opened, read, slide, until
    from tests.lit_bump_tensorboard.test_browser import n_curves as drawn

    first: list[float] = []
    redraws: list[float] = []
    browser: Any = headless()
    try:
        for _ in range(repeats):
            opened(browser, address)
            until(lambda: drawn(browser) == n_curves, "all curves", 60)
            first += map(float, read(browser, ".lit-bump", "data-first-ms"))
            for back in range(1, 9):
                slide(browser, back * n_curves // 10)
                time.sleep(0.3)
                redraws += map(float, read(browser, ".lit-bump", "data-draw-ms"))
    finally:
        browser.quit()
    return first, redraws
