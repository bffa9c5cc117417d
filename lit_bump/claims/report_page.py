"""The report as one HTML file that needs no network: table, figures, protocol, versions, digests.

Standard library only. Everything that comes from a run is escaped. Light and dark follow the reader's system.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lit_bump.claims.finding import Finding

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --good: #1a7f37; --bad: #b42318;
  --open: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --line: #444; --good: #4cc36d;
  --bad: #ff7b72; --open: #e3b341 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .6rem; text-align: left; vertical-align: top }
td ul { margin: 0; padding-left: 1.1rem }
.holds { color: var(--good) } .does-not-hold { color: var(--bad) } .undecided { color: var(--open) }
.verdict { font-weight: 600; white-space: nowrap }
figure { margin: 1.5rem 0 } figure img { max-width: 100%; background: #fff }
code { font-size: .85em; overflow-wrap: anywhere } summary { cursor: pointer; margin: .5rem 0 }
"""


def report_page(
    title: str,
    findings: Sequence[Finding],
    figures: Mapping[str, Path],
    facts: Sequence[str],
    record: Mapping[str, Any],
    *,
    formation: str | None = None,
) -> str:
    """Return the report as HTML.

    Args:
        title: of the page.
        findings: in order.
        figures: a PNG file a claim; it becomes part of the page.
        facts: lines on what the numbers rest on.
        record: what ``claims.json`` holds; its conditions are listed.
        formation: a file beside the page that shows the profiles of every step, if there is one.

    Returns:
        A whole document; its only link is that to the formation.

    """
    rows = "".join(map(_row, findings))
    pictures = "".join(_figure(one, figures[one.claim]) for one in findings if one.claim in figures)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
{"".join(f"<p>{html.escape(line)}</p>" for line in facts)}
<table><thead><tr><th>claim</th><th>in the paper</th><th>expected</th><th>measured</th><th>verdict</th></tr></thead>
<tbody>{rows}</tbody></table>
{_link(formation)}<h2>Figures</h2>{pictures or "<p>none</p>"}
<h2>Conditions</h2>{"".join(_condition(name, run) for name, run in record.get("conditions", {}).items())}
</body></html>
"""


def _link(formation: str | None) -> str:
    if formation is None:
        return ""
    return f'<p><a href="{html.escape(formation, quote=True)}">Every condition, step by step</a></p>\n'


def _row(one: Finding) -> str:
    measured = "".join(f"<li>{html.escape(line)}</li>" for line in one.measured)
    return (
        f"<tr><td><b>{html.escape(one.claim)}</b> {html.escape(one.statement)}</td><td>{html.escape(one.where)}</td>"
        f"<td>{html.escape(one.expected)}</td><td><ul>{measured}</ul></td>"
        f'<td class="verdict {one.verdict.replace(" ", "-")}">{html.escape(one.verdict)}</td></tr>'
    )


def _figure(one: Finding, path: Path) -> str:
    picture = base64.b64encode(path.read_bytes()).decode()
    caption = f"{html.escape(one.claim)}: {html.escape(one.statement)}"
    image = f'<img alt="{caption}" src="data:image/png;base64,{picture}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _condition(name: str, run: Mapping[str, Any]) -> str:
    profiles = run.get("profiles", {})
    rows = "".join(
        f"<tr><td>{html.escape(probe)}</td><td>{html.escape(str(one['bump'].get('verdict')))}</td>"
        f"<td>{_number(one['bump'].get('height'))}</td><td>{_number(one['bump'].get('eta'))}</td>"
        f"<td>{one['n_images']}</td><td><code>{html.escape(one['images_digest'][:16])}</code></td>"
        f"<td><code>{html.escape(one['encoder_digest'][:16])}</code></td></tr>"
        for probe, one in profiles.items()
    )
    heads = ("probe set", "verdict", "max r", "eta", "images", "digest of the images", "digest of the encoder")
    plain = {key: value for key, value in run.items() if key != "profiles"}
    head = "".join(f"<th>{text}</th>" for text in heads)
    return (
        f"<details><summary><b>{html.escape(name)}</b></summary><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        f"</table><p><code>{html.escape(json.dumps(plain))}</code></p></details>"
    )


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.3g}"
