"""Valid files made into hostile ones: bytes, zip members and JSON values changed at random, from a seeded generator.

Used by the readers' fuzz tests. Nothing here knows a reader; what is drawn depends on the generator alone.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Draw = np.random.Generator
HOSTILE_NAMES = (
    "../../evil", "/etc/evil", "..", "", ".", "a/../../b", "C:\\evil", "nul\0byte", "x" * 300, "x" * 5000, "\ud800",
    "new\nline", "-", "~", "con", "é" * 40, "step_00000001.npz",
)  # fmt: skip
HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 10**12, 10**30, 10**400, -(2**63), 0.5, float("nan"), float("inf"), 1e308, [], {},
    [[]], [None], {"a": 1}, "", "1", *HOSTILE_NAMES,
)  # fmt: skip
_LARGE = (0, 1, 127, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 10**12, 2**63 - 1, 2**64 - 1)
DEEP = 100_000


class Payload:
    """What a pickle would run: the making of a file."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the call that unpickling makes."""
        return os.system, (f"touch {self.marker}",)


def mutated(data: bytes, draw: Draw) -> bytes:
    """Return bytes with one to four changes: flips, cuts, insertions, repeated and swapped blocks, huge numbers."""
    changed = bytearray(data)
    for _ in range(int(draw.integers(1, 5))):
        if not changed:
            break
        _CHANGES[int(draw.integers(len(_CHANGES)))](changed, draw)
    return bytes(changed)


def zip_mutated(data: bytes, draw: Draw, marker: str) -> bytes:
    """Return a zip archive, sound as one, whose members are swapped, renamed, changed, packed or pickles."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    compression = zipfile.ZIP_DEFLATED if draw.random() < 0.1 else zipfile.ZIP_STORED
    kind, place, other = (int(draw.integers(n)) for n in (8, len(members), len(members)))
    name, content = members[place]
    if kind == 0:
        members[place], members[other] = (name, members[other][1]), (members[other][0], content)
    elif kind == 1:
        del members[place]
    elif kind == 2:
        members[place] = (_chosen(HOSTILE_NAMES, draw), content)
    elif kind == 3:
        members.append((_chosen(HOSTILE_NAMES, draw), content))
    elif kind == 4:
        members[place] = (name, _object_array(marker) if name.endswith(".npy") else pickle.dumps(Payload(marker)))
    elif kind == 5:
        compression, members[place] = zipfile.ZIP_DEFLATED, (name, content[:128] + bytes(2**22))
    else:
        members[place] = (name, mutated(content, draw))
    return zipped(members, compression)


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip archive of members, whatever their names."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of names that occur twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name.encode("utf-8", "replace").decode()[:60_000]), content, compression)
    return file.getvalue()


@cache
def zip_bomb(member: str, mebibytes: int = 256) -> bytes:
    """Return a small archive with one member that unpacks to as many MiB of zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open(member, "w") as out:
        for _ in range(mebibytes):
            out.write(bytes(2**20))
    return file.getvalue()


def json_mutated(data: bytes, draw: Draw) -> bytes:
    """Return JSON with one to three values, keys or entries replaced, dropped or repeated; at times not JSON at all."""
    if draw.random() < 0.02:
        return [b"[" * DEEP, b'{"a":' * DEEP, b"[" * DEEP + b"]" * DEEP, b"1" * 5000][int(draw.integers(4))]
    value = json.loads(data)
    for _ in range(int(draw.integers(1, 4))):
        value = value_mutated(value, draw)
    return json.dumps(value).encode()


def value_mutated(value: Any, draw: Draw) -> Any:
    """Return a plain value with one entry of it, at any depth, replaced, dropped or repeated."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = _chosen(list(value), draw)
        kind = draw.random()
        if kind < 0.1:
            return {name: held for name, held in value.items() if name != key}
        if kind < 0.2:
            return {**value, str(_chosen(HOSTILE_NAMES, draw)): value[key]}
        return {**value, key: value_mutated(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.85:
        place, kind = int(draw.integers(len(value))), draw.random()
        if kind < 0.1:
            return value[:place] + value[place + 1 :]
        if kind < 0.2:
            return [*value, value[place]]
        return [*value[:place], value_mutated(value[place], draw), *value[place + 1 :]]
    return _chosen(HOSTILE_VALUES, draw)


def png_mutated(data: bytes, draw: Draw) -> bytes:
    """Return a PNG with one chunk changed, dropped or repeated, and a right checksum: a huge width, for instance."""
    chunks, place = [], 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    which, kind = int(draw.integers(len(chunks))), int(draw.integers(5))
    name, body = chunks[which]
    if kind == 0:
        sides = (int(_chosen((0, 1, 8, 9000, 100_000, 2**31 - 1), draw)) for _ in range(2))
        chunks[0] = (b"IHDR", struct.pack(">II", *sides) + chunks[0][1][8:])
    elif kind == 1:
        chunks.insert(which, chunks[int(draw.integers(len(chunks)))])
    elif kind == 2:
        del chunks[which]
    else:
        chunks[which] = (name, mutated(body, draw))
    return data[:8] + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def _chosen(choices: Any, draw: Draw) -> Any:
    return choices[int(draw.integers(len(choices)))]


def _object_array(marker: str) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    return file.getvalue()


def _block(data: bytearray, draw: Draw) -> tuple[int, int]:
    start = int(draw.integers(len(data)))
    return start, min(len(data), start + int(draw.integers(1, 65)))


def _flip(data: bytearray, draw: Draw) -> None:
    for place in draw.integers(len(data), size=int(draw.integers(1, 9))):
        data[place] ^= 1 << int(draw.integers(8))


def _overwrite(data: bytearray, draw: Draw) -> None:
    start, end = _block(data, draw)
    data[start:end] = draw.bytes(end - start)


def _cut_tail(data: bytearray, draw: Draw) -> None:
    del data[int(draw.integers(len(data))) :]


def _cut_block(data: bytearray, draw: Draw) -> None:
    start, end = _block(data, draw)
    del data[start:end]


def _insert(data: bytearray, draw: Draw) -> None:
    start, end = _block(data, draw)
    data[start:start] = draw.bytes(end - start)


def _repeat(data: bytearray, draw: Draw) -> None:
    start, end = _block(data, draw)
    data[start:start] = bytes(data[start:end]) * int(draw.integers(1, 20))


def _swap(data: bytearray, draw: Draw) -> None:
    (a, b), (c, d) = _block(data, draw), _block(data, draw)
    data[a:b], data[c:d] = data[c:d], data[a:b]


def _large_word(data: bytearray, draw: Draw) -> None:
    start, _ = _block(data, draw)
    width, order = int(_chosen((1, 2, 4, 8), draw)), _chosen(("little", "big"), draw)
    data[start : start + width] = (int(_chosen(_LARGE, draw)) % 256**width).to_bytes(width, order)


def _large_digits(data: bytearray, draw: Draw) -> None:
    found = list(re.finditer(rb"\d+", bytes(data[:20_000])))
    if found:
        match = _chosen(found, draw)
        data[match.start() : match.end()] = str(_chosen((*_LARGE, 10**30, -1), draw)).encode()


_CHANGES = (_flip, _overwrite, _cut_tail, _cut_block, _insert, _repeat, _swap, _large_word, _large_digits)
