"""A manifest: which files a set is made of, so that somebody else can measure, and check, the same ones.

Not in the paper. Plain JSON with names relative to the set's folder and SHA-256 of every file; it holds no image.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from lit_bump.errors import LitBumpError
from lit_bump.probes.image_set import ImageSet
from lit_bump.whole_file import whole_file

FORMAT = 1
_MOST_BYTES = 2**26  # of a manifest; one of a million files has as many


def manifest(images: ImageSet) -> dict[str, Any]:
    """Return what a set is made of.

    Args:
        images: the set.

    Returns:
        Plain values for JSON.

    """
    entries = [{"name": name, "sha256": digest} for name, digest in zip(images.names, images.digests, strict=True)]
    facts: dict[str, Any] = {
        "name": images.name,
        "source": images.source,
        "blur_sigma": images.blur_sigma,
        "digest": images.digest,
    }
    facts["of_files"] = all(isinstance(item, Path) for item in images.items)
    return {"format": FORMAT, **facts, "notes": list(images.notes), "images": entries}


def save_manifest(images: ImageSet, path: Path) -> Path:
    """Write the manifest of a set.

    Args:
        images: the set.
        path: the file.

    Returns:
        The same path.

    """
    with whole_file(path) as partial:
        partial.write_text(json.dumps(manifest(images), indent=1), encoding="utf-8")
    return path


def from_manifest(path: Path, root: Path | None = None) -> ImageSet:
    """Make the set of a manifest from a folder, after a check that every file is there and the same.

    Args:
        path: the manifest.
        root: folder that its names are relative to; the folder of the manifest where None.

    Returns:
        A set with the digest that the manifest names.

    Raises:
        LitBumpError: if it is no manifest, or files are missing, changed or outside of the folder.

    """
    described = _read(path)
    folder = (root or path.parent).resolve()
    files, missing, changed = [], [], []
    for entry in described["images"]:
        name = entry["name"]
        shown = name if name.isprintable() and len(name) <= 200 else repr(name[:80])
        file, digest = _file_and_digest(folder, name)
        if not file.is_relative_to(folder):
            raise LitBumpError(f"manifest {str(path)!r} names a file outside of its folder: {name[:200]!r}")
        files.append(file)
        if not digest:
            missing.append(shown)
        elif digest != entry["sha256"]:
            changed.append(shown)
    if described.get("of_files") is False:
        raise LitBumpError(f"manifest {str(path)!r} is of images that were no files: name their data set again")
    if problems := [_problem(what, names) for what, names in (("missing", missing), ("changed", changed)) if names]:
        what = " and ".join(problems)
        raise LitBumpError(f"manifest {str(path)!r} does not fit {str(folder)!r}: of {len(files)} images {what}")
    source, sigma = str(described.get("source", "")), described.get("blur_sigma")
    images = ImageSet.from_files(files, name=described["name"], root=folder, source=source)
    images = replace(images, blur_sigma=None if sigma is None else float(sigma))
    if images.digest != described.get("digest"):
        raise LitBumpError(f"the images of manifest {str(path)!r} have another digest than it says")
    return images


def _file_and_digest(folder: Path, name: str) -> tuple[Path, str]:
    """Return the file of a name, and its SHA-256; empty where it cannot be read, or no file can have such a name."""
    file = folder
    try:
        file = (folder / name).resolve()
        is_there = file.is_relative_to(folder) and file.is_file()
        return file, hashlib.sha256(file.read_bytes()).hexdigest() if is_there else ""
    except (OSError, ValueError, RuntimeError):  # links in a circle are a RuntimeError before Python 3.13
        return file, ""


def _problem(what: str, names: list[str]) -> str:
    return f"{len(names)} {what} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LitBumpError(f"{str(path)!r} is no manifest of images: it is too large")
        described = json.loads(path.read_text(encoding="utf-8"))
        entries = described["images"]
        sound = described["format"] == FORMAT and isinstance(described["name"], str) and entries
        sound = sound and all(isinstance(e["name"], str) and isinstance(e["sha256"], str) for e in entries)
        sigma = described.get("blur_sigma")
        sound = sound and (sigma is None or math.isfinite(float(sigma)))
    except OSError as error:
        raise LitBumpError(f"no manifest {str(path)!r}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        if isinstance(error, LitBumpError):
            raise
        sound = False
    if not sound:
        raise LitBumpError(f"{str(path)!r} is no manifest of images (format {FORMAT}), as probe writes them")
    found: dict[str, Any] = described
    return found
