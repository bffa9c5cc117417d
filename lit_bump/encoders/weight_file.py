"""Weights from a file of unknown origin, read without running anything that it may hold.

Not in the paper. Needs torch, and safetensors for its files. Published checkpoints carry optimisers, schedules and
attackers of libraries that nobody has installed; those become inert placeholders, tensors and plain values stay.
"""

from __future__ import annotations

import itertools
import math
import pickle
import re
import tarfile
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from lit_bump.errors import LitBumpError

_LEGACY = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # torch's number at the head of its files before 1.6, pickled
_KINDS = {
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x1f\x8b": "a gzip archive: unpack it first",
    b"\x93NUMPY": "a NumPy array",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself: fetch it with git lfs pull",
}
_DEEPEST = 12  # nested dicts and lists that are looked through
_MOST_ENTRIES = 1_000_000  # in them, those that are there several times counted as often


def read_weights(path: str | Path) -> dict[str, Any]:
    """Return what a file of weights holds: nested dicts of tensors and plain values.

    Zip files of torch, its older format and safetensors are read. Objects of other classes are left out; nothing of
    theirs is imported or called.

    Args:
        path: the file.

    Returns:
        Its entries, tensors on the CPU.

    Raises:
        LitBumpError: if there is no such file, or it is no whole file of weights; what it seems to be is said.

    """
    path = Path(path)
    head = _head(path)
    if path.suffix == ".safetensors":
        loaded: Any = _safetensors(path)
    else:
        _refuse_other_kinds(path, head)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of old forms of tensors
                loaded = _without(_load(path))
        except Exception as error:  # junk makes an unpickler raise anything
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}".rstrip(": ")
            raise LitBumpError(f"{str(path)!r} is no whole file of weights ({reason}): fetch it again") from error
    if not isinstance(loaded, dict):
        raise LitBumpError(f"{str(path)!r} holds {type(loaded).__name__}, not weights by name: save a state dict")
    return loaded


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path) or None)
    except Exception:  # it holds more than tensors and plain values, or it is broken; the second reader will tell
        reader: Any = SimpleNamespace(
            __name__="lit_bump.inert", Unpickler=InertUnpickler, load=lambda file, **_: InertUnpickler(file).load()
        )
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=reader)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise LitBumpError(f"no file of weights {str(path)!r}: {error.strerror or error}") from error
    if not head:
        raise LitBumpError(f"{str(path)!r} is empty: fetch it again")
    return head


def _refuse_other_kinds(path: Path, head: bytes) -> None:
    """Say what a file is that is no file of torch.

    Raises:
        LitBumpError: if it is something else.

    """
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|!--|html|\?xml|head|script)", head, re.IGNORECASE):
        raise LitBumpError(f"{str(path)!r} is a web page, not weights: the download needs another address or a log-in")
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            raise LitBumpError(f"{str(path)!r} is {kind}; give a file of weights that torch saved")
    names = _entries(path)
    if names is not None:
        if any(name.endswith("constants.pkl") for name in names):
            raise LitBumpError(f"{str(path)!r} is a TorchScript archive, which is a program: give its state dict")
        if not any(name.endswith("data.pkl") for name in names):
            raise LitBumpError(f"{str(path)!r} is a zip archive without weights of torch: unpack it first")
    elif _LEGACY not in head[:32] or tarfile.is_tarfile(path):  # torch would unpack an archive into a folder
        cut = head.startswith(b"PK\x03\x04")
        kind = "a torch file that was cut short: fetch it again" if cut else "no file of weights that torch saved"
        raise LitBumpError(f"{str(path)!r} is {kind}")


def _entries(path: Path) -> list[str] | None:
    """Return the names in a zip archive; None where the file is none.

    Raises:
        LitBumpError: if its directory is broken, or its entries are compressed.

    """
    try:
        if not zipfile.is_zipfile(path):
            return None
        with zipfile.ZipFile(path) as archive:
            names, unpacked = archive.namelist(), sum(entry.file_size for entry in archive.infolist())
    except Exception as error:  # a broken directory raises many kinds
        raise LitBumpError(f"{str(path)!r} is no whole file of weights ({error}): fetch it again") from error
    if unpacked > path.stat().st_size:  # torch stores without compression; a small file could fill the memory
        raise LitBumpError(f"{str(path)!r} is compressed, which torch never does: save it again with torch.save")
    return names


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise LitBumpError(f"{str(path)!r} needs safetensors: pip install safetensors") from error
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except Exception as error:  # whatever it raises for a broken file
        raise LitBumpError(f"{str(path)!r} is no whole safetensors file ({error})") from error
    return tensors


