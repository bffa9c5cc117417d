"""``figures``: the paper's figures from the saved profiles of runs, as files.

Paper: figs. 1a, 1c, 2a to 2c, 3 to 5. Reads profiles and draws; never measures, so it needs neither checkpoints nor
Lightning. Standard output holds the paths written and nothing else; notes go to the error stream.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lit_bump.cli_help import FIGURES, PROBE_FIGURES, figures_page
from lit_bump.cli_parser import PageParser
from lit_bump.errors import LitBumpError, nearest

if TYPE_CHECKING:
    from lit_bump.cli_figure_choice import Drawing, Look, MeasuredRun
    from lit_bump.probing.results import ProbeResult

ALL = "all"


def run_figures(arguments: Sequence[str]) -> list[Path]:
    """Draw figures of saved runs, and print the paths written.

    Args:
        arguments: the words after ``figures``.

    Returns:
        The files, in the order in which they were written.

    Raises:
        LitBumpError: if an option is wrong, a run cannot be read, or a figure that was asked for lacks its data.

    """
    options = _parser().options(arguments)
    wanted = [name for text in options["figure"] for name in text.split(",")]
    for name in wanted:
        if name not in (*FIGURES, *PROBE_FIGURES, ALL):
            raise LitBumpError(f"no figure {name!r}{nearest(name, [*FIGURES, *PROBE_FIGURES, ALL])}")
    from lit_bump.cli_figure_choice import Look  # loads torch, which a wrong option need not wait for
    from lit_bump.figures import save_figure
    from lit_bump.figures.saved_figure import checked_formats

    if not options["runs"]:
        raise LitBumpError("no run given; name its folder, such as runs/quickstart (see python -m lit_bump figures -h)")
    formats = [name for text in options["formats"] for name in text.split(",")]
    checked_formats(formats)
    results, runs = _measured(options["runs"])
    probe = options["probe"]
    known = {name for run in runs for name in run.formations} | {result.images for result in results}
    if probe is not None and not any(name == probe or name.startswith(f"{probe}b") for name in known):
        raise LitBumpError(f"no run was measured on {probe!r}{nearest(probe, known)}")
    look = Look(per_image=options["per_image"], band=options["band"])
    out, written = Path(options["out"]), []
    for drawing in _drawings(wanted, runs, results, probe, look):
        try:
            paths = save_figure(drawing.figure, out / drawing.stem, formats)
        except OSError as error:
            raise LitBumpError(f"--out {str(out)!r} cannot be written to: {error.strerror or error}") from error
        for note in drawing.notes:
            sys.stderr.write(f"{drawing.stem}: {note}\n")
        sys.stdout.writelines(f"{path}\n" for path in paths)
        written += paths
    return written


def _drawings(
    wanted: Sequence[str],
    runs: Sequence[MeasuredRun],
    results: Sequence[ProbeResult],
    probe: str | None,
    look: Look,
) -> list[Drawing]:
    """Return the drawings of figures; of all, say which are left out and why.

    Raises:
        LitBumpError: if one lacks its data that was asked for by name, or all lack them.

    """
    from lit_bump.cli_figure_choice import DRAWINGS
    from lit_bump.cli_probe_figures import PROBE_DRAWINGS, results_of_runs
    from lit_bump.probing.results import distinct

    possible = [*(FIGURES if runs else ()), *(PROBE_FIGURES if results else ())]
    drawings: list[Drawing] = []
    reasons = []
    for name in possible if ALL in wanted else dict.fromkeys(wanted):
        try:
            if name in DRAWINGS:
                _refuse_without(runs, "run")
                drawings += DRAWINGS[name](runs, probe, look)
            else:
                of_runs = results_of_runs(runs) if name == "compare" else []
                drawings += PROBE_DRAWINGS[name](distinct([*results, *of_runs]), probe, look)
        except LitBumpError as error:
            if ALL not in wanted:
                raise LitBumpError(f"figure {name}: {error}") from error
            reasons.append(f"{name}: {error}")
    if not drawings:
        raise LitBumpError(f"there is nothing to draw ({'; '.join(reasons)})")
    sys.stderr.writelines(f"left out {reason}\n" for reason in reasons)
    return drawings


def _refuse_without(runs: Sequence[MeasuredRun], what: str) -> None:
    if not runs:
        raise LitBumpError(f"it needs a {what}: name its folder")


def _measured(paths: Sequence[str]) -> tuple[list[ProbeResult], list[MeasuredRun]]:
    """Read the results of probe folders, and the profiles of runs.

    Returns:
        Results and runs, one of them at least.

    """
    from lit_bump.probing.results import is_probe_folder, load_results

    folders = [path for path in paths if is_probe_folder(path)]
    results = [result for folder in dict.fromkeys(folders) for result in load_results(folder)]
    of_runs = [path for path in paths if path not in folders]
    return results, _measured_runs(of_runs) if of_runs else []


def _measured_runs(paths: Sequence[str]) -> list[MeasuredRun]:
    """Read the profiles of runs, each run once; those without any are named and passed over.

    Returns:
        Runs with at least one profile.

    Raises:
        LitBumpError: if a path is no run, or no run holds profiles.

    """
    from lit_bump.cli_figure_choice import MeasuredRun
    from lit_bump.runs.saved_run import SavedRun

    runs = {run.log_dir.resolve(): run for run in map(SavedRun.find, paths)}
    measured = []
    for run in runs.values():
        try:
            measured.append(MeasuredRun(run, run.formations()))
        except FileNotFoundError:
            sys.stderr.write(f"left out {run.log_dir}: it holds no profiles\n")
    if not measured:
        cure = "measure first, with python -m lit_bump measure RUN --probes NAME"
        raise LitBumpError(f"no profiles in {', '.join(str(run.log_dir) for run in runs.values())}: {cure}")
    return measured


def _parser() -> PageParser:
    parser = PageParser.of("figures", figures_page)
    parser.add_argument("runs", nargs="*", type=str, metavar="RUN")
    parser.add_argument(
        "--figure",
        nargs="+",
        type=str,
        default=[ALL],
        help=f"Which figures: {', '.join([*FIGURES, *PROBE_FIGURES])}, or {ALL}.",
    )
    parser.add_argument("--probe", type=str, help="Probe set to draw; by default each figure chooses, see above.")
    parser.add_argument("--out", type=str, default="figures", help="Folder of the files.")
    parser.add_argument("--formats", nargs="+", type=str, default=["png"], help="Some of png, svg and pdf.")
    parser.add_argument("--per_image", type=bool, default=True, help="Draw each image's profile, not the median alone.")
    parser.add_argument(
        "--band",
        type=Literal["none", "quartiles", "confidence"],
        default="none",
        help="What to shade: the quartiles of the images, or the median's own 90 %% interval.",
    )
    return parser
