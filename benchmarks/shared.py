"""What every part shares: the setting, the machine in one line, Markdown tables and the file that keeps them.

Needs torch alone. A table names the machine that it was measured on, since parts may be run on different ones.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

Budget = Literal["tiny", "small", "full"]
Choice = TypeVar("Choice")
ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Measured\n\nMade by `python -m benchmarks`; `--help` says how.\n"


@dataclass(frozen=True)
class Setting:
    """Say how much to run, and where.

    Args:
        budget: ``tiny`` for the smoke test, ``small`` for a look, ``full`` for the numbers that are published.
        repeats: how often each side is timed.
        device: of the encoders and images.
        cache: folder of trained networks.
        only: networks whose name holds this are compared, the others left out.

    """

    budget: Budget = "small"
    repeats: int = 3
    device: str = "cpu"
    cache: Path = Path.home() / ".cache" / "lit_bump" / "benchmarks"
    only: str = ""

    def pick(self, tiny: Choice, small: Choice, full: Choice) -> Choice:
        """Return the one for this budget."""
        return {"tiny": tiny, "small": small, "full": full}[self.budget]

    def etas(self, etas: tuple[float, ...]) -> tuple[float, ...]:
        """Return the ladder, or three rungs of it for the smoke test."""
        return etas[4::5] if self.budget == "tiny" else etas


@dataclass
class Table:
    """Hold a Markdown table.

    Args:
        title: what is compared, n and sizes included.
        head: names of the columns.
        rows: cells.
        notes: sentences below it.

    """

    title: str
    head: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """Append a row; numbers are shown with three digits."""
        self.rows.append([shown(cell) for cell in cells])
        print("  " + " | ".join(self.rows[-1]), file=sys.stderr, flush=True)  # progress

    def markdown(self) -> str:
        """Return title, table and notes."""
        lines = [f"**{self.title}**", "", f"| {' | '.join(self.head)} |", "|" + "---|" * len(self.head)]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"


def shown(cell: object) -> str:
    """Return a cell as text: three digits of a number, more of a large one."""
    if not isinstance(cell, float):
        return str(cell)
    if not math.isfinite(cell):
        return "-"
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"


def shown_range(values: Iterable[float], scale: float = 1.0) -> str:
    """Return least and greatest of some values; those that are not finite are left out."""
    kept = [scale * float(value) for value in values if math.isfinite(value)]
    return f"{shown(min(kept))}-{shown(max(kept))}" if kept else "-"


def machine(setting: Setting) -> str:
    """Return processor, threads, flags that matter, torch and the date, in one line."""
    cpu_info = Path("/proc/cpuinfo")
    text = cpu_info.read_text(encoding="utf-8") if cpu_info.exists() else ""
    model = re.search(r"model name\s*: (.+)", text)
    words = set(text.split())
    flags = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in words]
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, {' '.join(flags) or 'no wide vectors'}"
    device = f"; {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}" if setting.device == "cuda" else ""
    today = datetime.datetime.now(tz=datetime.timezone.utc).date()
    name = model.group(1) if model else platform.processor() or platform.machine()
    return f"{name}, {cores}{device}; torch {torch.__version__}; {today}; budget {setting.budget}"


def update_results(path: Path, part: str, section: str) -> None:
    """Put one part's section into the file, in place of the one that was there; the others stay."""
    old = path.read_text(encoding="utf-8") if path.exists() else HEAD
    head, *sections = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    kept = {text.split("\n", 1)[0]: text.rstrip() + "\n" for text in sections}
    kept[f"## {part}"] = f"## {part}\n\n{section.rstrip()}\n"
    path.write_text("\n".join([head.rstrip() + "\n", *(kept[name] for name in sorted(kept))]), encoding="utf-8")


def measured_apart(**case: Any) -> dict[str, Any]:
    """Return what ``benchmarks.apart`` finds in a process of its own, so that its peak memory is its own.

    Args:
        case: arguments of ``apart.measured``.

    Returns:
        Its result.

    Raises:
        RuntimeError: with the last line of its errors, if it fails.

    """
    command = [sys.executable, "-m", "benchmarks.apart", json.dumps(case)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{case}: {answer.stderr.strip().splitlines()[-1]}")
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result
