"""``claims``: train what is missing, measure it, and say which of the paper's claims hold.

Paper: section 3. Every condition is trained by the ``fit`` command of this program, in a process of its own.
Interrupted or killed, the same command goes on. Importing this file loads torch and lightning.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from lit_bump import config_files
from lit_bump.claims.claim_figures import claim_figures, save_claim_figures
from lit_bump.claims.claims_table import as_json, as_markdown, facts, print_findings
from lit_bump.claims.condition import Condition
from lit_bump.claims.condition_run import fit_words
from lit_bump.claims.evidence import load_evidence
from lit_bump.claims.finding import Finding
from lit_bump.claims.pool import LOGS, RUNS, run_conditions
from lit_bump.claims.report_page import report_page
from lit_bump.claims.scale import SCALES, Scale
from lit_bump.claims.verdicts import judge
from lit_bump.cli_help import claims_page
from lit_bump.cli_parser import PageParser
from lit_bump.cli_report import page_data
from lit_bump.datamodules import CIFAR10DataModule
from lit_bump.errors import LitBumpError, nearest
from lit_bump.figures.saved_figure import checked_formats
from lit_bump.whole_file import whole_file
from lit_bump_tensorboard.page import report_page as formation_page

TITLE = "Claims about response profiles"
FORMATION = "formation.html"  # the page of the Bump tab over all conditions


def run_claims(arguments: Sequence[str]) -> None:
    """Check the claims, and print, save and draw what was found.

    Args:
        arguments: the words after ``claims``.

    Raises:
        LitBumpError: for every error that the user can cure; also, after the table, if a condition failed.

    """
    options = _parser().options(arguments)
    name, only, jobs = options["scale"], options["only"], options["jobs"]
    if name not in SCALES:
        raise LitBumpError(f"there is no scale {name!r}{nearest(name, SCALES)}")
    if jobs is not None and jobs < 1:
        raise LitBumpError(f"jobs is {jobs}; it must be at least 1")
    formats = [word for text in options["formats"] for word in text.split(",")]
    checked_formats(formats)
    scale = SCALES[name].for_claims(only) if only else SCALES[name]
    given = options["data_dir"] if scale.needs_data else None
    data_dir = given and str(Path(given).resolve())
    out, console = Path(options["out"] or f"{name}-claims").resolve(), Console()
    if data_dir is not None and not Path(data_dir).is_dir():
        raise LitBumpError(f"--data_dir {data_dir!r} is no folder: give the one that holds CIFAR-10")
    if options["dry_run"]:
        _print_plan(scale, out, data_dir, console)
        return
    if scale.needs_data and data_dir is None:
        raise LitBumpError(f"--scale {name} needs CIFAR-10: give its folder, --data_dir DIR")
    try:
        (out / RUNS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LitBumpError(f"--out {str(out)!r} cannot be written to: {error.strerror or error}") from error
    if data_dir is not None:
        CIFAR10DataModule(data_dir).prepare_data()  # found, verified and decoded once, before anything is trained
    _, failed = check_claims(scale, out, console=console, jobs=jobs, data_dir=data_dir, formats=formats, only=only)
    for condition, problem in failed.items():
        raise LitBumpError(f"{condition} failed: {problem} (see {out / LOGS / condition}.log); give the command again")


def check_claims(
    scale: Scale,
    out: Path,
    *,
    console: Console,
    jobs: int | None = None,
    data_dir: str | None = None,
    formats: Sequence[str] = ("png",),
    extra: tuple[str, ...] = (),
    only: Sequence[str] = (),
    protocol: dict[str, Any] | None = None,
) -> tuple[list[Finding], dict[str, str]]:
    """Train and measure what is missing, judge it, and write table, figures and report.

    Args:
        scale: what to train.
        out: folder of the results.
        console: where to print.
        jobs: processes at a time; None to choose.
        data_dir: where CIFAR-10 is.
        formats: of the figures.
        extra: options for all conditions.
        only: claims to judge; all if empty.
        protocol: of the measurements after training; None for the scale's.

    Returns:
        The findings, and what went wrong by condition.

    """
    work = {"train": train, "protocol": protocol or {"preset": scale.protocol}, "data_dir": data_dir, "extra": extra}
    failed = run_conditions(scale, out, jobs=jobs or _jobs(scale), options=work, console=console)
    evidence = load_evidence(out / RUNS, scale.conditions)
    findings = [one for one in judge(evidence, scale.sets) if not only or one.claim in only]
    record = as_json(findings, scale, evidence)
    figures = claim_figures(evidence, scale.sets)
    wanted = {claim: figure for claim, figure in figures.items() if not only or claim in only}
    saved = save_claim_figures(wanted, out, list(dict.fromkeys(["png", *formats])))  # the report needs the PNG files
    pictures = {claim: next(path for path in paths if path.suffix == ".png") for claim, paths in saved.items()}
    title = f"{TITLE}: {scale.summary}"
    for name, text in (
        ("claims.json", json.dumps(record, indent=1, allow_nan=False)),
        ("claims.md", as_markdown(findings, scale, evidence)),
        ("report.html", report_page(title, findings, pictures, facts(scale, evidence), record, formation=FORMATION)),
        (FORMATION, formation_page(page_data(evidence.formations), title=f"{title}: formation")),
    ):
        with whole_file(out / name) as partial:
            partial.write_text(text, encoding="utf-8")
    print_findings(findings, console)
    written = f"{out}: report.html, {FORMATION}, claims.md, claims.json, {len(saved)} figures"
    console.print(written, highlight=False, soft_wrap=True)
    return findings, failed


def train(words: list[str], run_name: str) -> Any:
    """Run ``fit``.

    Args:
        words: after ``fit``.
        run_name: of the run's folder.

    Returns:
        The Trainer after its run.

    """
    from lit_bump import cli

    return cli.run_trainer("fit", config_files.resolve(words)[0], run_name=run_name).trainer


def _parser() -> PageParser:
    parser = PageParser.of("claims", claims_page)
    parser.add_argument("--scale", type=str, default="laptop", help=f"{', '.join(SCALES)}.")
    parser.add_argument("--out", type=str, help="Folder of runs, table, figures and report; <scale>-claims by default.")
    parser.add_argument("--data_dir", type=str, help="Folder that holds CIFAR-10, for the two larger scales.")
    parser.add_argument(
        "--only", nargs="+", type=str, default=[], help="Claims to check, such as C4 C5; all by default."
    )
    parser.add_argument(
        "--jobs", type=int, help="Training processes at a time; a core each by default, one with a GPU."
    )
    parser.add_argument("--formats", nargs="+", type=str, default=["png"], help="Of the figures: png, svg, pdf.")
    parser.add_argument("--dry-run", action="store_true", help="Say what would be trained and for how long, no more.")
    return parser


def _jobs(scale: Scale) -> int:
    import torch

    if scale.threads is None or torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _print_plan(scale: Scale, out: Path, data_dir: str | None, console: Console) -> None:
    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)  # whole commands, to be copied

    say(f"{scale.name}: {scale.summary}")
    for condition in scale.conditions:
        words = _words(condition, out, data_dir or ("DIR" if scale.needs_data else None))
        after = f", after {condition.init_from}" if condition.init_from else ""
        say(f"\n{condition.name}, about {condition.cost:.0f} minutes{after}:\n  python -m lit_bump fit {words}")
    hours = sum(condition.cost for condition in scale.conditions) / 60
    say(f"\n{len(scale.conditions)} conditions, about {hours:.1f} hours on {scale.unit}")


def _words(condition: Condition, out: Path, data_dir: str | None) -> str:
    alone = replace(condition, init_from=None)  # the checkpoint that it starts from may not be there yet
    words = fit_words(alone, out / RUNS, data_dir=data_dir)
    if condition.init_from is not None:
        words.append("--model.init_from=CHECKPOINT")
    return shlex.join(words)
