"""Feed every reader of files with broken and hostile input, and count what comes of it.

``python scripts/fuzz.py --inputs 100000``. A reader may return a value or raise the error that its docstring names, and
nothing else; it may not warn, hang, run anything, or take memory that its input does not warrant.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import pickle
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from tqdm import tqdm

from lit_bump import Protocol, measure_profile
from lit_bump.callbacks.formation_table import formation_row, read_table, write_table
from lit_bump.claims.evidence import read_json
from lit_bump.config_files import resolve
from lit_bump.encoders.weight_file import read_weights
from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, load_formation
from lit_bump.probes.image_manifest import from_manifest, save_manifest
from lit_bump.probes.image_set import ImageSet
from lit_bump.probing.results import RECORD, read_record
from lit_bump.runs.checkpoint_file import read_checkpoint
from lit_bump.runs.saved_run import SavedRun
from lit_bump_tensorboard.series import Series, described, point_of, row_names


@dataclass(frozen=True)
class Reader:
    """Hold a reader.

    Args:
        name: for the table.
        file: name of the file that it reads, in a folder of its own.
        seeds: contents that are valid, or nearly so.
        read: reads that folder.
        allowed: the errors that it documents.
        beside: an image ``a.png`` in the same folder.

    """

    name: str
    file: str
    seeds: list[bytes]
    read: Callable[[Path], Any]
    allowed: tuple[type[Exception], ...] = (LitBumpError,)
    beside: bytes = b""


class Bomb:
    """Say that it was run, if anything unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a careless reader would call."""
        return (exec, ("import builtins; builtins.lit_bump_was_run = True",))


def mutated(seed: bytes, random: np.random.Generator) -> bytes:
    """Return a content with a few faults: bits, numbers, pieces cut, repeated, moved or put in.

    Args:
        seed: content.
        random: source of chance.

    Returns:
        Another content.

    """
    data = bytearray(seed)
    for _ in range(int(random.integers(1, 6))):
        if not data:
            break
        at = int(random.integers(len(data)))
        length = min(2 ** int(random.integers(0, 10)), len(data) - at)
        kind = int(random.integers(8))
        if kind == 0:
            data[at] ^= 1 << int(random.integers(8))
        elif kind == 1:
            data[at : at + length] = random.bytes(length)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            data[at : at + 4] = int(random.choice([0, 1, 2**31 - 1, 2**32 - 1])).to_bytes(4, "little")
        elif kind == 6:
            data[at:at] = _NASTY[int(random.integers(len(_NASTY)))]
        else:
            digits = [i for i, sign in enumerate(data) if chr(sign).isdigit()]
            if digits:
                place = digits[int(random.integers(len(digits)))]
                data[place : place + 1] = _NUMBERS[int(random.integers(len(_NUMBERS)))]
    return bytes(data)


def mutated_inside(seed: bytes, random: np.random.Generator) -> bytes:
    """Return an archive with faults in one member, its check sums right; other contents as ``mutated``.

    Args:
        seed: content.
        random: source of chance.

    Returns:
        Another content.

    """
    if not zipfile.is_zipfile(io.BytesIO(seed)) or len(seed) > 10**6:
        return mutated(seed, random)
    with zipfile.ZipFile(io.BytesIO(seed)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    names = list(members)
    name = names[int(random.integers(len(names)))]
    members[name] = mutated(members[name], random)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for member, content in members.items():
            file.writestr(member, content)
    return stream.getvalue()


_NASTY = (
    b"\x00", b"\xff\xfe", b"../../etc/passwd", b"[" * 3000, b"{" * 3000, b"&a [*a]",
    b"!!python/object/apply:os.system ['x']", b"\n", b",,,", b'"', b"NaN", b"null", b"-", b"\r\n\r\n", b"\xed\xa0\x80",
    pickle.dumps(Bomb()),
)  # fmt: skip
_NUMBERS = (b"-1", b"1e999", b"99999999999999999999", b"NaN", b"0.5", b"[]", b"true", b'"x"')


def readers() -> list[Reader]:
    """Return all readers with valid contents of theirs."""
    images = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    protocol = Protocol((0.01, 0.1, 1.0), n_pairs=2, n_jvp=2, estimator="matched", n_noise=1)
    profile = measure_profile(nn.Flatten(), images, protocol).with_context(step=1, probe="p", seconds=0.1, share=0.1)
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        npz = profile.save(folder / "a.npz").read_bytes()
        write_table(folder / "a.csv", [formation_row(profile)])
        table = (folder / "a.csv").read_bytes()
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(folder / "a.png")
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(folder / "a.jpg")
        pictures = [(folder / name).read_bytes() for name in ("a.png", "a.jpg")]
        found = ImageSet.from_files([folder / "a.png"], name="a", root=folder, source="x")
        listed = save_manifest(found, folder / "m.json").read_bytes()
    weights = [_saved({"state_dict": {"w": torch.ones(2)}, "global_step": 3}, new) for new in (True, False)]
    hostile = [pickle.dumps(Bomb()), _saved({"state_dict": {"w": torch.ones(2)}, "global_step": Bomb()}, True)]
    config = (
        b"model:\n  class_path: ClassifierModule\n  init_args:\n    network: resnet18\n    width: 8\ndata: {a: [1]}\n"
    )
    laughs = b"a: &a [x, x]\n" + b"".join(f"b{i}: &b{i} [*a, *a]\n".encode() for i in range(9))
    record = json.dumps({
        "format": 1, "encoders": [{"slug": "a", "label": "a", "facts": {}}], "images": [{"name": "p", "digest": "x"}]
    }).encode()  # fmt: skip
    return [
        Reader(
            "profile (.npz)", "a.npz", [npz, _huge_npz(), _zip_bomb(), *hostile],
            lambda at: str(Profile.load(at / "a.npz")),
        ),
        Reader(
            "formation (a folder)", "profiles/p/step_00000001.npz", [npz], load_formation,
            (LitBumpError, FileNotFoundError),
        ),
        Reader("table (.csv)", "a.csv", [table], lambda at: read_table(at / "a.csv")),
        Reader("table, written anew", "a.csv", [table], lambda at: write_table(at / "a.csv", [formation_row(profile)])),
        Reader("checkpoint (.ckpt)", "a.ckpt", [*weights, *hostile], lambda at: read_checkpoint(at / "a.ckpt")),
        Reader("weights (.pth)", "a.pth", [*weights, *hostile], lambda at: read_weights(at / "a.pth")),
        Reader("config of a run (YAML)", "config.yaml", [config, laughs], lambda at: _facts(SavedRun(at))),
        Reader(
            "config of a command (YAML)", "c.yaml", [config, laughs], lambda at: resolve(["--config", f"{at}/c.yaml"])
        ),
        Reader("manifest (JSON)", "m.json", [listed], lambda at: from_manifest(at / "m.json"), beside=pictures[0]),
        Reader("image (PNG, JPEG)", "a.png", [*pictures, _image_bomb()], _read_image),
        Reader("record of probe (JSON)", RECORD, [record], read_record),
        Reader("result of claims (JSON)", "r.json", [b'{"run": "a", "steps": 3}'], lambda at: read_json(at / "r.json")),
        Reader("tensor of the tab", "t.bin", [np.ones((12, 17), dtype="<f4").tobytes(), listed], _read_tensor),
    ]  # fmt: skip


def _facts(run: SavedRun) -> Any:
    return run.config, run.network, run.width, run.regime


def _read_image(folder: Path) -> Any:
    found = ImageSet.from_files([folder / "a.png"], name="a", root=folder, source="x")
    return found.prepared(lambda image: image[:, :1, :1])


def _read_tensor(folder: Path) -> Any:
    content = (folder / "t.bin").read_bytes()
    names, probe = row_names(content)
    values = np.frombuffer(content[: len(content) // 68 * 68], dtype="<f4").reshape(-1, 17)
    try:
        one = Series("run", "tag", probe)
        one.points[1] = point_of(1, 2.0, values, names)
    except ValueError:
        return None
    return json.dumps(described([one]), allow_nan=False)


def _saved(value: Any, new: bool) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, _use_new_zipfile_serialization=new)
    return stream.getvalue()


def _huge_npz() -> bytes:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    return _zipped({"etas.npy": member, "facts.npy": member})


def _zip_bomb() -> bytes:
    return _zipped({"facts.npy": b"\x93NUMPY\x01\x00\x76\x00" + b" " * 10**7, "../../etas.npy": b"x"})


def _zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def _image_bomb() -> bytes:
    stream = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(stream, format="png")
    return stream.getvalue()


def outcomes(reader: Reader, n: int, *, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Feed a reader.

    Args:
        reader: which one.
        n: inputs; the first are its contents as they are.
        seed: of the faults.

    Yields:
        ``value``, ``documented error``, or what else came of it; and the input.

    """
    random = np.random.default_rng([seed, *reader.name.encode()])
    with tempfile.TemporaryDirectory() as base:
        path = Path(base, reader.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        if reader.beside:
            Path(base, "a.png").write_bytes(reader.beside)
        for number in range(n):
            content = reader.seeds[number % len(reader.seeds)]
            if number >= len(reader.seeds):
                content = (mutated, mutated_inside)[number % 2](content, random)
            path.write_bytes(content)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    reader.read(Path(base))
                outcome = "value"
            except reader.allowed as error:
                outcome = "documented error" if "\n" not in str(error) else f"error of several lines: {error}"
            except Exception as error:
                outcome = f"{type(error).__name__}: {str(error)[:100]}"
            if getattr(__builtins__, "lit_bump_was_run", False):
                outcome = "the input was run"
            yield outcome, content


def main() -> None:
    """Print a table; exit code 1 if anything but values and documented errors came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="for each reader")
    parser.add_argument("--only", default="", help="part of a reader's name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="folder for inputs with other outcomes")
    options = parser.parse_args()
    bad = 0
    print("| reader | inputs | values | documented errors | anything else |\n|---|---|---|---|---|")
    for reader in (one for one in readers() if options.only in one.name):
        counts: Counter[str] = Counter()
        feed = functools.partial(outcomes, reader, options.inputs, seed=options.seed)
        for number, (outcome, content) in enumerate(tqdm(feed(), total=options.inputs, desc=reader.name, leave=False)):
            counts[outcome] += 1
            if outcome not in ("value", "documented error") and options.save is not None:
                options.save.mkdir(parents=True, exist_ok=True)
                (options.save / f"{Path(reader.file).name}.{number}").write_bytes(content)
        known = counts.pop("value", 0), counts.pop("documented error", 0)
        bad += sum(counts.values())
        other = "; ".join(f"{n} x {what}" for what, n in counts.most_common(5)) or "0"
        print(f"| {reader.name} | {options.inputs:,} | {known[0]:,} | {known[1]:,} | {other} |", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
