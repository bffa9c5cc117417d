"""Give many hostile files to every reader of files that others may have made, and print what came of them.

Not in the paper. ``python scripts/fuzz.py --inputs 100000``. Ends with 1 where a reader did anything but give a value
or its documented error. A fault names its input; the same seed makes it again.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tqdm import tqdm

from tests.fuzz.readers import READERS, Tally, fuzzed

_COLUMNS = ("reader", "inputs", "values", "documented errors", "anything else", "seconds")
_SHOWN = 20  # faults of a reader


def main() -> int:
    """Try the readers.

    Returns:
        1 where there is a fault, else 0.

    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="random inputs a reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most time a reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", choices=READERS, help="only this one; may be given again")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB of address space added, beyond which it fails")
    options = parser.parse_args()
    held = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + int(options.memory * 2**30), resource.RLIM_INFINITY))
    lines, faults = [], []
    for name in options.reader or READERS:
        began, tally = time.perf_counter(), Tally()
        folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        with folder as place, tqdm(total=options.inputs, desc=name, leave=False) as bar:
            for tally in fuzzed(READERS[name], Path(place), options.inputs, options.seed):  # noqa: B007
                bar.update()
                if time.perf_counter() - began > options.seconds:
                    break
        seconds = f"{time.perf_counter() - began:.0f}"
        lines.append((name, *map(str, (tally.inputs, tally.values, tally.errors, len(tally.faults))), seconds))
        faults += tally.faults[:_SHOWN]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *lines, strict=True)]
    for line in (_COLUMNS, *lines):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"most memory held: {peak:.2f} GiB")
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
