"""``report``: the page of TensorBoard's Bump tab as one file, from the saved profiles of runs.

Paper: fig. 1c. Reads profiles; measures nothing. The file opens in any browser, without TensorBoard and network.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lit_bump.cli_help import report_page as help_page
from lit_bump.cli_parser import PageParser
from lit_bump.errors import LitBumpError
from lit_bump.measure import Formation
from lit_bump.whole_file import whole_file


def run_report(arguments: Sequence[str]) -> Path:
    """Write the page.

    Args:
        arguments: the words after ``report``.

    Returns:
        The file.

    Raises:
        LitBumpError: if no run is given, one cannot be read, or the file cannot be written.

    """
    parser = PageParser.of("report", help_page)
    parser.add_argument("runs", nargs="*", type=str, metavar="RUN")
    parser.add_argument("-o", "--out", type=str, default="report.html", help="The file to write.")
    options = parser.options(arguments)
    if not options["runs"]:
        raise LitBumpError("no run given; name its folder, such as runs/quickstart (see python -m lit_bump report -h)")
    from lit_bump.runs.saved_run import SavedRun
    from lit_bump_tensorboard.page import report_page

    runs = {run.log_dir.resolve(): run for run in map(SavedRun.find, options["runs"])}
    formations = {}
    names = Counter(run.name for run in runs.values())
    for run in runs.values():
        name = run.name if names[run.name] == 1 else str(run.log_dir)  # two of one name are told apart by their place
        try:
            formations[name] = run.formations()
        except FileNotFoundError:
            sys.stderr.write(f"left out {run.log_dir}: it holds no profiles\n")
    if not formations:
        raise LitBumpError(
            "no profiles in these runs: measure first, with python -m lit_bump measure RUN --probes NAME"
        )
    page = report_page(page_data(formations), title="Response profiles")
    out = Path(options["out"])
    try:
        with whole_file(out) as partial:
            partial.write_text(page, encoding="utf-8")
    except OSError as error:
        raise LitBumpError(f"--out {str(out)!r} cannot be written to: {error.strerror or error}") from error
    sys.stdout.write(f"{out}\n")
    return out


def page_data(formations: Mapping[str, Mapping[str, Formation]]) -> dict[str, object]:
    """Return the profiles of runs as the page takes them.

    Args:
        formations: by run, then probe set.

    Returns:
        Plain values: ``changes`` and ``details``.

    """
    from lit_bump.callbacks.profile_tensorboard import TENSOR_ROWS, profile_table
    from lit_bump_tensorboard.series import Series, described, detailed, point_of

    series = []
    for run, of_run in formations.items():
        for probe, formation in of_run.items():
            one = Series(run, probe, probe)
            steps: Iterable[tuple[int, object]] = zip(formation.steps, formation.profiles, strict=True)
            for step, profile in steps:
                table = profile_table(profile)  # type: ignore[arg-type]
                one.points[step] = point_of(step, float(step + 1), table, list(TENSOR_ROWS))
            series.append(one)
    details = [detailed(one, step) for one in series for step in one.points]
    return {"changes": described(series), "details": details}
