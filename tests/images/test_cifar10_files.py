"""Laws of loading CIFAR-10: any copy, decoded once whoever starts when, no stale or half cache, no surprise fetch."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import CIFAR10

from lit_bump.datamodules import CIFAR10DataModule
from lit_bump.errors import LitBumpError
from lit_bump.images import cifar10_files
from lit_bump.images.cifar10_batches import ARCHIVE, Arrays
from lit_bump.images.cifar10_files import load_cifar10
from lit_bump.images.cifar10_folder import read_image_folder
from tests.images.published_cifar10 import batch, publish

CACHE = "lit_bump-cifar10.npz"
FORKED = "ignore:This process .* is multi-threaded"  # Python 3.12 warns of torch's threads


@pytest.fixture
def home(cifar_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy that a test may change, and an empty cache folder of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return Path(shutil.copytree(cifar_folder, tmp_path / "cifar10", ignore=shutil.ignore_patterns("lit_bump-*")))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that grows with every decoding of an image folder."""
    calls: list[Path] = []

    def count(folder: Path) -> Arrays:
        calls.append(folder)
        return read_image_folder(folder)

    monkeypatch.setattr(cifar10_files, "read_image_folder", count)
    return calls


def test_the_second_start_reads_the_cache(home: Path, decoded: list[Path]) -> None:
    first = load_cifar10(home, "train")
    second = load_cifar10(home, "train")
    assert len(decoded) == 1
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert first[0].dtype == torch.uint8
    assert first[1].dtype == torch.int64
    assert torch.equal(load_cifar10(home.parent, "test")[1], load_cifar10(home, "test")[1])  # found in its sub-folder
    assert len(decoded) == 1


@pytest.mark.parametrize("change", ["pixels", "time", "added", "removed", "renamed"])
def test_a_changed_source_is_read_again(home: Path, decoded: list[Path], change: str) -> None:
    before = load_cifar10(home, "train")[0]
    path = home / "train" / "airplane" / "0000.png"
    if change == "pixels":
        Image.new("RGB", (32, 32), "red").save(path)
    elif change == "time":
        os.utime(path, ns=(1, 1))
    elif change == "added":
        shutil.copy(path, path.with_name("0009.png"))
    elif change == "removed":
        path.unlink()
    else:
        path.rename(path.with_name("0009.png"))
    after = load_cifar10(home, "train")[0]
    assert len(decoded) == 2
    assert torch.equal(before, after) == (change == "time")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a whole archive", "cut", "pickle"])
def test_a_damaged_cache_is_made_again(home: Path, decoded: list[Path], content: bytes | str) -> None:
    images = load_cifar10(home, "test")[0]
    cache = home / CACHE
    if content == "pickle":
        with np.load(cache) as stored:
            arrays = {**stored, "test_images": np.array([{}], dtype=object)}
        np.savez(cache, **arrays)
    else:
        cache.write_bytes(cache.read_bytes()[:-5000] if content == "cut" else content)  # type: ignore[arg-type]
    assert torch.equal(load_cifar10(home, "test")[0], images)
    assert len(decoded) == 2


def test_left_overs_of_a_killed_process_are_removed(home: Path) -> None:
    (home / f"{CACHE}.abc.part").write_bytes(b"half")
    load_cifar10(home, "test")
    assert sorted(path.name for path in home.iterdir() if path.name != f"{CACHE}.lock") == [CACHE, "test", "train"]


def test_a_read_only_folder_is_cached_for_the_user(
    home: Path, decoded: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != home and writable(path, mode))
    load_cifar10(home, "train")
    load_cifar10(home, "test")
    assert len(decoded) == 1
    assert not (home / CACHE).exists()
    assert [path.suffix for path in sorted((home.parent / "user" / "lit_bump").iterdir())] == [".npz", ".lock"]


def test_without_any_place_to_write_it_still_loads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.warns(UserWarning, match="no writable place for the arrays"):
        assert len(load_cifar10(home, "train")[0]) == 40


def _start(home: Path, download: bool, results: multiprocessing.Queue[int]) -> None:
    torch.set_num_threads(1)
    results.put(int(load_cifar10(home, "train", download=download)[0].sum()))


def start_four(home: Path, *, download: bool = False) -> int:
    """Have four processes load the training images at once.

    Returns:
        The sum of all pixels, which all of them must have found.

    """
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=_start, args=(home, download, results)) for _ in range(4)]
    for process in processes:
        process.start()
    sums = {results.get(timeout=30) for _ in processes}
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert len(sums) == 1
    return sums.pop()


