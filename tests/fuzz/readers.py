"""Every reader of files that others may have made, with valid files of its kind and the errors that it documents.

Used by the fuzz tests and by ``scripts/fuzz.py``. ``tried`` judges one input: a value or a documented error of one line
is right; any other exception, a warning, a hang, a process started or a marker of a payload is a fault.
"""

from __future__ import annotations

import io
import json
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image

from lit_bump import config_files
from lit_bump.callbacks.formation_table import formation_row, read_table, write_table
from lit_bump.claims.evidence import read_json, read_result
from lit_bump.encoders.weight_file import read_weights
from lit_bump.errors import LitBumpError
from lit_bump.images.image_files import read_image
from lit_bump.measure import Profile, load_formation
from lit_bump.probes.image_manifest import from_manifest, save_manifest
from lit_bump.probes.image_set import ImageSet
from lit_bump.probing.results import load_results, profile_path, write_record
from lit_bump.runs.checkpoint_file import read_checkpoint
from lit_bump.runs.saved_run import SavedRun
from lit_bump_tensorboard.series import FIRST_ROWS, Series, described, point_of, row_names
from tests.figures.drawn_profiles import drawn_profile
from tests.fuzz.mutated import DEEP, Draw, Payload, json_mutated, mutated, png_mutated, zip_bomb, zip_mutated

SECONDS = 20  # after which an input counts as one that hangs
_STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect", "pty.spawn")
_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


@dataclass(frozen=True)
class Reader:
    """Hold one reader.

    Args:
        name: for tables.
        file: below the folder of an input, where the input is written.
        valid: makes the valid inputs; may leave other files in the folder.
        read: takes the folder and the file.
        change: makes a hostile input of a valid one; the last argument is the path that a payload would make.
        special: inputs that are tried once each, before the random ones.
        errors: what the reader documents.

    """

    name: str
    file: str
    valid: Callable[[Path], list[bytes]]
    read: Callable[[Path, Path], object]
    change: Callable[[bytes, Draw, str], bytes]
    special: Callable[[str], list[bytes]] = lambda _marker: []
    errors: tuple[type[Exception], ...] = (LitBumpError,)


@dataclass
class Tally:
    """Count what inputs have come to.

    Args:
        values: inputs that gave a value.
        errors: inputs that gave a documented error.
        faults: all else, in words, by input.

    """

    values: int = 0
    errors: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self.values + self.errors + len(self.faults)


class Hang(BaseException):
    """Signal that an input takes too long; no reader's ``except Exception`` keeps it."""


_started: list[str] = []
_is_watching = threading.Event()


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS and _is_watching.is_set():
        _started.append(f"{event}{arguments}"[:200])


_has_watch: list[bool] = []


def fuzzed(reader: Reader, folder: Path, n_inputs: int, seed: int) -> Iterator[Tally]:
    """Try a reader on as many inputs, the special ones first.

    Args:
        reader: which one.
        folder: an empty folder to work in.
        n_inputs: random inputs.
        seed: of their draw.

    Yields:
        The tally after every input, always the same object.

    """
    if not _has_watch:
        sys.addaudithook(_watch)  # never goes away; it looks only while a reader is tried
        _has_watch.append(True)
    place = folder / "input" / reader.file
    place.parent.mkdir(parents=True)
    valid = reader.valid(folder / "input")
    marker = folder / "executed"
    draw, tally = np.random.default_rng(seed), Tally()
    for data in valid:  # the harness is worth nothing where valid files are refused
        place.write_bytes(data)
        reader.read(folder / "input", place)
    special = reader.special(str(marker))
    for number in range(-len(special), n_inputs):
        what = f"input {number} of seed {seed}" if number >= 0 else f"special input {number + len(special)}"
        if number < 0:
            data = special[number]
        else:
            data = reader.change(valid[int(draw.integers(len(valid)))], draw, str(marker))
        tried(reader, folder / "input", place, data, tally, what)
        if marker.exists():
            tally.faults.append(f"{reader.name}, {what}: a payload was executed")
            marker.unlink()
        yield tally


