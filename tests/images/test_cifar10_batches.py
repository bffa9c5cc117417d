"""Laws of the published files: read as Python 2 wrote them, without running anything that a pickle names."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from lit_bump.errors import LitBumpError
from lit_bump.images.cifar10_batches import ARCHIVE, read_archive, read_batch, read_batches_folder
from tests.images.published_cifar10 import batch, publish, python2_batch


def test_a_batch_of_python_2_is_read() -> None:
    images, labels = batch(0)
    read_images, read_labels = read_batch(python2_batch(images, labels), "here")
    assert (read_images == images).all()
    assert read_labels.tolist() == labels


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_batch_of_python_3_is_read(protocol: int) -> None:
    images, labels = batch(0)
    packed = pickle.dumps({"data": images.reshape(4, -1), "labels": labels}, protocol=protocol)
    assert (read_batch(packed, "here")[0] == images).all()


def test_folder_and_archive_hold_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = publish(tmp_path, monkeypatch)
    from_folder, from_archive = read_batches_folder(folder), read_archive(tmp_path / ARCHIVE)
    expected = np.concatenate([batch(number)[0] for number in range(5)])
    assert (from_folder["train_images"] == expected).all()
    assert (from_folder["test_images"] == batch(5)[0]).all()
    for name, array in from_folder.items():
        assert (array == from_archive[name]).all()


def test_a_pickle_that_names_a_function_is_refused_and_not_run(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    for packed in (b"cos\nmkdir\n(V%s\ntR." % str(harm).encode(), pickle.dumps({"data": harm})):
        with pytest.raises(LitBumpError, match=r"here is not a CIFAR-10 batch: it asks for"):
            read_batch(packed, "here")
    assert not harm.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "not 1 images of 3072 bytes"),
        ({"data": np.zeros((1, 3071), np.uint8), "labels": [1]}, "not 1 images of 3072 bytes"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": [10]}, "labels run from 10 to 10"),
        ({"data": np.zeros((1, 3072), np.float32), "labels": [1]}, "not bytes"),
        ({"data": None, "labels": [1]}, "not 1 images"),
        ([1, 2], "no attribute 'get'"),
    ],
)
def test_other_content_is_refused(content: object, reason: str) -> None:
    with pytest.raises(LitBumpError, match=f"here is not a CIFAR-10 batch: .*{reason}"):
        read_batch(pickle.dumps(content), "here")


def test_damaged_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = publish(tmp_path, monkeypatch)
    (tmp_path / ARCHIVE).write_bytes((tmp_path / ARCHIVE).read_bytes()[:-100])
    with pytest.raises(LitBumpError, match=rf"{ARCHIVE}' \(\d+ bytes\) is cut short or changed"):
        read_archive(tmp_path / ARCHIVE)
    (folder / "data_batch_3").write_bytes(b"")
    with pytest.raises(LitBumpError, match=r"data_batch_3 in .* \(0 bytes\) is cut short or changed"):
        read_batches_folder(folder)
    (folder / "data_batch_2").unlink()
    with pytest.raises(LitBumpError, match="incomplete: data_batch_2 is missing"):
        read_batches_folder(folder)
