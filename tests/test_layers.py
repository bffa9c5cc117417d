"""The order of the parts: imports run one way, the light parts stay light, and every file can be found by its name.

The order is measure <- images <- networks, probes, attacks, schedules <- modules, datamodules, callbacks, figures
<- runs, integrations <- encoders <- probing <- claims <- cli. Imports are read from the syntax tree, so one inside a
function counts as well.
"""

from __future__ import annotations

import ast
import statistics
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "lit_bump"
ORDER = (
    ("errors", "whole_file", "config_files"),
    ("measure",),
    ("images",),
    ("networks", "probes", "attacks", "schedules"),
    ("modules", "datamodules", "callbacks", "figures"),
    ("runs", "integrations"),
    ("encoders",),
    ("probing",),
    ("claims",),
    ("cli", "__main__"),
)
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}
FILES = sorted(PACKAGE.rglob("*.py"))
MEASURE_MAY_IMPORT = {"torch", "numpy", "jaxtyping", "tqdm", "lit_bump"}


def part_of(path: Path) -> str:
    """Return the part that a file belongs to: its folder in the package, or its own stem."""
    first = path.relative_to(PACKAGE).parts[0]
    stem = first.removesuffix(".py")
    return "cli" if stem.startswith("cli_") else stem


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the dotted name of every module that a file imports, anywhere in it; relative imports are refused."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            assert node.module is not None
            if node.module == "lit_bump":
                yield from (f"lit_bump.{alias.name}" for alias in node.names)
            else:
                yield node.module


def parts_imported(path: Path) -> set[str]:
    """Return the other parts of the package that a file imports."""
    found = set()
    for name in imported_modules(path):
        pieces = name.split(".")
        if pieces[0] == "lit_bump" and len(pieces) > 1:
            found.add("cli" if pieces[1].startswith("cli_") else pieces[1])
    return found - {part_of(path), "__version__"}


@pytest.mark.parametrize("path", [p for p in FILES if p != PACKAGE / "__init__.py"], ids=lambda p: p.stem)
def test_imports_run_one_way(path: Path) -> None:
    part = part_of(path)
    assert part in RANK, f"{path} is in no layer; give it one in ORDER"
    for other in parts_imported(path):
        assert other in RANK, f"{path} imports lit_bump.{other}: import names from the part that defines them"
        assert RANK[other] <= RANK[part], f"{path}: {part} may not import {other}"


def test_parts_of_one_layer_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in FILES:
        if path != PACKAGE / "__init__.py":
            graph.setdefault(part_of(path), set()).update(parts_imported(path))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"parts import each other: {error.args[1]}")


def test_measure_needs_only_torch_and_numpy() -> None:
    import sys

    allowed = MEASURE_MAY_IMPORT | set(sys.stdlib_module_names)
    for path in (PACKAGE / "measure").rglob("*.py"):
        foreign = {name.split(".")[0] for name in imported_modules(path)} - allowed
        assert not foreign, f"{path} imports {sorted(foreign)}"


def test_no_two_files_share_a_stem() -> None:
    counts = Counter(path.stem for path in FILES if path.stem not in {"__init__", "__main__"})
    assert not [stem for stem, count in counts.items() if count > 1]


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert not {str(path): n for path, n in lengths.items() if n > 400}
    assert statistics.median(lengths.values()) <= 150


def test_every_file_starts_with_a_head() -> None:
    headless = [str(path) for path in FILES if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None]
    assert not headless