def tried(reader: Reader, folder: Path, place: Path, data: bytes, tally: Tally, what: str) -> None:
    """Give one input to a reader, and count what comes of it.

    Args:
        reader: which one.
        folder: of the input.
        place: of the file.
        data: the input.
        tally: to count in.
        what: names the input.

    """
    place.write_bytes(data)
    _started.clear()
    fault = ""
    try:
        with warnings.catch_warnings(), _limited(SECONDS):
            warnings.simplefilter("error")
            _is_watching.set()
            reader.read(folder, place)
    except reader.errors as error:
        text = str(error)
        if "\n" in text or not text or len(text) > 2000:
            fault = f"its message is no short line: {text[:300]!r}"
        tally.errors += not fault
    except (Exception, Hang) as error:
        fault = f"{type(error).__name__}: {str(error)[:300]}"
    else:
        tally.values += 1
    finally:
        _is_watching.clear()
    if _started:
        fault = f"it started {_started[0]}"
    if fault:
        tally.faults.append(f"{reader.name}, {what}: {fault}")


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise ``Hang`` in the block after some seconds, where signals can be had."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _bytes_or_zip(data: bytes, draw: Draw, marker: str) -> bytes:
    if data[:2] != b"PK" or draw.random() < 0.4:
        return mutated(data, draw)
    return zip_mutated(data, draw, marker)


def _bytes_or_json(data: bytes, draw: Draw, _marker: str) -> bytes:
    return mutated(data, draw) if draw.random() < 0.3 else json_mutated(data, draw)


def _bytes_or_png(data: bytes, draw: Draw, _marker: str) -> bytes:
    return png_mutated(data, draw) if data[:4] == b"\x89PNG" and draw.random() < 0.5 else mutated(data, draw)


def _only_bytes(data: bytes, draw: Draw, _marker: str) -> bytes:
    return mutated(data, draw)


