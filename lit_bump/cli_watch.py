"""``watch``: how the profiles of a run form, in a terminal, for a machine without a browser.

Paper: fig. 1c. Needs rich. Reads the files that the callback writes, again and again; measures nothing.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lit_bump.cli_help import watch_page
from lit_bump.cli_parser import PageParser
from lit_bump.errors import LitBumpError
from lit_bump.measure import Bump, Formation, Profile
from lit_bump.measure.formation import FOLDER, step_files

_BLOCKS = " ▁▂▃▄▅▆▇█"
_WIDE, _HIGH = 68, 12  # signs of the plot
_MOST_ROWS = 12  # of the table
Seen = dict[Path, tuple[float, Profile, Bump]]
_FLOOR = (math.log10(0.5), math.log10(2.0))  # the ratio's axis shows at least this


def run_watch(arguments: Sequence[str]) -> None:
    """Show a run until it is interrupted.

    Args:
        arguments: the words after ``watch``.

    Raises:
        LitBumpError: if there is no such folder, or an option is wrong.

    """
    parser = PageParser.of("watch", watch_page)
    parser.add_argument("run", nargs="?", type=str, metavar="RUN")
    parser.add_argument("--probe", type=str, help="Probe set to draw; the first where none is named.")
    parser.add_argument("--every", type=float, default=2.0, help="Seconds between two looks.")
    parser.add_argument("--once", type=bool, nargs="?", const=True, default=False, help="Print once, and end.")
    options = parser.options(arguments)
    if options["run"] is None:
        raise LitBumpError("no run given; name its folder, such as runs/quickstart (see python -m lit_bump watch -h)")
    if not options["every"] > 0:
        raise LitBumpError(f"every is {options['every']}; give seconds, more than 0")
    folder = Path(options["run"])
    if not folder.is_dir():
        raise LitBumpError(f"no folder {str(folder)!r} to watch: start the run first, or name another one")
    seen: Seen = {}
    if options["once"]:
        sys.stdout.flush()
        Console().print(view(folder, options["probe"], seen))
        return
    try:
        with Live(view(folder, options["probe"], seen), auto_refresh=False, screen=False) as live:
            while True:
                time.sleep(options["every"])
                live.update(view(folder, options["probe"], seen), refresh=True)
    except KeyboardInterrupt:
        return


def view(folder: Path, probe: str | None, seen: Seen) -> Group:
    """Return what a run's folder shows now.

    Args:
        folder: of the run, or of its versions, of which the newest is taken.
        probe: probe set; the first where None.
        seen: profiles and bumps read before, by file; new ones are added.

    Returns:
        Text for a terminal: the newest profile, and the growth of the bump.

    Raises:
        LitBumpError: if the run was not measured on the probe set.

    """
    run = _newest(folder)
    names = sorted(path.name for path in (run / FOLDER).iterdir() if path.is_dir()) if run is not None else []
    if run is None or not names:
        waiting = f"{folder} holds no profiles yet; they appear with the first measurement."
        return Group(
            Text(waiting), Text("Start one with: python -m lit_bump fit --config quickstart.yaml", style="dim")
        )
    if probe is not None and probe not in names:
        from lit_bump.errors import nearest

        raise LitBumpError(f"{run} was not measured on {probe!r}{nearest(probe, names)}")
    chosen = probe or next((name for name in names if not name.startswith("noise")), names[0])
    formation, bumps = _formation(run / FOLDER / chosen, seen)
    if not bumps:
        return Group(Text(f"{run} holds no whole profile of {chosen} yet."))
    head = Text.assemble(
        (f"{run}", "bold"), f"  {chosen}", (f"  also: {', '.join(set(names) - {chosen}) or '-'}", "dim")
    )
    return Group(head, plot(formation), growth(formation, bumps))


def plot(formation: Formation) -> Text:
    """Return the newest median as blocks over log eta, one column a place between rungs.

    Args:
        formation: at least one profile.

    Returns:
        Several lines; the row of r = 1 is marked.

    """
    profile = formation.profiles[-1]
    median, etas = profile.median(), np.log10(profile.etas)
    shown = np.where(median > 0, np.log10(np.where(median > 0, median, 1.0)), np.nan)
    places = np.linspace(etas[0], etas[-1], _WIDE)
    values = (
        np.interp(places, etas[np.isfinite(shown)], shown[np.isfinite(shown)]) if np.isfinite(shown).any() else None
    )
    lines = Text()
    low, high = _FLOOR
    if values is not None:
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        unit = (high - low) / _HIGH
        one = min(int((0.0 - low) / unit), _HIGH - 1)
        for row in range(_HIGH - 1, -1, -1):
            parts = [(value - low) / unit - row for value in values]
            bars = "".join(_BLOCKS[int(np.clip(part, 0, 1) * 8)] for part in parts)
            value = f"{10 ** (low + (row + 0.5) * unit):8.3g} " if row in (0, one, _HIGH - 1) else " " * 9
            value = f"{'r = 1':>8} " if row == one else value
            lines.append(value + "│", style="dim")
            lines.append(f"{bars}\n", style="cyan" if row != one else "bold cyan")
    lines.append(f"{'':9}└{'─' * _WIDE}\n", style="dim")
    middle = f"η, step {formation.steps[-1]:,}"
    lines.append(f"{'':10}{profile.etas[0]:<12.3g}{middle:^{_WIDE - 24}}{profile.etas[-1]:>12.3g}\n", style="dim")
    return lines


def growth(formation: Formation, bumps: Sequence[Bump]) -> Table:
    """Return the bump at the newest steps.

    Args:
        formation: at least one profile.
        bumps: of its profiles.

    Returns:
        A table.

    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("step", "verdict", "max r [90 %]", "peak at eta", "kept", ""):
        table.add_column(name, justify="left" if name in ("verdict", "") else "right")
    highest = max((bump.height for bump in bumps if math.isfinite(bump.height)), default=1.0)
    kept = range(max(0, len(bumps) - _MOST_ROWS), len(bumps))
    for i in kept:
        bump, profile = bumps[i], formation.profiles[i]
        low, high = bump.height_interval
        interval = f" \\[{low:.3g}, {high:.3g}]" if math.isfinite(low) else ""
        peak = f"{bump.eta:.3g}" if bump.verdict == "bump" else "-"
        share = math.log(max(bump.height, 1.0)) / math.log(max(highest, 1.1)) if math.isfinite(bump.height) else 0.0
        table.add_row(
            f"{formation.steps[i]:,}", str(bump.verdict), f"{bump.height:.3g}{interval}", peak,
            f"{int(profile.n_kept().min())} of {profile.n_images}", Text("█" * round(20 * share), style="cyan"),
        )  # fmt: skip
    return table


def _newest(folder: Path) -> Path | None:
    """Return the folder that holds profiles: this one, or the version in it that was written last."""
    candidates = [folder, *(path for path in folder.glob("version_*") if path.is_dir())]
    measured = [path for path in candidates if (path / FOLDER).is_dir()]
    return max(measured, key=lambda path: (path / FOLDER).stat().st_mtime, default=None)


def _formation(folder: Path, seen: Seen) -> tuple[Formation, list[Bump]]:
    found = {}
    for step, path in step_files(folder).items():
        try:
            changed = path.stat().st_mtime
            if path not in seen or seen[path][0] != changed:
                profile = Profile.load(path)
                seen[path] = (changed, profile, profile.bump())  # its interval is drawn many times over: once is enough
            found[step] = seen[path][1:]
        except (OSError, ValueError):  # replaced while it was read, or broken: the others can be shown
            continue
    steps = tuple(sorted(found))
    return Formation(steps, tuple(found[step][0] for step in steps)), [found[step][1] for step in steps]
