"""What a folder of ``probe`` holds: ``probe.json``, and a profile for every encoder and image set.

Not in the paper. Needs ``measure`` alone, so that figures can be drawn without loading an encoder.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile
from lit_bump.whole_file import whole_file

RECORD = "probe.json"
FORMAT = 1
_UNSAFE = re.compile(r"[/\\\0\ud800-\udfff]|^\.|^\Z")  # as the name of a file or folder below that of the results
_LONGEST = 200  # letters of such a name
_CURE = "run its probe command again into another folder"


@dataclass(frozen=True)
class ProbeResult:
    """Hold the profiles of one encoder on one image set.

    Args:
        encoder: its short name, for legends.
        images: name of the image set.
        profile: as measured; ``context["files"]`` names the images.
        facts: of the encoder: spec, kind, feature, preprocessing, source, digest, notes.

    """

    encoder: str
    images: str
    profile: Profile
    facts: Mapping[str, Any] = field(default_factory=dict)


def load_results(folder: str | os.PathLike[str]) -> list[ProbeResult]:
    """Read the results of ``probe``.

    Args:
        folder: its ``--out``.

    Returns:
        Results in the order of encoders, then image sets, in which they were first asked for. A profile of other images
        than those last measured under the name is left out.

    Raises:
        LitBumpError: if there is no such folder, or no finished profile in it.

    """
    record = read_record(Path(folder))
    results = []
    for encoder in record["encoders"]:
        for images in record["images"]:
            path = profile_path(Path(folder), encoder["slug"], images["name"])
            if not path.is_file():
                continue
            profile = Profile.load(path)
            if profile.context.get("images_digest") == images.get("digest"):  # else of other images under this name
                facts = profile.context.get("encoder_facts", {})  # its own: the record may tell of newer weights
                facts = facts if isinstance(facts, dict) else {}
                results.append(ProbeResult(str(facts.get("label", encoder["label"])), images["name"], profile, facts))
    if not results:
        raise LitBumpError(f"{str(folder)!r} holds no finished profile: run its probe command again, it goes on")
    return distinct(results)


def distinct(results: Sequence[ProbeResult]) -> list[ProbeResult]:
    """Return results so labelled that no two encoders have one name, nor two profiles one name and image set.

    Args:
        results: of one folder or several.

    Returns:
        The same results; encoders of one label have their specs for labels, repeated profiles a number.

    """
    specs: dict[str, set[str]] = {}
    for result in results:
        specs.setdefault(result.encoder, set()).add(str(result.facts.get("spec", result.encoder)))
    taken = Counter[tuple[str, str]]()
    named = []
    for result in results:
        label = result.encoder if len(specs[result.encoder]) == 1 else str(result.facts.get("spec", result.encoder))
        taken[label, result.images] += 1
        number = taken[label, result.images]
        named.append(replace(result, encoder=label if number == 1 else f"{label} ({number})"))
    return named


def is_probe_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder was written by ``probe``.

    Args:
        path: any path.

    """
    return Path(path, RECORD).is_file()


def read_record(folder: Path) -> dict[str, Any]:
    """Return what was asked for: encoders and image sets.

    Args:
        folder: of the results.

    Returns:
        Plain values.

    Raises:
        LitBumpError: if there is no record, or it is not of this format.

    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        sound = record["format"] == FORMAT and all({"slug", "label", "facts"} <= e.keys() for e in record["encoders"])
        sound = sound and all("name" in images.keys() for images in record["images"])  # noqa: SIM118  # of a dict
        sound = sound and not any(_UNSAFE.search(name) or len(name) > _LONGEST for name in _names(record))
    except FileNotFoundError as error:
        raise LitBumpError(f"{str(folder)!r} holds no results of probe: there is no {RECORD} in it") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise LitBumpError(f"{str(path)!r} cannot be read as the record of a probe ({reason}): {_CURE}") from error
    if not sound:
        raise LitBumpError(f"{str(path)!r} is no record of a probe of format {FORMAT}: {_CURE}")
    found: dict[str, Any] = record
    return found


def write_record(folder: Path, encoders: list[dict[str, Any]], images: list[dict[str, Any]]) -> None:
    """Write what was asked for, after what was asked for before.

    Args:
        folder: of the results.
        encoders: ``slug``, ``label`` and ``facts`` of each.
        images: ``name``, ``source``, ``digest`` and ``notes`` of each.

    """
    record: dict[str, Any] = {"format": FORMAT, "encoders": [], "images": []}
    if is_probe_folder(folder):
        record = read_record(folder)
    for key, name, entries in (("encoders", "slug", encoders), ("images", "name", images)):
        kept = {entry[name]: entry for entry in record[key]}
        record[key] = list((kept | {entry[name]: entry for entry in entries}).values())
    with whole_file(folder / RECORD) as partial:
        partial.write_text(json.dumps(record, indent=1), encoding="utf-8")


def profile_path(folder: Path, slug: str, images: str) -> Path:
    """Return where the profile of an encoder on an image set is.

    Args:
        folder: of the results.
        slug: of the encoder.
        images: name of the image set.

    Returns:
        The file, there or not.

    """
    return folder / "profiles" / slug / f"{images}.npz"


def slug(spec: str) -> str:
    """Return a spec as a name for a folder: readable, and another one for another spec.

    Args:
        spec: of an encoder.

    Returns:
        At most 80 letters, digits, ``_``, ``.``, ``-``.

    Example:
        >>> slug("random:timm:resnet18:seed=1")
        'random-timm-resnet18-seed-1'

    """
    import hashlib

    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", spec).strip("-.")
    if len(plain) <= 80 and re.fullmatch(r"[\w.:=+-]+", spec):
        return plain
    return f"{plain[:60].strip('-.')}-{hashlib.sha256(spec.encode()).hexdigest()[:8]}"


def _names(record: dict[str, Any]) -> list[str]:
    return [e["slug"] for e in record["encoders"]] + [images["name"] for images in record["images"]]
