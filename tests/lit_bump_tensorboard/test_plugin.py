"""The plugin in a real TensorBoard: every step served by both loaders, and a fault of ours never stops it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING

from lit_bump.callbacks.profile_tensorboard import TENSOR_ROWS, profile_table, write_tensor
from lit_bump_tensorboard.plugin import BumpPlugin, BumpPluginLoader
from tests.figures.drawn_profiles import drawn_profile
from tests.lit_bump_tensorboard.tab_server import ROOT, Writer, ask, changes, message, served, status, table, write_runs

LOADERS = ["--load_fast=true", "--load_fast=false"]


@pytest.mark.parametrize("loader", LOADERS)
def test_every_step_is_served(tmp_path: Path, loader: str) -> None:
    write_runs(tmp_path / "log", 1, 150)
    with served(tmp_path / "log", tmp_path / "x", loader) as address:
        (one,) = changes(address, until=150)["series"]
        assert len(one["all_steps"]) == len(one["points"]) == 150
        listing = ask(f"{address}/data/plugins_listing")["lit_bump"]
        assert (listing["enabled"], listing["loading_mechanism"]["type"]) == (True, "IFRAME")
        for name in ("index.js", "boot.js"):
            with urllib.request.urlopen(f"{address}/data/plugin/lit_bump/static/{name}") as answer:
                assert "javascript" in answer.headers["Content-Type"]
        for path in (
            "static/../plugin.py",
            "static/%2e%2e/plugin.py",
            "static/series.py",
            "nowhere",
            "static//etc/passwd",
        ):
            assert status(f"{address}/data/plugin/lit_bump/{path}") == 404
        for query in ("detail?run=x&tag=y&step=1", "changes?since=x", "changes?since=nan", "detail?step=inf"):
            assert status(f"{address}/data/plugin/lit_bump/{query}") in (400, 404)
        assert status(f"{address}/data/plugin/lit_bump/changes", data=b"x") in (400, 405)
        request = urllib.request.Request(f"{address}/data/plugin/lit_bump/changes", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request) as answer:
            assert answer.headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("loader", LOADERS)
def test_a_users_own_number_of_samples_is_obeyed(tmp_path: Path, loader: str) -> None:
    write_runs(tmp_path / "log", 1, 30)
    with served(tmp_path / "log", tmp_path / "x", loader, "--samples_per_plugin", "lit_bump=5") as address:
        (one,) = changes(address, until=5)["series"]
        assert len(one["points"]) == 5


@pytest.mark.parametrize("loader", LOADERS)
def test_bad_data_and_odd_names_never_end_in_an_error(tmp_path: Path, loader: str) -> None:
    names = ["<img src=x onerror=alert(1)>", "a/b/../c", "ünï±", "x" * 200, "</script>"]
    writer = Writer(tmp_path / "log" / "hostile <b>run</b>")
    for name in names:
        writer.add(1, message(f"bump/{name}", table(1), probe=name))
    writer.add(1, message("cut", table(1), cut=9))
    writer.add(1, message("flat", np.zeros(17, dtype="<f4")))
    writer.add(1, message("nan", np.full((12, 17), np.nan, dtype="<f4")))
    odd = table(1)
    odd[1] = (np.inf, -np.inf, -1.0, *odd[1][3:])
    writer.add(1, message("infinite", odd))
    writer.add(1, message("short", table(1)[:, :5]))
    writer.add(1, message("cube", np.zeros((2, 3, 17), dtype="<f4")))
    writer.add(1, message("empty", np.zeros((0, 17), dtype="<f4")))
    backwards = table(1)
    backwards[0] = backwards[0, ::-1]
    writer.add(1, message("backwards", backwards))
    words = message("words", table(1))
    words.value[0].tensor.CopyFrom(TensorProto(dtype=DT_STRING, string_val=[b"<b>", b"x"]))
    words.value[0].tensor.tensor_shape.dim.add(size=2)
    writer.add(1, words)
    for content in (b"", b"{", b"[]", b'{"rows": 3}', b"\xff\xfe", b'{"probe": {"a": 1}}'):
        odd_content = message(f"content {content!r}", table(1))
        odd_content.value[0].metadata.plugin_data.content = content
        writer.add(1, odd_content)
    writer.close()
    good = Writer(tmp_path / "log" / "good")
    good.profile(1)
    good.close()
    with served(tmp_path / "log", tmp_path / "x", loader) as address:
        found = {one["tag"]: one for one in changes(address, until=len(names) + 9)["series"]}
        assert found["bump/tensor/shapes8"]["points"][0]["height"] == pytest.approx(float(table(1)[1].max()), rel=1e-6)
        assert found["bump/tensor/shapes8"]["error"] is None
        for tag, one in found.items():
            for step in (*one["all_steps"], 999):
                query = urllib.parse.urlencode({"run": one["run"], "tag": tag, "step": step})
                address_of = f"{address}/data/plugin/lit_bump/detail?{query}"
                assert status(address_of) == (404 if step == 999 else 200)
        assert {one["probe"] for one in found.values()} >= set(names)
        assert found["infinite"]["points"][0]["median"][:2] == [None, None]
        assert len(found["short"]["points"][0]["median"]) == 5
        assert all(found[tag]["error"] for tag in ("cut", "flat", "nan", "cube", "empty", "backwards", "words"))
        assert all(found[f"bump/{name}"]["error"] is None for name in names)


@pytest.mark.parametrize("flag", ["--reload_multifile=true", "--reload_multifile=false"])
@pytest.mark.parametrize("loader", LOADERS)
def test_a_resumed_run_shows_each_step_once(tmp_path: Path, loader: str, flag: str) -> None:
    folder = tmp_path / "log" / "run"
    first = Writer(folder)
    for step in (0, 10, 20, 30):
        first.profile(step, height=8.0)
    first.close()
    second = Writer(folder)
    second._clock += 5
    for step in (20, 25, 40):
        second.profile(step, height=2.0)
    second.close()
    with served(tmp_path / "log", tmp_path / "x", loader, flag) as address:
        (one,) = changes(address, until=5)["series"]
        steps = one["all_steps"]
        assert steps == sorted(set(steps))
        assert {20, 25, 40} <= set(steps)
        at_20 = next(point for point in one["points"] if point["step"] == 20)
        assert at_20["height"] == pytest.approx(float(table(20, height=2.0)[1].max()), rel=1e-6)


def _torch_writer(folder: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder))


def _lightning_writer(folder: Path) -> Any:
    from lightning.pytorch.loggers import TensorBoardLogger

    return TensorBoardLogger(folder, name="", version="").experiment


def _tensorboardx_writer(folder: Path) -> Any:
    return pytest.importorskip("tensorboardX").SummaryWriter(str(folder))


@pytest.mark.parametrize("make", [_torch_writer, _lightning_writer, _tensorboardx_writer])
def test_every_writer_gives_the_same_numbers(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    profile, writer = drawn_profile(5.0, n_lost=2), make(tmp_path / "log" / "run")
    write_tensor(writer, "drawn6", 7, profile)
    writer.flush()
    writer.close()
    assert len(list((tmp_path / "log" / "run").glob("events*"))) == 1
    with served(tmp_path / "log", tmp_path / "x") as address:
        (one,) = changes(address, until=1)["series"]
        expected = profile_table(profile)
        found = np.array([np.nan if value is None else value for value in one["points"][0]["median"]], dtype=np.float32)
        np.testing.assert_array_equal(found, expected[1])
        query = urllib.parse.urlencode({"run": one["run"], "tag": one["tag"], "step": 7})
        detail = ask(f"{address}/data/plugin/lit_bump/detail?{query}")
        rows = {"log10_eta": detail["log10_eta"], **detail["rows"]}
        assert set(rows) == set(TENSOR_ROWS) - {"bump"}
        for place, name in enumerate(TENSOR_ROWS[:-1]):
            np.testing.assert_array_equal(float32(rows[name]), expected[place], err_msg=name)
        np.testing.assert_array_equal([float32(row) for row in detail["images"]], expected[len(TENSOR_ROWS) :])


def float32(row: list[float | None]) -> np.ndarray:
    """Return the numbers of an answer as the writer had them."""
    return np.array([np.nan if value is None else value for value in row], dtype=np.float32)


def test_nothing_heavy_is_imported() -> None:
    """The plugin adds its own files to what TensorBoard has loaded, and nothing else: that keeps its start short."""
    code = (
        "import sys, numpy, tensorboard.main, tensorboard.default; tensorboard.default.get_plugins();"
        "before = {name for name in sys.modules if not name.startswith('lit_bump')};"
        "import lit_bump_tensorboard.plugin; added = set(sys.modules) - before;"
        "print(sorted(name for name in added if not name.startswith('lit_bump_tensorboard')),"
        "{'torch', 'lightning', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] set()"


@pytest.mark.parametrize("flags", [None, SimpleNamespace(), SimpleNamespace(samples_per_plugin="x"), 3])
def test_odd_flags_stop_nothing(flags: Any) -> None:
    BumpPluginLoader().fix_flags(flags)


def test_a_package_without_its_page_stops_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(
        ROOT / "lit_bump_tensorboard", copy / "lit_bump_tensorboard", ignore=shutil.ignore_patterns("static")
    )
    write_runs(tmp_path / "log", 1, 3)
    with served(tmp_path / "log", tmp_path / "x", root=copy) as address:
        assert len(changes(address, until=3)["series"][0]["points"]) == 3
        assert status(f"{address}/data/plugin/lit_bump/static/index.js") == 404


def test_all_steps_are_asked_for() -> None:
    flags = SimpleNamespace(samples_per_plugin={})
    BumpPluginLoader().fix_flags(flags)
    assert flags.samples_per_plugin == {"lit_bump": 0}


def test_a_missing_page_and_a_missing_provider_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lit_bump_tensorboard import plugin

    monkeypatch.setattr(plugin, "STATIC", tmp_path / "nowhere")
    made = BumpPlugin(SimpleNamespace(data_provider=None, logdir="", multiplexer=None))
    assert set(made.get_plugin_apps()) == {"/changes", "/detail", "/static/*"}
    assert BumpPluginLoader().load(SimpleNamespace(data_provider=None)) is None
