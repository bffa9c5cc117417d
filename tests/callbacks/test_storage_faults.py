"""Whatever the disk does, training ends with the same weights; points wait in memory until it works again."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch

from lit_bump import LogSteps, Profile, load_formation
from lit_bump.callbacks import profile_files
from lit_bump.callbacks.formation_table import read_table
from tests.callbacks.tiny_run import TinyModule, tiny_callback, tiny_trainer

STEPS = tuple(range(7))


class At(pl.Callback):
    """Do something after an optimiser step, before the measurement of it."""

    def __init__(self, **deeds: Callable[[], None]) -> None:
        self.deeds = {int(name.removeprefix("step_")): deed for name, deed in deeds.items()}

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Do it."""
        if deed := self.deeds.get(trainer.global_step):
            deed()


def trained(folder: Path, *callbacks: pl.Callback, **changes: Any) -> dict[str, torch.Tensor]:
    """Train for six steps, each measured.

    Returns:
        The weights.

    """
    torch.manual_seed(0)
    module = TinyModule()
    ours = tiny_callback(schedule=LogSteps(steps=STEPS), **changes)
    tiny_trainer(folder, *callbacks, ours, max_steps=6).fit(module)
    return module.state_dict()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in other)


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".partial")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return trained(tmp_path_factory.mktemp("plain"))


