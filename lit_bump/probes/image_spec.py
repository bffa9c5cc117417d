"""How an image set is named on the command line: ``kind:where@n=16,seed=1``, a folder, or a probe set's name.

Paper: A.2 "Evaluation sets". Needs the image sets and the registry of probe sets. Classes by a dotted path are imported
only where the user names one.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lit_bump.errors import LitBumpError, nearest
from lit_bump.images.image_files import image_files
from lit_bump.probes.demo_images import demo_images
from lit_bump.probes.image_manifest import from_manifest
from lit_bump.probes.image_set import ImageSet, checked_name, name_of
from lit_bump.probes.imagenet_sets import BLUR_SIGMA, drawn_images, one_a_class
from lit_bump.probes.probe_registry import PROBE_SETS, named_probe_set
from lit_bump.probes.probe_set import drawn_order

IMAGE_SETS = MappingProxyType(
    {
        "demo": "six photographs inside scikit-image (pip install 'lit-bump[demo]')",
        "folder:DIR": "all images in a folder and below; a path alone means the same; @n=16,seed=1 draws some",
        "files:LIST.txt": "the images that a text file names, a path a line",
        "val64:DIR": "ImageNet validation, a folder a class: the first image of each of 64 seeded classes",
        "blur64:DIR": "the images of val64, Gaussian blur of sigma 2 at 512 px before the resize",
        "a64:DIR": "64 seeded images of ImageNet-A",
        "o64:DIR": "64 seeded images of ImageNet-O",
        "sd64:DIR:VALDIR": "a Stable Diffusion render for each class of val64, from folders of the same names",
        "manifest:FILE:DIR": "the images that a manifest names, checked; probe writes one for every set",
        "torchvision:CLASS:DIR": "64 seeded images of a torchvision data set, such as torchvision:STL10:DIR",
        "import:package.function": "64 seeded images of the data set that a function of yours returns",
        "cifar32, shapes32, ...": "a probe set by its name, resized as the encoder wants it",
    }
)
_OPTIONS = ("n", "seed", "name")


def image_set(spec: str, *, data_dir: str | Path | None = None, seed: int = 0) -> ImageSet:
    """Make the image set of a spec.

    Args:
        spec: one of ``IMAGE_SETS``; ``@n=16``, ``@seed=1`` and ``@name=mine`` may follow.
        data_dir: where CIFAR-10 is, for the probe sets that need it.
        seed: of draws, where the spec names none.

    Returns:
        The set, every file read once.

    Raises:
        LitBumpError: if there is no such set (the nearest name is given), or its images cannot be read.

    Example:
        >>> len(image_set("shapes32@n=4"))
        4

    """
    where, options = _parsed(spec)
    if not where:
        raise LitBumpError(f"image set {spec!r} names nothing: give one of {', '.join(_KINDS)}, or a folder")
    kind, _, rest = where.partition(":")
    n = int(options["n"]) if "n" in options else None
    options_seed = int(options.get("seed", seed))
    if kind in _KINDS and (rest or kind == "demo"):
        images = _KINDS[kind](rest, n, options_seed)
    elif Path(where).is_dir():
        images = _folder(where, n, options_seed)
    elif re.fullmatch(r"(cifar|shapes|noise)\d.*", where):
        images = _probe_set(where, n, options_seed, data_dir)
    elif any(mark in where for mark in "/\\") and kind not in _KINDS:
        raise LitBumpError(f"no folder {where!r} to read images from")
    else:
        known = [*_KINDS, *PROBE_SETS]
        lacks = f" needs a place, such as {kind}:DIR" if kind in _KINDS else nearest(where.split(":")[0], known)
        raise LitBumpError(f"image set {where!r}{lacks}" if kind in _KINDS else f"no image set {where!r}{lacks}")
    return replace(images, name=checked_name(options["name"])) if "name" in options else images


def _parsed(spec: str) -> tuple[str, dict[str, str]]:
    where, mark, text = spec.rpartition("@")
    if not mark or not re.fullmatch(r"\w+=[^,=]+(,\w+=[^,=]+)*", text):  # an @ may be part of a path
        return spec, {}
    options = dict(part.split("=", 1) for part in text.split(","))
    for name, value in options.items():
        if name not in _OPTIONS:
            raise LitBumpError(f"image set {spec!r} has no option {name!r}{nearest(name, _OPTIONS)}")
        if name != "name" and not (value.isdigit() and len(value) < 10):
            raise LitBumpError(f"image set {spec!r}: {name} is {value!r}; give a whole number")
        if name == "n" and int(value) < 1:
            raise LitBumpError(f"image set {spec!r}: n is {value}; give at least 1")
    return where, options


def _folder(where: str, n: int | None, seed: int) -> ImageSet:
    folder = Path(where)
    files = image_files(folder)
    drawn = "" if n is None else f", {n} of {len(files)}, seed {seed}"
    if n is not None:
        files = [files[i] for i in drawn_order(len(files), n, seed, f"folder {where}")]
    return ImageSet.from_files(
        files, name=name_of(folder), root=folder, source=f"folder {folder.resolve().name}{drawn}"
    )


def _files(where: str, n: int | None, seed: int) -> ImageSet:
    path = Path(where)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise LitBumpError(f"no list of images {where!r}: {' '.join(str(error).split())}") from error
    files = [path.parent / line for line in lines if line and not line.startswith("#")]
    if not files:
        raise LitBumpError(f"the list {where!r} names no image")
    if n is not None:
        files = [files[i] for i in drawn_order(len(files), n, seed, f"list {where}")]
    root = Path(os.path.commonpath([file.resolve().parent for file in files]))
    return ImageSet.from_files(files, name=name_of(path), root=root, source=f"list {path.name}")


def _many(n: int | None) -> int:
    return 64 if n is None else n


def _sized(base: str, n: int | None) -> str:
    return f"{base}{_many(n)}"


def _val(where: str, n: int | None, seed: int) -> ImageSet:
    return one_a_class(Path(where), name=_sized("val", n), n=_many(n), seed=seed)


def _blur(where: str, n: int | None, seed: int) -> ImageSet:
    return _val(where, n, seed).blurred(BLUR_SIGMA, name=_sized("blur", n))


def _a(where: str, n: int | None, seed: int) -> ImageSet:
    return drawn_images(Path(where), name=_sized("a", n), n=_many(n), seed=seed)


def _o(where: str, n: int | None, seed: int) -> ImageSet:
    return drawn_images(Path(where), name=_sized("o", n), n=_many(n), seed=seed)


def _sd(where: str, n: int | None, seed: int) -> ImageSet:
    renders, mark, validation = where.partition(":")
    classes = None
    if mark:
        classes = [Path(name).parts[0] for name in _val(validation, n, seed).names]
    return one_a_class(Path(renders), name=_sized("sd", n), n=_many(n), seed=seed, classes=classes)


def _manifest(where: str, n: int | None, seed: int) -> ImageSet:
    path, _, root = where.partition(":")
    if n is not None:
        raise LitBumpError(f"manifest {path!r} fixes its images: leave @n={n} out")
    return from_manifest(Path(path), Path(root) if root else None)


def _torchvision(where: str, n: int | None, seed: int) -> ImageSet:
    import inspect

    from torchvision import datasets

    kind, _, root = where.partition(":")
    found = getattr(datasets, kind, None)
    if not (inspect.isclass(found) and issubclass(found, datasets.VisionDataset)):
        raise LitBumpError(f"torchvision has no data set {kind!r}{nearest(kind, datasets.__all__)}")
    accepted = inspect.signature(found).parameters
    split: dict[str, Any] = {"train": False} if "train" in accepted else {}
    split |= {"split": "test"} if "split" in accepted and kind != "ImageNet" else {}
    split |= {"split": "val"} if kind == "ImageNet" else {}
    try:
        made: Any = found
        dataset = made(root or ".", **split)
    except Exception as error:  # whatever a data set raises where its files are not there
        raise LitBumpError(f"torchvision's {kind} cannot be read from {root!r}: {_line(error)}") from error
    return ImageSet.from_dataset(dataset, name=name_of(Path(kind.lower())), n_images=_most(dataset, n), seed=seed)


def _imported(where: str, n: int | None, seed: int) -> ImageSet:
    module, _, function = where.rpartition(".")
    try:
        made: Any = getattr(importlib.import_module(module or "lit_bump"), function)()
    except Exception as error:  # whatever the user's code raises
        raise LitBumpError(f"import:{where} cannot be used as a data set: {_line(error)}") from error
    if isinstance(made, ImageSet):
        return made
    return ImageSet.from_dataset(made, name=name_of(Path(function)), n_images=_most(made, n), seed=seed)


def _most(dataset: Any, n: int | None) -> int:
    return n if n is not None else min(64, len(dataset) if hasattr(dataset, "__len__") else 64)


def _demo(_where: str, n: int | None, seed: int) -> ImageSet:
    if n is not None:
        raise LitBumpError(f"image set 'demo' has six photographs: leave @n={n} out")
    return demo_images()


def _probe_set(name: str, n: int | None, seed: int, data_dir: str | Path | None) -> ImageSet:
    chosen = name if n is None else re.sub(r"^(cifar|shapes|noise)\d+", rf"\g<1>{n}", name)
    probe = named_probe_set(chosen, data_dir=data_dir, seed=seed)
    names = [f"item {i}" for i in range(len(probe))]
    return ImageSet.from_pixels(list(probe.images), name=probe.name, names=names, source=probe.source)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


_KINDS: dict[str, Callable[[str, int | None, int], ImageSet]] = {
    "demo": _demo,
    "folder": _folder,
    "files": _files,
    "val64": _val,
    "blur64": _blur,
    "a64": _a,
    "o64": _o,
    "sd64": _sd,
    "manifest": _manifest,
    "torchvision": _torchvision,
    "import": _imported,
}
