"""Laws of reading weights: what torch saved comes back equal, and nothing in a foreign file is ever run."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import pickle
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lit_bump.encoders.weight_file import InertUnpickler, read_weights
from lit_bump.errors import LitBumpError

TENSORS = {
    "conv.weight": torch.arange(24.0).reshape(2, 3, 2, 2),
    "norm.count": torch.tensor(3),
    "half": torch.ones(2, dtype=torch.float16),
    "view": torch.arange(10.0)[2:8].reshape(2, 3).t(),
}


@pytest.fixture
def foreign() -> Iterator[types.ModuleType]:
    """Yield a module with a class that exists while a file is written, and is gone when it is read."""
    module = types.ModuleType("attacker_library")

    class Schedule:
        def __init__(self) -> None:
            self.rate = 0.1
            self.held = [torch.ones(2)]

    def step() -> Schedule:
        return Schedule()

    for thing in (Schedule, step):
        thing.__module__, thing.__qualname__ = "attacker_library", thing.__name__
        setattr(module, thing.__name__, thing)
    sys.modules["attacker_library"] = module
    yield module
    sys.modules.pop("attacker_library", None)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("entry", ["", "model"])
def test_what_torch_saved_comes_back(tmp_path: Path, zipped: bool, entry: str) -> None:
    path = tmp_path / "weights.pt"
    saved: Any = collections.OrderedDict(TENSORS)
    torch.save({entry: saved, "epoch": 3} if entry else saved, path, _use_new_zipfile_serialization=zipped)
    found = read_weights(path)
    found = found[entry] if entry else found
    assert list(found) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_foreign_objects_are_left_out_and_the_tensors_stay(
    tmp_path: Path, foreign: types.ModuleType, zipped: bool
) -> None:
    path = tmp_path / "robust.ckpt"
    saved = {
        "model": collections.OrderedDict(TENSORS),
        "schedule": foreign.Schedule(),
        "step": foreign.step,
        "optimizer": {"state": {0: {"momentum": torch.ones(3)}}, "groups": [{"lr": 0.1, "hook": foreign.Schedule()}]},
        "epoch": 90,
        "best": np.float64(0.5),
    }
    torch.save(saved, path, _use_new_zipfile_serialization=zipped)
    del sys.modules["attacker_library"]
    found = read_weights(path)
    assert "attacker_library" not in sys.modules
    assert found["epoch"] == 90
    assert "schedule" not in found
    assert found["optimizer"]["groups"] == [{"lr": 0.1}]
    for name, tensor in TENSORS.items():
        assert torch.equal(found["model"][name], tensor)


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the command."""
        return os.system, (self.command,)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_a_malicious_pickle_has_no_effect(tmp_path: Path, zipped: bool) -> None:
    mark, path = tmp_path / "mark", tmp_path / "evil.pt"
    torch.save({"w": torch.ones(2), "x": Evil(f"touch {mark}")}, path, _use_new_zipfile_serialization=zipped)
    assert torch.equal(read_weights(path)["w"], torch.ones(2))
    assert not mark.exists()


HOSTILE = {
    "eval": b'cbuiltins\neval\n(S\'open("MARK","w")\'\ntR.',
    "getattr": b"cbuiltins\ngetattr\n(cos\nsystem\nS'__call__'\ntR(S'touch MARK'\ntR.",
    "inst": b"(S'touch MARK'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'touch MARK'\no.",
    "newobj": b"\x80\x02cos\nsystem\n(S'touch MARK'\nt\x81.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0atouch MARK\x85R.",
    "dotted": b"\x80\x04\x8c\x0bcollections\x8c\x1aOrderedDict.__init__.x.y.z\x93.",
    "build a class": b"ccollections\nOrderedDict\n(N}S'zz'\nI1\nstb.",
    "a loop of its own": b"]q\x00h\x00a.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_opcode_runs_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(pickle.UnpicklingError, TypeError, ValueError, AttributeError, IndexError):
        InertUnpickler(io.BytesIO(HOSTILE[name])).load()
    assert not (tmp_path / "MARK").exists()
    assert not hasattr(collections.OrderedDict, "zz")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_random_bytes_end_in_one_line(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "junk.pt"
    path.write_bytes(junk)
    with pytest.raises(LitBumpError, match=r"junk\.pt"):
        read_weights(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(14156, 1, True)  # in the directory of the archive
@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans())
def test_a_flipped_byte_gives_weights_or_one_line(tmp_path: Path, place: int, flip: int, zipped: bool) -> None:
    buffer = io.BytesIO()
    torch.save({"model": TENSORS}, buffer, _use_new_zipfile_serialization=zipped)
    data = bytearray(buffer.getvalue())
    data[place % len(data)] ^= flip
    path = tmp_path / "flipped.pt"
    path.write_bytes(data)
    with contextlib.suppress(LitBumpError):
        assert isinstance(read_weights(path), dict)


def _truncated(path: Path) -> None:
    torch.save(TENSORS, path)
    path.write_bytes(path.read_bytes()[:-200])


def _script(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/constants.pkl", b"")
        archive.writestr("model/data.pkl", b"")


def _broken_list(path: Path) -> None:
    torch.save(TENSORS, path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"PK\x01\x02", b"PK\x01\x03", 1))


def _compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**6))


def _other_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", b"")


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"  <!DOCTYPE html><html>"), "is a web page"),
        (lambda path: path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0"), "git lfs pull"),
        (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n"), "is a picture"),
        (lambda path: path.write_bytes(b"\x1f\x8b\x08"), "gzip"),
        (lambda path: path.write_bytes(b"hello"), "no file of weights"),
        (lambda path: torch.save([torch.ones(1)], path), "holds list"),
        (_truncated, "cut short"),
        (_script, "TorchScript"),
        (_other_zip, "without weights"),
        (_broken_list, "no whole file of weights"),
        (_compressed, "is compressed"),
        (lambda path: path.write_bytes(b"\xef\xbb\xbf<!-- x --><html>"), "is a web page"),
    ],
)
def test_each_other_file_gets_its_line(tmp_path: Path, write: Any, says: str) -> None:
    path = tmp_path / "file.pt"
    write(path)
    with pytest.raises(LitBumpError, match=says):
        read_weights(path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(LitBumpError, match=r"no file of weights 'nowhere\.pt'"):
        read_weights("nowhere.pt")


def test_a_tensor_larger_than_its_storage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    bomb = torch.ones(1).expand(10**6)  # a storage of one number, strides of 0
    torch.save({"w": bomb, "x": Evil("true")}, path)
    with pytest.raises(LitBumpError, match="1000000 elements in a storage of 1"):
        read_weights(path)


def test_safetensors_are_read(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "model.safetensors"
    safetensors.save_file({"w": torch.arange(3.0)}, path)
    assert torch.equal(read_weights(path)["w"], torch.arange(3.0))
    path.write_bytes(path.read_bytes()[:5])
    with pytest.raises(LitBumpError, match="no whole safetensors file"):
        read_weights(path)
