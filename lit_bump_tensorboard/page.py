"""The page of the tab as one file that needs no server: modules and numbers inside.

Standard library alone. The modules are put one after the other, imports taken out; numbers stand in a script of type
JSON, in which no name can close the element that it stands in.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

STATIC = Path(__file__).resolve().parent / "static"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_START = """
boot(document.body, embedded(JSON.parse(document.getElementById("lit-bump-data").textContent)), {live: false});
"""


def report_page(data: dict[str, Any], *, title: str) -> str:
    """Return the page with its numbers.

    Args:
        data: ``changes`` and ``details``, as the routes of the plugin answer them.
        title: of the window.

    Returns:
        HTML that any browser opens from the file system, without a network.

    """
    numbers = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        numbers = numbers.replace(sign, f"\\u{ord(sign):04x}")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
</head>
<body>
<script type="application/json" id="lit-bump-data">{numbers}</script>
<script type="module">
{one_module("boot.js", "source.js")}{_START}</script>
</body>
</html>
"""


def one_module(*entries: str) -> str:
    """Return modules and all that they import as one.

    Args:
        entries: file names.

    Returns:
        Source without imports and exports, what is imported first.

    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        source = (STATIC / name).read_text(encoding="utf-8")
        parts[name] = ""
        for imported in _IMPORT.findall(source):
            add(imported)
        del parts[name]  # it comes after what it imports
        parts[name] = re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.MULTILINE)

    for entry in entries:
        add(entry)
    return "\n".join(parts.values())
