"""``probe``: response profiles of frozen encoders on image sets, in one command and without a Trainer.

Paper: figs. 1a, 1b, 3 to 5. The options are the arguments of ``lit_bump.probing.probe``, whose docstring is their help.
Importing this file loads torch and Lightning Fabric.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lit_bump.cli_help import probe_page
from lit_bump.cli_parser import PageParser
from lit_bump.encoders import Preprocessing
from lit_bump.errors import LitBumpError
from lit_bump.probing import IncompleteProbeError, ProbeResult, probe


def run_probe(arguments: Sequence[str]) -> None:
    """Measure encoders on image sets, and print a table.

    Args:
        arguments: the words after ``probe``.

    Raises:
        LitBumpError: for every error that the user can cure, with a message of one line.
        IncompleteProbeError: if some profiles could not be measured, after the table of the others.

    """
    options = _parser().options(arguments)
    encoders, images = options.pop("encoder") or [], options.pop("images") or []
    n_pairs, draw = options.pop("n_pairs"), options.pop("figures")
    for name, given in (("--encoder", encoders), ("--images", images)):
        if not given:
            raise LitBumpError(f"no {name} given; write: python -m lit_bump probe --encoder SPEC --images SPEC")
    if n_pairs is not None:
        options["protocol"] = _with_pairs(options["protocol"], n_pairs)
    try:
        _show(probe(encoders, images, **options), Path(options["out"]), draw=draw)
    except IncompleteProbeError as error:
        _show(error.results, Path(options["out"]), draw=draw)
        raise


def _show(results: Sequence[ProbeResult], out: Path, *, draw: bool) -> None:
    """Print what was measured, and how; nothing in another process than the first."""
    if not results:
        return
    for encoder in {result.facts["spec"]: result.facts for result in results}.values():
        _say(f"{encoder['label']}: {encoder['source']}; {encoder['n_features']} features ({encoder['feature']})")
        mean, std = encoder["mean"], encoder["std"]
        normalised = f"; normalised with mean {_short(mean)}, std {_short(std)}" if mean else ""
        _say(f"  images: {Preprocessing.from_dict(encoder['preprocessing'])}{normalised}")
        for note in encoder["notes"]:
            _say(f"  {note}")
    for name, source, notes in {r.images: _images(r) for r in results}.values():
        _say(f"{name}: {source}")
        for note in notes:
            _say(f"  {note}")
    from lit_bump.probing.probe_tables import print_table

    sys.stdout.flush()  # rich writes to the stream itself
    print_table(results)
    written = [out / "profiles.csv", out / "summary.csv"]
    if draw:
        written += _figures(out)
    sys.stdout.writelines(f"{path}\n" for path in written)


def _figures(out: Path) -> list[Path]:
    """Draw all profiles of a folder.

    Returns:
        The files.

    """
    from lit_bump.cli_probe_figures import overview

    return overview(out)


def _images(result: ProbeResult) -> tuple[str, str, list[str]]:
    facts = result.profile.context
    return result.images, str(facts.get("images_source", "")), list(facts.get("images_notes", []))


def _short(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _with_pairs(protocol: Any, n_pairs: int) -> dict[str, Any]:
    fields = protocol if isinstance(protocol, dict) else {"preset": protocol} if protocol else {}
    return {**fields, "n_pairs": n_pairs}


def _parser() -> PageParser:
    parser = PageParser.of("probe", probe_page)
    parser.add_argument("--encoder", nargs="+", type=str, help="Encoders, as python -m lit_bump encoders lists them.")
    parser.add_argument("--images", nargs="+", type=str, help="Image sets, as python -m lit_bump probes lists them.")
    parser.add_argument("--n_pairs", type=int, help="Direction pairs an image (at most, with quick and accurate).")
    parser.add_argument("--figures", type=bool, default=True, help="Draw the profiles into OUT/figures.")
    parser.add_function_arguments(probe, skip={"encoders", "images", "progress"})
    return parser
