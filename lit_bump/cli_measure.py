"""``measure``: response profiles of saved runs at their checkpoints, runs x probe sets x steps in one command.

Paper: figs. 1c, 2a-2c. The options are the arguments of ``measure_run``, whose docstring is their help. Importing this
file loads torch and lightning.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from lit_bump.callbacks.formation_table import formation_row
from lit_bump.callbacks.profile_summary import print_summary
from lit_bump.cli_help import measure_page
from lit_bump.cli_parser import PageParser
from lit_bump.errors import LitBumpError
from lit_bump.runs.run_measurement import STEPS, chosen_steps, measure_run, run_protocol
from lit_bump.runs.saved_run import SavedRun


def run_measure(arguments: Sequence[str]) -> None:
    """Measure runs and print a table of each.

    Args:
        arguments: the words after ``measure``.

    Raises:
        LitBumpError: for every error that the user can cure, with a message of one line.

    """
    options = _parser().parse_args(list(arguments)).as_dict()
    paths, n_pairs, steps = options.pop("runs"), options.pop("n_pairs"), _steps(options.pop("steps"))
    for name, given in (("run", paths), ("probe set", options["probes"])):
        if not given:
            raise LitBumpError(f"no {name} given; write: python -m lit_bump measure RUN --probes NAME")
    runs = [SavedRun.find(path) for path in paths]  # a wrong path, or step, is said before hours of measurement
    for run in runs:
        chosen_steps(run, steps)
    failed = []
    for number, run in enumerate(runs, start=1):
        protocol = options["protocol"]
        if n_pairs is not None:
            protocol = _with_pairs(run_protocol(run) if protocol is None else protocol, n_pairs)
        try:
            formations = measure_run(run, steps=steps, **{**options, "protocol": protocol})
        except (LitBumpError, OSError) as error:
            text = str(error) if isinstance(error, LitBumpError) else f"{type(error).__name__}: {error}"
            if len(runs) == 1:
                raise LitBumpError(text) from error
            failed.append(f"{run.log_dir}: {text}")
            sys.stderr.write(f"left out {failed[-1]}\n")  # the other runs are worth their measurement
            continue
        rows = [formation_row(profile) for formation in formations.values() for profile in formation.profiles]
        rows.sort(key=lambda row: row["step"])
        sys.stdout.write(f"{run.name} ({run.network}, {run.regime}), run {number} of {len(runs)}\n")
        sys.stdout.flush()  # rich writes to the stream itself
        print_summary(rows, seconds=sum(row["seconds"] for row in rows), share=None)
    if failed:
        raise LitBumpError(f"{len(failed)} of {len(runs)} runs could not be measured; {failed[0]}")


def _parser() -> PageParser:
    parser = PageParser.of("measure", measure_page)
    parser.add_argument("runs", nargs="*", type=str, metavar="RUN")
    parser.add_argument("--probes", nargs="+", type=str, help="probe sets by name, as python -m lit_bump probes lists")
    parser.add_argument("--steps", nargs="+", type=str, help=f"{', '.join(STEPS)}, or optimiser steps; all by default")
    parser.add_argument(
        "--n_pairs",
        type=int,
        help="direction pairs an image (at most, with quick)",
    )
    parser.add_function_arguments(measure_run, skip={"run", "probes", "steps", "progress"})
    return parser


def _steps(words: list[str] | None) -> str | list[int]:
    """Return the words after ``--steps`` as numbers, or as one choice."""
    words = [word for text in words or ["all"] for word in text.replace(",", " ").split()]
    return [int(word) for word in words] if all(word.isdigit() for word in words) else " ".join(words)


def _with_pairs(protocol: Any, n_pairs: int) -> dict[str, Any]:
    fields = protocol if isinstance(protocol, dict) else {"preset": protocol} if protocol else {}
    return {**fields, "n_pairs": n_pairs}
