"""The table of a formation: one row per measured step and probe set, as plain values for files, states and people.

Paper: section 3 "Formation". Imports ``measure``. A row is made of a profile and the facts in its context, so the
table can always be made again from the saved profiles.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile
from lit_bump.measure.bump import CONFIDENCE, median_over_images
from lit_bump.whole_file import whole_file

Row = dict[str, Any]
COLUMNS = (
    "step",
    "probe",
    "verdict",
    "max_r",
    "max_r_low",
    "max_r_high",
    "eta",
    "log10_eta",
    "log10_eta_low",
    "log10_eta_high",
    "width_decades",
    "onset_eta",
    "intervals",
    "n_images",
    "n_kept",
    "thinned_se",
    "seconds",
    "share",
)
_CURE = "remove it, it is made anew from the profiles"


def formation_row(profile: Profile) -> Row:
    """Return the row of a profile.

    Args:
        profile: its context tells step, probe, seconds and share.

    Returns:
        Plain values by column; NaN where the bump has no such property. ``n_kept`` is the smallest number of images
        kept at any rung, ``intervals`` the confidence of the columns ``_low`` and ``_high``, ``share`` the part of the
        time since training began that all measurements up to here have taken. ``thinned_se`` is there where a budget
        has raised the standard error: that of the middle image, over its ratio, at the worst rung.

    """
    bump, facts = profile.bump(), profile.context
    row = {
        "step": int(facts["step"]),
        "probe": str(facts["probe"]),
        "verdict": str(bump.verdict),
        "max_r": bump.height,
        "max_r_low": bump.height_interval[0],
        "max_r_high": bump.height_interval[1],
        "eta": bump.eta,
        "log10_eta": bump.log10_eta,
        "log10_eta_low": bump.log10_eta_interval[0],
        "log10_eta_high": bump.log10_eta_interval[1],
        "width_decades": bump.width_decades,
        "onset_eta": bump.onset_eta,
        "intervals": CONFIDENCE,
        "n_images": profile.n_images,
        "n_kept": int(profile.n_kept().min()),
        "thinned_se": _thinned_se(profile),
        "seconds": facts.get("seconds", profile.seconds),
        "share": facts.get("share", math.nan),
    }
    return {name: float(value) if isinstance(value, float) else value for name, value in row.items()}


def _thinned_se(profile: Profile) -> float:
    if not profile.gave_up or profile.protocol.target_se is None:  # a protocol of fixed pairs gives up nothing
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = median_over_images(profile.standard_error / profile.ratio)
    return float(middle[np.isfinite(middle)].max(initial=0.0))


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as a CSV file that appears whole or not at all; rows of other probe sets in it are kept.

    Args:
        path: the file.
        rows: of some probe sets; all rows that the file has of these are replaced. A file that is no table is replaced
            too, since the profiles tell all that it could have: a run must not end over it.

    """
    rows = list(rows)
    probes = {row["probe"] for row in rows}
    try:
        others = [row for row in read_table(path) if row.get("probe") not in {None, *probes}]
    except LitBumpError:
        others = []
    others = [row for row in others if row.get("step", "").isascii() and row.get("step", "").isdecimal()]
    lines = sorted([*others, *map(_text, rows)], key=lambda row: (int(row["step"]), row["probe"]))
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", restval="")
        writer.writeheader()
        writer.writerows(lines)


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table as text.

    Args:
        path: the file; it need not exist.

    Returns:
        Text by column, one a row; an empty text where a value is undefined.

    Raises:
        LitBumpError: if it is no text, or no table.

    """
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows: list[dict[Any, Any]] = list(csv.DictReader(file))
    except (ValueError, csv.Error) as error:
        reason = " ".join(str(error).split())[:200]
        raise LitBumpError(f"{path} is no table that can be read ({reason}); {_CURE}") from error
    if any(None in row or None in row.values() for row in rows):
        raise LitBumpError(f"{path} is no table that can be read (rows of other lengths than its head); {_CURE}")
    return rows


def _text(row: Row) -> dict[str, str]:
    undefined = {name for name, value in row.items() if isinstance(value, float) and math.isnan(value)}
    return {
        name: "" if name in undefined else f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in row.items()
    }