@pytest.mark.filterwarnings(FORKED)
def test_four_processes_on_a_cold_folder_decode_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decodings = multiprocessing.get_context("fork").Value("i", 0)

    def count(folder: Path) -> Arrays:
        with decodings:
            decodings.value += 1
        return read_image_folder(folder)

    monkeypatch.setattr(cifar10_files, "read_image_folder", count)
    assert start_four(home) == int(load_cifar10(home, "train")[0].sum())
    assert decodings.value == 1


def _prepare(home: Path, killed: bool) -> None:
    torch.set_num_threads(1)
    if killed:

        def die(file: Any, **arrays: Any) -> None:
            file.write(b"PK half of an archive")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)

        np.savez = die  # type: ignore[assignment]  # in a process of its own
    CIFAR10DataModule(home).prepare_data()


@pytest.mark.filterwarnings(FORKED)
def test_a_process_killed_while_it_prepares_does_not_stop_the_others(home: Path) -> None:
    context = multiprocessing.get_context("fork")
    for killed, n in ((True, 1), (False, 3)):
        processes = [context.Process(target=_prepare, args=(home, killed)) for _ in range(n)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert {process.exitcode for process in processes} == {-signal.SIGKILL if killed else 0}
        assert len(list(home.glob(f"{CACHE}.*.part"))) == killed
    expected = read_image_folder(home)
    for split in ("train", "test"):
        assert (load_cifar10(home, split)[0].numpy() == expected[f"{split}_images"]).all()


@pytest.mark.filterwarnings(FORKED)
def test_four_processes_fetch_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "server", monkeypatch)
    fetches = multiprocessing.get_context("fork").Value("i", 0)
    fetch = CIFAR10.download

    def count(dataset: CIFAR10) -> None:
        with fetches:
            fetches.value += 1
        fetch(dataset)

    monkeypatch.setattr(CIFAR10, "download", count)
    assert start_four(tmp_path / "home" / "data", download=True) == sum(int(batch(i)[0].sum()) for i in range(5))
    assert fetches.value == 1
    monkeypatch.setattr(CIFAR10, "download", lambda self: pytest.fail("fetched"))
    assert len(load_cifar10(tmp_path / "home" / "data", "test", download=True)[0]) == 4


def test_any_form_of_the_published_files_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = publish(tmp_path, monkeypatch)
    expected = torch.from_numpy(batch(5)[0])
    for place in (tmp_path, folder, tmp_path / ARCHIVE, str(tmp_path)):
        assert torch.equal(load_cifar10(place, "test")[0], expected)
    (folder / "test_batch").write_bytes(b"damaged")
    assert torch.equal(load_cifar10(tmp_path, "test")[0], expected)  # from the archive
    shutil.rmtree(folder)
    assert torch.equal(load_cifar10(tmp_path, "test")[0], expected)


def test_damaged_files_are_refused_or_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "server", monkeypatch)
    home = tmp_path / "home"
    home.mkdir()
    (home / ARCHIVE).write_bytes((tmp_path / "server" / ARCHIVE).read_bytes()[:-20])
    with pytest.raises(LitBumpError, match=r"cifar-10-python.tar.gz' .* is cut short or changed.*--data.download true"):
        load_cifar10(home, "test")
    assert torch.equal(load_cifar10(home, "test", download=True)[0], torch.from_numpy(batch(5)[0]))
    monkeypatch.setattr(CIFAR10, "url", (tmp_path / "nothing.tar.gz").as_uri())
    with pytest.raises(LitBumpError, match=r"could not download CIFAR-10 to '.*new'") as error:
        load_cifar10(tmp_path / "new", "test", download=True)
    assert "\n" not in str(error.value)


def test_nothing_is_fetched_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CIFAR10, "download", lambda self: pytest.fail("fetched"))
    with pytest.raises(FileNotFoundError, match=r"no CIFAR-10 in '.*nowhere' \(there is no such folder\): expected"):
        load_cifar10(tmp_path / "nowhere", "train")
    with pytest.raises(LitBumpError, match=r"\(it is empty\).*--data.download true") as error:
        load_cifar10(tmp_path, "train")
    assert "\n" not in str(error.value)
    (tmp_path / "photo.png").touch()
    with pytest.raises(
        LitBumpError, match=r"\(found photo.png\): expected cifar-10-batches-py/, cifar-10-python.tar.gz"
    ):
        load_cifar10(tmp_path, "test")


def test_a_folder_of_other_classes_is_refused(home: Path) -> None:
    (home / "test" / "cat").rename(home / "test" / "kitten")
    with pytest.raises(LitBumpError, match=r"no image folder of CIFAR-10: test/ lacks cat and has kitten"):
        load_cifar10(home, "train")


def test_other_splits_are_refused(home: Path) -> None:
    with pytest.raises(LitBumpError, match="split='val' of CIFAR-10"):
        cifar10_files.load_cifar10.__wrapped__(home, "val")  # type: ignore[attr-defined]