class Placeholder:
    """Stand in for an object of a foreign class: takes whatever a pickle gives it, and does nothing."""

    def __new__(cls, *_args: Any, **_values: Any) -> Placeholder:
        """Return a new one, whatever it is made from."""
        return object.__new__(cls if isinstance(cls, type) else type(cls))

    def __init__(self, *_args: Any, **_values: Any) -> None:
        pass

    def __call__(self, *_args: Any, **_values: Any) -> Placeholder:
        """Return a new one, whatever it is called with."""
        return Placeholder()

    def __setitem__(self, _key: Any, _value: Any) -> None:
        """Leave an entry out."""

    def append(self, _value: Any) -> None:
        """Leave an entry out."""

    def extend(self, _values: Any) -> None:
        """Leave entries out."""

    def add(self, _value: Any) -> None:
        """Leave an entry out."""


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *_rest: Any) -> Tensor:
    """Rebuild a tensor that lies within its storage; strides of 0 could make one of any size.

    Returns:
        The tensor.

    Raises:
        ValueError: if it has more elements than its storage, or lies beyond its end.

    """
    numel = math.prod(map(int, size))
    end = int(offset) + 1 + sum((int(n) - 1) * int(step) for n, step in zip(size, stride, strict=True)) if numel else 0
    empty, held = torch.empty(0, dtype=storage.dtype), storage._untyped_storage
    room = held.nbytes() // empty.element_size()
    if numel > room:
        raise ValueError(f"a tensor of {numel} elements in a storage of {room}")
    if end > room or min(offset, *size, *stride, 0) < 0:  # set_ would make the storage larger
        raise ValueError(f"a tensor from {offset} to {end} in a storage of {room}")
    return empty.set_(held, offset, tuple(size), tuple(stride))


def _parameter(data: Any, *_rest: Any) -> Any:
    return data


def _latin(text: str, _encoding: str = "latin1") -> bytes:
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch.nn.parameter", "Parameter"): _parameter,
    ("torch", "Size"): torch.Size,
    ("_codecs", "encode"): _latin,
}


_InPython: Any = pickle._Unpickler  # in it the meaning of an opcode can be changed


class InertUnpickler(_InPython):  # type: ignore[misc]
    """Unpickle tensors and plain values; every other global name becomes a class of placeholders."""

    def __init__(self, file: Any, **_options: Any) -> None:
        super().__init__(file, encoding="latin1")

    def find_class(self, module: str, name: str) -> Any:
        """Return what a global name stands for.

        Args:
            module: dotted path.
            name: of the global.

        Returns:
            One of the few that rebuild tensors, or a new class of placeholders.

        """
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        return _KNOWN.get((module, name)) or type("Placeholder", (Placeholder,), {"origin": f"{module}.{name}"})

    def load_build(self) -> None:
        """Drop the state of an object: attributes are never set, on instances or on anything else."""
        self.stack.pop()

    dispatch = {**_InPython.dispatch, pickle.BUILD[0]: load_build}  # noqa: RUF012


def _without(value: Any, depth: int = 0, seen: Iterator[int] | None = None) -> Any:
    """Return a value without placeholders and without classes of dicts and lists other than the plain ones.

    Raises:
        ValueError: if it holds too many entries, which lists that hold a list many times can reach within a few bytes.

    """
    seen = itertools.count() if seen is None else seen
    if next(seen) > _MOST_ENTRIES:
        raise ValueError(f"it holds more than {_MOST_ENTRIES} entries")
    if isinstance(value, dict) and depth < _DEEPEST:
        kept = {key: _without(held, depth + 1, seen) for key, held in value.items() if isinstance(key, (str, int))}
        return {key: held for key, held in kept.items() if held is not None}
    if isinstance(value, (list, tuple)) and depth < _DEEPEST:
        return [_without(held, depth + 1, seen) for held in value]
    return value if isinstance(value, (Tensor, str, int, float, bool)) else None
