"""The results of a grid as tables: on the screen, and as tidy CSV files.

Not in the paper. Needs rich for the screen.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lit_bump.measure import Reason
from lit_bump.probing.results import ProbeResult
from lit_bump.whole_file import whole_file

Row = dict[str, Any]


def cell_row(result: ProbeResult) -> Row:
    """Return one row that sums a result up.

    Args:
        result: of an encoder on an image set.

    Returns:
        Plain values by column; NaN where the bump has no such property.

    """
    profile, bump = result.profile, result.profile.bump()
    return {
        "encoder": result.encoder,
        "spec": result.facts.get("spec", ""),
        "feature": result.facts.get("feature", ""),
        "images": result.images,
        "verdict": str(bump.verdict),
        "max_r": bump.height,
        "max_r_low": bump.height_interval[0],
        "max_r_high": bump.height_interval[1],
        "eta": bump.eta,
        "eta_low": 10 ** bump.log10_eta_interval[0],
        "eta_high": 10 ** bump.log10_eta_interval[1],
        "width_decades": bump.width_decades,
        "n_images": profile.n_images,
        "n_kept": int(profile.n_kept().min()),
        "protocol": str(profile.protocol),
        "seconds": profile.seconds,
    }


def write_tables(folder: Path, results: Sequence[ProbeResult]) -> list[Path]:
    """Write ``profiles.csv``, a row an image and rung, and ``summary.csv``, a row an encoder and image set.

    Args:
        folder: where to.
        results: of the whole folder.

    Returns:
        The two files, each whole.

    """
    summary = [cell_row(result) for result in results]
    _write(folder / "summary.csv", iter(summary))
    _write(folder / "profiles.csv", _tidy(results))
    return [folder / "profiles.csv", folder / "summary.csv"]


def print_table(results: Sequence[ProbeResult]) -> None:
    """Print the table of some results.

    Args:
        results: in the order to show.

    """
    table = Table(title="Response profiles", title_justify="left", header_style="bold")
    for name in ("encoder", "images", "verdict", "max r [90 %]", "peak at eta [90 %]", "kept", "seconds"):
        left = name in ("encoder", "images", "verdict")
        table.add_column(name, justify="left" if left else "right", no_wrap=name == "verdict", overflow="fold")
    for row in map(cell_row, results):
        peak = _interval(row["eta"], row["eta_low"], row["eta_high"]) if row["verdict"] == "bump" else "-"
        table.add_row(
            row["encoder"],
            row["images"],
            row["verdict"],
            _interval(row["max_r"], row["max_r_low"], row["max_r_high"]),
            peak,
            f"{row['n_kept']} of {row['n_images']}",
            f"{row['seconds']:.0f}",
        )
    Console().print(table)


def _interval(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3g}" if math.isnan(low) else f"{value:.3g} \\[{low:.3g}, {high:.3g}]"


def _tidy(results: Sequence[ProbeResult]) -> Iterator[Row]:
    for result in results:
        profile = result.profile
        size = result.facts.get("input_size")
        pixels = math.prod(size) if size else math.nan
        files = profile.context.get("files") or [""] * profile.n_images
        for image in range(profile.n_images):
            for rung, eta in enumerate(profile.etas):
                yield {
                    "encoder": result.encoder,
                    "images": result.images,
                    "image": image,
                    "file": files[image],
                    "rung": rung,
                    "eta": float(eta),
                    "eta_per_pixel": float(eta / math.sqrt(pixels)),
                    "ratio": float(profile.ratio[image, rung]),
                    "response": float(profile.response[image, rung]),
                    "prediction": float(profile.prediction[image]),
                    "standard_error": float(profile.standard_error[image, rung]),
                    "n_directions": int(profile.n_directions[image, rung]),
                    "reason": Reason(int(profile.reason[image, rung])).name.lower(),
                }


def _write(path: Path, rows: Iterator[Row]) -> None:
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow({name: _text(value) for name, value in row.items()})


def _text(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.8g}"
    return value
