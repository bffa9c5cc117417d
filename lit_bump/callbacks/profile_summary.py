"""What a person reads when training has ended: a line per measurement, and what all of them have cost.

Paper: section 3 "Formation". Needs rich. Peaks are shown only where the verdict is that there is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from lit_bump.callbacks.formation_table import Row

MOST_METRICS = 8


def final_metrics(logged: Mapping[str, Any]) -> dict[str, float]:
    """Return what the module itself logged last, such as accuracies; not our scalars, not values of one batch.

    Args:
        logged: ``trainer.callback_metrics``.

    Returns:
        The first few, by name.

    """
    names = [name for name in logged if not name.startswith("bump/") and not name.endswith("_step")]
    kept = [name for name in names if f"{name}_epoch" not in logged and math.isfinite(float(logged[name]))]
    return {name: float(logged[name]) for name in sorted(kept)[:MOST_METRICS]}


def print_summary(
    rows: Sequence[Row],
    *,
    seconds: float,
    share: float | None,
    skipped: int = 0,
    limits: str = "",
    metrics: Mapping[str, float] | None = None,
) -> None:
    """Print the table of all measurements, and below it the module's own metrics and the cost.

    Args:
        rows: of the formation table.
        seconds: spent on all measurements.
        share: of the time since training began; None where they are not part of a training.
        skipped: scheduled measurements that the budget left out.
        limits: what the budget kept to, in words.
        metrics: what the module itself logged, by name.

    """
    if not rows:
        return
    table = Table(title="Response profiles", title_justify="left", header_style="bold")
    for name in ("step", "probe set", "max r [90 %]", "peak at eta", "verdict", "seconds"):
        of_text = name in ("probe set", "verdict")
        table.add_column(name, justify="left" if of_text else "right", no_wrap=name == "verdict")
    for row in rows:
        height = _number(row["max_r"])
        if math.isfinite(row["max_r_low"]):
            height += f" [{_number(row['max_r_low'])}, {_number(row['max_r_high'])}]"
        peak = _number(row["eta"]) if row["verdict"] == "bump" else "-"
        is_sure = row["verdict"] not in ("bump", "rising") or math.isfinite(row["max_r_low"])
        verdict = row["verdict"] if is_sure else f"{row['verdict']} (no interval)"
        table.add_row(
            f"{row['step']:,}", row["probe"], height.replace("[", r"\["), peak, verdict, f"{row['seconds']:.1f}"
        )
    console = Console()
    console.print(table)
    if metrics:
        console.print(", ".join(f"{name} {value:.4g}" for name, value in metrics.items()), highlight=False)
    of_training = "" if share is None else f", {100 * share:.1f} % of training"
    console.print(
        f"{seconds:.1f} seconds{of_training}{_given_up(rows, skipped, limits)}", highlight=False, soft_wrap=True
    )


def _given_up(rows: Sequence[Row], skipped: int, limits: str) -> str:
    """Return what the budget has cost the measurements."""
    raised: dict[int, float] = {}
    for row in rows:
        error = row.get("thinned_se", math.nan)  # rows of an older checkpoint have none
        if error > raised.get(row["step"], 0.0):  # never so for NaN
            raised[row["step"]] = error
    given_up = [f"{skipped} left out"] if skipped else []
    if raised:
        steps = f"{len(raised)} steps" if len(raised) > 1 else "1 step"
        given_up.append(f"standard error up to {100 * max(raised.values()):.2g} % at {steps}")
    keeping = f", to keep to {limits}" if limits else ""
    return f"; {', '.join(given_up)}{keeping}" if given_up else ""


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"
