"""Measured claims, as Markdown tables.  ``python -m benchmarks [PART...] [--budget full] [--out FILE]``.

Each part is a file of this folder. Both sides of a comparison run in one process, in turn, so that a noisy machine
disturbs both; the ratio is what counts. ``coverage`` has its own command line.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.shared import Setting, machine, update_results

PARTS = ("engine", "everything", "parts", "denominators", "growth", "roofline", "memory", "tab", "overhead")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that the command line names, print their tables and put them into the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"one or more of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file whose sections are replaced")
    parser.add_argument("--repeats", type=int, default=3, help="how often each side is timed")
    parser.add_argument("--budget", choices=["tiny", "small", "full"], default="small", help="how much is run")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--cache", type=Path, default=Setting().cache, help="folder of trained networks")
    parser.add_argument("--only", default="", help="part of a network's name: of engine and everything, just those")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.part if part not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    setting = Setting(options.budget, options.repeats, options.device, options.cache, options.only)
    if options.device == "cuda":  # the obvious code in float32 as well: with TF32 its small rungs are rounding
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for part in options.part or PARTS:
        print(f"{part} ...", file=sys.stderr, flush=True)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`torch.jit")  # torch's own forward mode, and curvlinops
            tables = importlib.import_module(f"benchmarks.{part}").tables(setting)
        line = f"{machine(setting)}; {time.perf_counter() - start:.0f} s for this section"
        section = "\n".join([f"{line}\n", *(table.markdown() for table in tables)])
        title = part if options.device == "cpu" else f"{part}, {options.device}"
        print(f"## {title}\n\n{section}", flush=True)
        if options.out is not None:
            update_results(options.out, title, section)


if __name__ == "__main__":
    main()