@contextmanager
def one_warning(match: str) -> Iterator[None]:
    """Expect one warning of ours on one line, and no other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours = [str(one.message) for one in caught if "response profiles" in str(one.message)]
    assert len(ours) == 1, ours
    assert match in ours[0]
    assert "\n" not in ours[0]


@pytest.mark.parametrize("where", ["save", "replace"])
def test_a_full_disk_costs_no_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, torch.Tensor], where: str
) -> None:
    full = {"is": False}
    owner, name = (Profile, "save") if where == "save" else (Path, "replace")
    real = getattr(owner, name)

    def failing(self: Any, *arguments: Any) -> Any:
        if full["is"] and "step_" in str(arguments[0]):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, *arguments)

    monkeypatch.setattr(owner, name, failing)
    deeds = At(step_2=lambda: full.update({"is": True}), step_5=lambda: full.update({"is": False}))
    with one_warning("No space left on device"):
        weights = trained(tmp_path, deeds)
    assert same(weights, undisturbed)
    assert load_formation(tmp_path)["p"].steps == STEPS
    assert [int(row["step"]) for row in read_table(tmp_path / "profiles" / "formation.csv")] == list(STEPS)
    assert not leftovers(tmp_path)


def test_what_never_fits_is_saved_elsewhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: dict[str, torch.Tensor],
    caplog: pytest.LogCaptureFixture,
) -> None:
    real, run = Profile.save, tmp_path / "run"

    def failing(self: Profile, path: Path) -> Path:
        if str(path).startswith(str(run)):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, path)

    monkeypatch.setattr(Profile, "save", failing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with one_warning("No space left"), caplog.at_level("INFO"):
        assert same(trained(run), undisturbed)
    (place,) = tmp_path.glob("lit_bump_*")
    assert str(place) in caplog.text
    assert load_formation(place)["p"].steps == STEPS


def test_an_exception_in_training_loses_no_point_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, run = Profile.save, tmp_path / "run"

    def failing(self: Profile, path: Path) -> Path:
        if str(path).startswith(str(run)):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, path)

    def crash() -> None:
        raise RuntimeError("the user's own fault")

    monkeypatch.setattr(Profile, "save", failing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with one_warning("No space left"), pytest.raises(RuntimeError, match="own fault"):
        trained(run, At(step_4=crash))
    (place,) = tmp_path.glob("lit_bump_*")
    assert load_formation(place)["p"].steps == STEPS[:4]


def test_a_real_full_disk(tmp_path: Path, undisturbed: dict[str, torch.Tensor]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.name != "posix" or os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only who may mount a small disk can fill it")
    try:
        fill = disk / "fill"
        deeds = At(step_2=lambda: _fill(fill), step_5=fill.unlink)
        with one_warning("No space left on device"):
            assert same(trained(disk, deeds), undisturbed)
        assert load_formation(disk)["p"].steps == STEPS
        assert not leftovers(disk)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def test_a_deleted_folder_is_written_anew(tmp_path: Path, undisturbed: dict[str, torch.Tensor]) -> None:
    run = tmp_path / "run"
    assert same(trained(run, At(step_4=lambda: shutil.rmtree(run))), undisturbed)
    assert load_formation(run)["p"].steps == STEPS


def test_a_folder_that_is_read_only(tmp_path: Path, undisturbed: dict[str, torch.Tensor]) -> None:
    run = tmp_path / "run"
    (run / "profiles").mkdir(parents=True)
    is_root = os.geteuid() == 0  # nothing is read-only for root but a whole file system
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(run / "profiles")]
    if is_root and subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("root may not mount here")

    def allow(writing: bool) -> None:
        if is_root:
            mode = "remount,rw" if writing else "remount,ro"
            subprocess.run(["mount", "-o", mode, str(run / "profiles")], check=True)
        else:
            for folder in (run / "profiles", run / "profiles" / "p"):
                folder.chmod(0o700 if writing else 0o500)

    try:
        with one_warning("Read-only file system" if is_root else "Permission denied"):
            assert same(trained(run, At(step_2=lambda: allow(False), step_5=lambda: allow(True))), undisturbed)
        assert load_formation(run)["p"].steps == STEPS
        assert not leftovers(run)
    finally:
        if is_root:
            subprocess.run(["umount", str(run / "profiles")], check=False)


def test_a_file_where_the_folder_should_be(tmp_path: Path, undisturbed: dict[str, torch.Tensor]) -> None:
    blocked = tmp_path / "run" / "profiles"
    blocked.parent.mkdir()
    blocked.write_text("mine")
    with one_warning("profiles"):
        assert same(trained(tmp_path / "run", At(step_3=blocked.unlink)), undisturbed)
    assert load_formation(tmp_path / "run")["p"].steps == STEPS


def test_a_checkpoint_that_cannot_be_saved_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, torch.Tensor]
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.Trainer, "save_checkpoint", failing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert same(trained(tmp_path, save_checkpoints=True), undisturbed)
    assert [str(one.message) for one in caught if "no checkpoint of step" in str(one.message)]
    assert load_formation(tmp_path)["p"].steps == STEPS


HOLDER = """
import sys
from pathlib import Path
from lit_bump.callbacks.profile_files import ProfileFiles
files = ProfileFiles(Path(sys.argv[1]), ["p"])
assert files.hold()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_two_runs_in_one_folder_keep_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, torch.Tensor]
) -> None:
    monkeypatch.setattr(profile_files, "WAIT", 0.1)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "held"
        with pytest.warns(UserWarning, match=f"another run writes its profiles into {tmp_path}"):
            assert same(trained(tmp_path), undisturbed)
        other.kill()
    assert not (tmp_path / "profiles").exists()
    assert load_formation(tmp_path / "run_2")["p"].steps == STEPS
    assert same(trained(tmp_path), undisturbed)  # the other one is gone: the folder is free again
    assert load_formation(tmp_path)["p"].steps == STEPS


def test_two_callbacks_of_one_run_share_the_folder(tmp_path: Path) -> None:
    first, second = tiny_callback(name="a"), tiny_callback(name="b")
    tiny_trainer(tmp_path, first, second, max_steps=2).fit(TinyModule())
    tiny_trainer(tmp_path, tiny_callback(name="a"), max_steps=2).fit(TinyModule())
    assert set(load_formation(tmp_path)) >= {"a-p"}
    assert not (tmp_path / "run_2").exists()
