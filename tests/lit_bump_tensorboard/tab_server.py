"""Log directories with made-up formations, and a TensorBoard that shows them, on this machine alone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_FLOAT
from tensorboard.summary.writer.event_file_writer import EventFileWriter

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = ("log10_eta", "median", "q25", "q75", "n_kept", "low", "high", "response", "prediction", "bump")
LADDER = np.linspace(-2.85, 1.15, 17)


def table(step: int, *, height: float = 8.0, n_images: int = 4, speed: float = 200.0) -> np.ndarray:
    """Return the rows of a bump that forms over the steps."""
    grown = height * (1 - np.exp(-step / speed))
    median = 1 + grown * np.exp(-(((LADDER - 0.6) / 0.45) ** 2)) - 0.25 * (LADDER > 0.9)
    bump = np.full(17, np.nan)
    is_bump = median.max() > 1.1
    bump[:4] = (median.max(), 0.6 if is_bump else np.nan, 0.9 if is_bump else np.nan, 3 if is_bump else 1)
    prediction = 10 ** (2 * LADDER) * 1e-3
    rows = [
        LADDER, median, 0.85 * median, 1.2 * median, np.full(17, 8.0), 0.9 * median, 1.1 * median, median * prediction,
        prediction, bump,
    ]  # fmt: skip
    spread = np.exp(0.2 * np.random.default_rng(0).standard_normal((n_images, 1)))
    return np.stack([*rows, *(median * spread)]).astype("<f4")


def message(tag: str, values: np.ndarray, *, probe: str = "", rows: Sequence[str] = ROWS, cut: int = 0) -> Summary:
    """Return one tensor summary; ``cut`` bytes of it are missing."""
    content = values.tobytes()
    tensor = TensorProto(
        dtype=DT_FLOAT,
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in values.shape]),
        tensor_content=content[: len(content) - cut],
    )
    said = json.dumps({"version": 2, "probe": probe or tag, "rows": list(rows)}).encode()
    plugin = SummaryMetadata.PluginData(plugin_name="lit_bump", content=said)
    metadata = SummaryMetadata(plugin_data=plugin, data_class=DATA_CLASS_TENSOR)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


class Writer:
    """Write the events of one run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = EventFileWriter(str(folder))
        self._clock = time.time()

    def add(self, step: int, summary: Summary) -> None:
        """Add an event, later than all before it."""
        self._clock += 0.001
        self._file.add_event(Event(step=step, wall_time=self._clock, summary=summary))

    def profile(self, step: int, *, probe: str = "shapes8", **options: Any) -> None:
        """Add a made-up profile."""
        self.add(step, message(f"bump/tensor/{probe}", table(step, **options), probe=probe))

    def close(self) -> None:
        """Write everything out."""
        self._file.flush()
        self._file.close()


def write_runs(folder: Path, n_runs: int, n_steps: int, probes: Sequence[str] = ("shapes8",)) -> None:
    """Write runs whose bumps grow to different heights, and one that stays flat."""
    steps = np.unique(np.round(np.geomspace(1, 40_000, n_steps)).astype(int))
    steps = np.concatenate([[0], steps, steps[-1] + np.arange(1, n_steps - len(steps))])[:n_steps]
    for number in range(n_runs):
        writer = Writer(folder / f"run_{number:02d}")
        for step in steps:
            for place, probe in enumerate(probes):
                flat = number == 1 or probe.startswith("noise")
                writer.profile(
                    int(step), probe=probe, height=0.0 if flat else 2.0 + number + place, speed=100.0 * (1 + number)
                )
        writer.close()


def environment(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Return an environment in which TensorBoard finds the plugin of a folder, installed or not."""
    paths = [str(root), os.environ.get("PYTHONPATH", "")]
    if not any(entry.name == "lit_bump" for entry in entry_points(group="tensorboard_plugins")):
        info = folder / "lit_bump_tab_dev-0.dist-info"  # named twice, it would stop TensorBoard
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lit_bump_tab_dev\nVersion: 0\n")
        entry = "[tensorboard_plugins]\nlit_bump = lit_bump_tensorboard.plugin:BumpPluginLoader\n"
        (info / "entry_points.txt").write_text(entry)
        paths.insert(1, str(folder))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONWARNINGS": "ignore"}


@contextmanager
def served(
    logdir: Path, extra: Path, *flags: str, port: int | None = None, root: Path = ROOT, with_plugin: bool = True
) -> Iterator[str]:
    """Run TensorBoard.

    Yields:
        Its address.

    """
    port = port or free_port()
    command = [
        sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1", "--port", str(port),
        "--reload_interval", "1", *flags,
    ]  # fmt: skip
    logged = extra / f"tensorboard_{port}.log"
    extra.mkdir(parents=True, exist_ok=True)
    with logged.open("w") as log:
        variables = environment(extra / "plugin", root) if with_plugin else dict(os.environ)
        process = subprocess.Popen(command, cwd=extra, env=variables, stdout=log, stderr=log)
    prefix = next((flag.partition("=")[2] for flag in flags if flag.startswith("--path_prefix=")), "")
    try:
        address = f"http://127.0.0.1:{port}{prefix}"
        for _ in range(300):
            try:
                ask(f"{address}/data/plugins_listing")
                break
            except OSError:
                assert process.poll() is None, logged.read_text()
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(address: str) -> Any:
    """Return what a JSON route answers."""
    with urllib.request.urlopen(address, timeout=20) as answer:
        return json.loads(answer.read())


def status(address: str, data: bytes | None = None) -> int:
    """Return the status of an answer; a refused one is closed like any other."""
    try:
        with urllib.request.urlopen(address, data=data, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def changes(address: str, since: float = 0, *, until: int = 0) -> Any:
    """Ask the tab's route until it knows so many points.

    Returns:
        Its answer.

    Raises:
        AssertionError: if it never does.

    """
    for _ in range(150):
        found = ask(f"{address}/data/plugin/lit_bump/changes?since={since}")
        if sum(len(one["points"]) for one in found["series"]) >= until:
            return found
        time.sleep(0.2)
    raise AssertionError(f"fewer than {until} points after 30 s: {str(found)[:500]}")
