"""The table of the claims, for a terminal, as Markdown and as JSON.

Needs rich. All three hold the same findings; ``claims.json`` also holds what is needed to check them: protocol,
digests, commands, versions and seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lit_bump.claims.evidence import Evidence
from lit_bump.claims.finding import Finding
from lit_bump.claims.scale import Scale

_STYLES = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print the table.

    Args:
        findings: in order.
        console: where to.

    """
    table = Table(title="The paper's claims", title_justify="left", header_style="bold", show_lines=True)
    for name in ("claim", "expected", "measured", "verdict"):
        table.add_column(name, ratio={"claim": 3, "expected": 3, "measured": 6}.get(name), min_width=8)
    for finding in findings:
        style = _STYLES[finding.verdict]
        table.add_row(
            f"[bold]{finding.claim}[/] {escape(finding.statement)}",
            escape(finding.expected),
            escape("\n".join(finding.measured)),
            f"[{style}]{finding.verdict}[/]",
        )
    console.print(table)


def as_markdown(findings: Sequence[Finding], scale: Scale, evidence: Evidence) -> str:
    """Return the table as Markdown, with what it was measured on.

    Args:
        findings: in order.
        scale: that was run.
        evidence: behind them.

    Returns:
        A document.

    """
    lines = [
        f"# Claims, scale {scale.name}: {scale.summary}",
        "",
        "| claim | in the paper | expected | measured | verdict |",
        "|---|---|---|---|---|",
    ]
    for one in findings:
        cells = (f"**{one.claim}** {one.statement}", one.where, one.expected, "<br>".join(one.measured), one.verdict)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        *facts(scale, evidence),
        "",
        "| condition | steps | train | test | robust | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for name, metrics in evidence.metrics.items():
        of_run = evidence.facts.get(name, {})
        minutes = (of_run.get("trained_seconds", 0) + of_run.get("measured_seconds", 0)) / 60
        shown = [metrics.get(key) for key in ("train/accuracy", "val/accuracy", "val/robust_accuracy")]
        cells_of_run = ["" if value is None else f"{value:.3f}" for value in shown]
        more = "+" if of_run.get("was_resumed") else ""  # the time of the part before it was interrupted is not known
        lines.append(f"| {name} | {of_run.get('steps', '')} | {' | '.join(cells_of_run)} | {minutes:.1f}{more} |")
    return "\n".join(lines) + "\n"


def facts(scale: Scale, evidence: Evidence) -> list[str]:
    """Return what the numbers rest on, in lines.

    Args:
        scale: that was run.
        evidence: behind the findings.

    Returns:
        Protocol, number of images, seeds and versions.

    """
    profiles = [f.profiles[-1] for of_run in evidence.formations.values() for f in of_run.values() if len(f)]
    if not profiles:
        return ["Nothing was measured."]
    versions = sorted({str(of_run["torch"]) for of_run in evidence.facts.values() if "torch" in of_run})
    n_images = sorted({profile.n_images for profile in profiles})
    devices = sorted({str(profile.context.get("device", "cpu")) for profile in profiles})
    protocols = dict.fromkeys(str(profile.protocol) for profile in profiles)
    return [
        f"One run of each condition; medians over {' or '.join(map(str, n_images))} images, 90 % intervals over them.",
        f"Protocol: {'; '.join(protocols)}.",
        f"Measured on {', '.join(devices)}, torch {', '.join(versions) or 'unknown'}.",
    ]


def as_json(findings: Sequence[Finding], scale: Scale, evidence: Evidence) -> dict[str, Any]:
    """Return the findings and what they rest on, as plain values.

    Args:
        findings: in order.
        scale: that was run.
        evidence: behind them.

    Returns:
        Values for ``json.dumps``; NaN does not occur.

    """
    conditions: dict[str, Any] = {}
    for name, formations in evidence.formations.items():
        last = {probe: formation.profiles[-1] for probe, formation in formations.items() if len(formation)}
        conditions[name] = {
            **evidence.facts.get(name, {}),
            "metrics": dict(evidence.metrics.get(name, {})),
            "profiles": {
                probe: {
                    "bump": _finite(profile.bump().to_dict()),
                    "etas": profile.etas.tolist(),
                    "median": _finite(profile.median().tolist()),
                    "n_images": profile.n_images,
                    "images_digest": profile.images_digest,
                    "encoder_digest": profile.encoder_digest,
                    "protocol": profile.protocol.to_dict(),
                }
                for probe, profile in last.items()
            },
        }
    return {"scale": scale.name, "claims": [finding.to_dict() for finding in findings], "conditions": conditions}


def _finite(value: Any) -> Any:
    """Return a value with None in place of NaN, which JSON does not have."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