def _facts_or_zip(data: bytes, draw: Draw, marker: str) -> bytes:
    """Return a profile whose JSON of facts is changed, or the archive around it."""
    if draw.random() < 0.6:
        return _bytes_or_zip(data, draw, marker)
    with np.load(io.BytesIO(data)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    if draw.random() < 0.5:
        arrays["facts"] = np.array(json_mutated(str(arrays["facts"]).encode(), draw).decode())
    else:
        name = sorted(arrays)[int(draw.integers(len(arrays)))]
        kinds: list[Callable[[np.ndarray], Any]] = [
            lambda a: a[:-1] if a.ndim else a, lambda a: a.astype(str), lambda a: a.T, lambda a: a[..., None],
            lambda _: np.array(3.0), lambda a: np.full(a.shape, np.inf), lambda a: np.full(a.shape, -7), np.array,
            lambda a: np.full(a.shape, 1e308), lambda a: np.full(a.shape, 1j), lambda a: np.full(a.shape, 200),
        ]  # fmt: skip
        arrays[name] = kinds[int(draw.integers(len(kinds)))](arrays[name])
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _profiles(folder: Path) -> list[bytes]:
    made = []
    for n_images, height in ((1, 0.0), (3, 0.5)):
        path = drawn_profile(height, n_images=n_images, n_lost=n_images // 2).save(folder / "valid.npz")
        made.append(path.read_bytes())
        path.unlink()
    return made


def _used(profile: Profile) -> object:
    return repr(profile.context), profile.reasons(), profile.images_digest, profile.n_kept(), profile.seconds + 1.0


def _huge_npz(shape: str, dtype: str = "<f8") -> bytes:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("facts", "etas", "ratio"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
    return file.getvalue()


def _hostile_profiles(marker: str) -> list[bytes]:
    shapes = ("(1000000000000,)", "(4000000000,)", "(" * 60 + ")" * 60, "(-1,)", f"({'9' * 60},)", "(1, " * 90)
    pickled = pickle.dumps(Payload(marker))
    return [
        b"", pickled, b"\x93NUMPY" + pickled, zip_bomb("facts.npy"), *map(_huge_npz, shapes),
        _huge_npz("(1000000000000,)", "<U0"), _huge_npz("(3,)", "|O"), _huge_npz("()", "<U1000000000"),
    ]  # fmt: skip


def _checkpoints(_folder: Path) -> list[bytes]:
    content = {
        "state_dict": {"w": torch.arange(6.0).reshape(2, 3), "b": torch.zeros(2, dtype=torch.float16)},
        "global_step": 7,
        "pytorch-lightning_version": "2.6",
        "hyper_parameters": {"lr": 0.1, "names": ["a", "b"]},
    }
    return [_saved(content), _saved(content, _use_new_zipfile_serialization=False)]


def _saved(content: object, **how: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **how)
    return file.getvalue()


def _hostile_checkpoints(marker: str) -> list[bytes]:
    payload = {"state_dict": Payload(marker), "global_step": 1}
    laughs: list[Any] = ["x"]
    for _ in range(11):
        laughs = [laughs] * 20
    deep: list[Any] = []
    for _ in range(150):  # deeper ones cannot be pickled
        deep = [deep]
    legacy: dict[str, Any] = {"_use_new_zipfile_serialization": False}
    base = torch.zeros(3)
    held = {"global_step": 1}
    return [
        b"", pickle.dumps(payload), _saved(payload), _saved(payload, **legacy), zip_bomb("archive/data.pkl"),
        _saved({"state_dict": laughs, **held}), _saved({"state_dict": laughs, **held}, **legacy),
        _saved({"state_dict": deep, **held}), _saved({"state_dict": {"w": base.expand(10**9, 3)}, **held}),
        *(_strided(*how) for how in (((10**12,), (0,), 0), ((2,), (10**11,), 0), ((2,), (1,), 10**11))),
        *(_strided(*how, **legacy) for how in (((10**12,), (0,), 0), ((2,), (10**11,), 0), ((2,), (1,), 10**11))),
    ]  # fmt: skip


class _Strided:
    """A tensor whose pickle claims another size, stride and offset than its storage has room for."""

    def __init__(self, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
        typed: Any = torch.storage.TypedStorage
        storage = typed(wrap_storage=torch.zeros(3).untyped_storage(), dtype=torch.float32)
        self.how: tuple[Any, ...] = (storage, offset, size, stride, False, {})

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return torch._utils._rebuild_tensor_v2, self.how


def _strided(size: tuple[int, ...], stride: tuple[int, ...], offset: int, **how: Any) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _saved({"state_dict": {"w": _Strided(size, stride, offset)}, "global_step": 1}, **how)


def _safetensors(_folder: Path) -> list[bytes]:
    from safetensors.torch import save

    return [save({"w": torch.arange(6.0).reshape(2, 3), "b": torch.zeros(2)})]


def _configs(_folder: Path) -> list[bytes]:
    packaged = [path.read_bytes() for path in config_files.packaged().values()]
    own = {
        "model": {"class_path": "a.AdversarialClassifierModule", "init_args": {"eps": 0.5, "norm": "L2", "width": 8}},
        "data": {"class_path": "a.BlurredCIFAR10DataModule", "init_args": {"sigma": 1.0}},
        "shared": ["a", "b"],
    }
    return [*packaged[:3], yaml.safe_dump(own).encode(), b"model: {network: &n {class_path: a.B}}\nother: *n\n"]


def _hostile_configs(marker: str) -> list[bytes]:
    texts = [
        "", "[", "[" * DEEP, "{a: " * DEEP, "- " * 5000, _LAUGHS,
        f"{_LAUGHS}model: {{network: {{class_path: *a11}}}}\n",
        f"{_LAUGHS}model: {{class_path: *a11}}\n", "model: &a {network: *a}\n", "&a [*a]: 1", "<<: *b", "a: 2001-99-99",
        f"model: !!python/object/apply:os.system ['touch {marker}']", "a: !!int x", "a: !!bool x", "a: !!float x",
        "a: !!timestamp x", "a: !!binary x", f"model: {{width: {'9' * 6000}}}", "? {a: 1}\n: 2", "? [a]\n: 2", "a: 0b",
        "a: 1:99:99", "a: !!set x", "a: !!omap [x]", "a: !!pairs [x]", "\0", "%YAML 9.9\n---\na", "a: \"\\xq\"",
        "a: &x [1]\n" + "b: {<<: [" + ", ".join(["{a: 1}"] * 1000) + "]}\n",
        "m0: &m0 {a: 1}\n" + "".join(f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}\n" for i in range(1, 12)),
        *(f"data: {{class_path: a.Blurred, init_args: {{sigma: {value}}}}}" for value in ("[]", "x", ".nan", ".inf")),
        *(f"model: {{class_path: a.Adversarial, init_args: {{eps: {value}}}}}" for value in ("[1]", "x", ".inf")),
        f"model: {{class_path: a.Adversarial, init_args: {{norm: Linf, eps: {'9' * 400}}}}}",
        "model: {class_path: a.Adversarial, init_args: {norm: Linf, eps: .inf}}",
    ]  # fmt: skip
    return [text.encode() for text in texts]


def _of_run(folder: Path, _file: Path) -> object:
    run = SavedRun(folder)
    return run.config, run.network, run.width, run.regime


def _hparams_of_run(folder: Path, _file: Path) -> object:
    run = SavedRun(folder)
    return run.network, run.width, run.regime


def _resolved(_folder: Path, file: Path) -> object:
    name = file.read_bytes().decode("utf-8", "replace").replace("\0", "")
    return config_files.resolve(["--config", name]), config_files.resolve([f"--config={file}"])


def _manifests(folder: Path) -> list[bytes]:
    made = []
    for n in (1, 3):
        for i in range(n):
            Image.new("RGB", (4, 4), (i, 0, 0)).save(folder / f"{i}.png")
        files = sorted(folder.glob("*.png"))
        images = ImageSet.from_files(files, name="few", root=folder, source="made up")
        images = images if n == 1 else images.blurred(2.0, name="few-blur")
        made.append(save_manifest(images, folder / "valid.json").read_bytes())
    return made


def _images(_folder: Path) -> list[bytes]:
    draw = np.random.default_rng(0)
    rgb = Image.fromarray(draw.integers(0, 256, (9, 11, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a picture"
    grey16 = Image.fromarray(draw.integers(0, 60_000, (9, 11), dtype=np.uint16))
    palette = rgb.convert("P")
    kinds: list[tuple[Image.Image, str, dict[str, Any]]] = [
        (rgb, "PNG", {}), (rgb, "PNG", {"exif": exif}), (rgb.convert("RGBA"), "PNG", {}), (rgb.convert("L"), "PNG", {}),
        (palette, "PNG", {"transparency": 0}), (grey16, "PNG", {}), (rgb, "JPEG", {"exif": exif}),
        (rgb, "JPEG", {"progressive": True}), (rgb.convert("CMYK"), "JPEG", {}), (rgb, "BMP", {}), (palette, "BMP", {}),
        (rgb, "TIFF", {"compression": "tiff_lzw"}), (rgb, "TIFF", {}), (grey16, "TIFF", {}),
        (rgb, "WEBP", {"lossless": True}), (rgb.convert("RGBA"), "WEBP", {"exif": exif}),
    ]  # fmt: skip
    made = []
    for image, kind, how in kinds:
        file = io.BytesIO()
        image.save(file, format=kind, **how)
        made.append(file.getvalue())
    return made


def _hostile_images(marker: str) -> list[bytes]:
    eps = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n({marker}) (w) file closefile\n%%EOF\n"
    bitmap = io.BytesIO()
    Image.new("RGB", (8, 8)).save(bitmap, format="BMP")
    wide = bytearray(bitmap.getvalue())
    wide[18:26] = (100_000).to_bytes(4, "little") * 2
    ppm = b"P6 100000 100000 255\n"
    return [
        b"",
        eps.encode(),
        bytes(wide),
        ppm,
        b"P6 8 8 255\n" + bytes(192),
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a" + b"\xff" * 99,
    ]


def _tables(folder: Path) -> list[bytes]:
    path = folder / "valid.csv"
    write_table(path, [formation_row(drawn_profile(0.5, step=step)) for step in (0, 1, 40)])
    return [path.read_bytes()]


def _hostile_tables(_marker: str) -> list[bytes]:
    return [b"", b"\0", b"step,probe\n" + b"x" * 200_000, b'"' * 99_999, b"a\n1,2,3\n", b"step,probe\n,\n"]


def _table(folder: Path, file: Path) -> object:
    rows = read_table(file)
    assert all(isinstance(value, str) for row in rows for value in row.values())
    write_table(file, [])  # every row is sorted by its step
    return rows


def _results(folder: Path) -> list[bytes]:
    profile = drawn_profile(0.5, n_images=2)
    encoders = []
    for name in ("a", "b"):
        facts = {"label": name, "spec": f"timm:{name}", "kind": "timm"}
        context = profile.with_context(images_digest="d", encoder_facts=facts)
        context.save(profile_path(folder, name, "few"))
        encoders.append({"slug": name, "label": name, "facts": facts})
    write_record(folder, encoders, [{"name": "few", "source": "s", "digest": "d", "notes": []}])
    return [(folder / "probe.json").read_bytes()]


def _claims(_folder: Path) -> list[bytes]:
    result = {"run": "version_0", "checkpoint": "checkpoints/step_00000004.ckpt", "steps": 4, "metrics": {"a": 0.5}}
    return [json.dumps({**result, "condition": "c", "command": "python"}).encode()]


def _claim(folder: Path, file: Path) -> object:
    result = read_result(folder)
    if result is not None:
        parts = (folder / result["run"]).resolve(), (folder / result["run"] / result["checkpoint"]).resolve()
        assert all(part.is_relative_to(folder.resolve()) for part in parts), parts
        assert f"{result['steps']:08d}", result
        assert all(isinstance(value, float) for value in result["metrics"].values()), result
    return read_json(file)


def _tensors(_folder: Path) -> list[bytes]:
    draw = np.random.default_rng(0)
    made = []
    for dtype in (np.float32, np.float64):
        table = np.concatenate([np.linspace(-2, 1, 7)[None], draw.random((6, 7))]).astype(dtype)
        file = io.BytesIO()
        np.save(file, table)
        made.append(file.getvalue())
    return made


def _tensor(_folder: Path, file: Path) -> object:
    data = file.read_bytes()
    names = [*FIRST_ROWS, "bump"]
    try:
        table = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception:  # not what is tried here: the numbers themselves are
        values = np.frombuffer(data[: len(data) // 56 * 56], dtype=np.float64)
        table = values.reshape(7, -1) if len(values) else np.zeros((0, 0))
    point = point_of(1, 1.0, table, names)
    return json.dumps(described([Series("r", "t", "p", {1: point})]), allow_nan=False)


def _words(_folder: Path) -> list[bytes]:
    return [json.dumps({"rows": [*FIRST_ROWS, "bump"], "probe": "p"}).encode()]


def _said(_folder: Path, file: Path) -> object:
    names, probe = row_names(file.read_bytes())
    assert tuple(names[:5]) == FIRST_ROWS
    assert isinstance(probe, str)
    return names


_FORMATION = "profiles/p/step_00000001.npz"
READERS = {
    reader.name: reader
    for reader in (
        Reader("profile", "p.npz", _profiles, lambda _, file: _used(Profile.load(file)), _facts_or_zip,
               _hostile_profiles),
        Reader("formation", _FORMATION, _profiles, lambda folder, _: load_formation(folder), _facts_or_zip,
               _hostile_profiles, (LitBumpError, FileNotFoundError)),
        Reader("table", "formation.csv", _tables, _table, _only_bytes, _hostile_tables),
        Reader("checkpoint", "c.ckpt", _checkpoints, lambda _, file: read_checkpoint(file), _bytes_or_zip,
               _hostile_checkpoints),
        Reader("weights", "w.pth", _checkpoints, lambda _, file: read_weights(file), _bytes_or_zip,
               _hostile_checkpoints),
        Reader("safetensors", "w.safetensors", _safetensors, lambda _, file: read_weights(file), _only_bytes),
        Reader("config", "config.yaml", _configs, _of_run, _only_bytes, _hostile_configs),
        Reader("hparams", "hparams.yaml", _configs, _hparams_of_run, _only_bytes, _hostile_configs),
        Reader("config name", "c.yaml", lambda _: [b"quickstart"], _resolved, _only_bytes,
               lambda _: [b"x" * 300, b"x/" * 3000, b"..", b"~", b"\xff"]),
        Reader("manifest", "m.json", _manifests, lambda _, file: from_manifest(file), _bytes_or_json),
        Reader("image", "i.png", _images, lambda _, file: read_image(file), _bytes_or_png, _hostile_images),
        Reader("results", "probe.json", _results, lambda folder, _: load_results(folder), _bytes_or_json),
        Reader("claim", "result.json", _claims, _claim, _bytes_or_json, lambda _: [b"[" * DEEP]),
        Reader("tab tensor", "t.npy", _tensors, _tensor, _only_bytes, errors=(ValueError,)),
        Reader("tab words", "w.json", _words, _said, _bytes_or_json, lambda _: [b"[" * DEEP]),
    )
}  # fmt: skip
