"""Small files in the form in which CIFAR-10 is published, with checksums that torchvision is told.

Written byte by byte as Python 2 and NumPy 1 wrote them, since today's pickle cannot.
"""

from __future__ import annotations

import io
import shutil
import struct
import tarfile
from hashlib import md5
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import numpy as np
import pytest
from torchvision.datasets import CIFAR10

from lit_bump.images.cifar10_batches import ARCHIVE, BATCHES

NAMES = [name for names in BATCHES.values() for name in names]


def python2_batch(images: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], labels: list[int]) -> bytes:
    """Return the bytes that Python 2 and NumPy 1 wrote for a batch (protocol 2, byte strings)."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    data = images.reshape(len(images), -1).tobytes()
    shape = b"".join(b"J" + struct.pack("<i", n) for n in (len(images), 3072)) + b"\x86"
    kind = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|")
    kind += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    array += b"(K\x01" + shape + kind + b"\x89T" + struct.pack("<i", len(data)) + data + b"tb"
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + listed + b"u."


def batch(number: int) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.uint8]], list[int]]:
    """Return images and labels of a small batch."""
    rng = np.random.default_rng(number)
    return rng.integers(0, 256, (4, 3, 32, 32), dtype=np.uint8), rng.integers(0, 10, 4).tolist()


def publish(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small batches and their archive, and have torchvision know their checksums and fetch the archive there.

    Returns:
        The folder of the batches.

    """
    folder = home / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (folder / name).write_bytes(python2_batch(*batch(number)))
    (folder / "batches.meta").write_bytes(b"\x80\x02}(U\x0blabel_names](U\x03cateu.")
    with tarfile.open(home / ARCHIVE, "w:gz") as archive:
        archive.add(folder, arcname=folder.name)
        archive.addfile(tarfile.TarInfo("cifar-10-batches-py/../harmless"), io.BytesIO())
    sums = [[name, md5((folder / name).read_bytes()).hexdigest()] for name in NAMES]
    meta = {**CIFAR10.meta, "md5": md5((folder / "batches.meta").read_bytes()).hexdigest()}
    monkeypatch.setattr(CIFAR10, "train_list", sums[:5])
    monkeypatch.setattr(CIFAR10, "test_list", sums[5:])
    monkeypatch.setattr(CIFAR10, "meta", meta)
    monkeypatch.setattr(CIFAR10, "tgz_md5", md5((home / ARCHIVE).read_bytes()).hexdigest())
    monkeypatch.setattr(CIFAR10, "url", (home / ARCHIVE).as_uri())
    monkeypatch.setattr("torchvision.datasets.utils._urlretrieve", _copy)
    return folder


def _copy(url: str, filename: str) -> None:
    shutil.copyfile(url2pathname(urlparse(url).path), filename)
