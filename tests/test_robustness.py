"""The table of faults names tests that exist: read from the syntax trees, so that nothing has to be imported."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "robustness.md"
CELLS = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[tuple[int, str]]:
    """Return number and tests of every row of the table."""
    text = PAGE.read_text(encoding="utf-8")
    found = [(int(number), tests) for number, _, _, tests in CELLS.findall(text)]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    n_heads = 2 * sum(line.startswith("|---") for line in lines)
    assert len(found) == len(lines) - n_heads, "a row of the table does not have four cells"
    return found


@lru_cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the functions that pytest may find in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_kinds_of_fault_are_numbered_without_gaps() -> None:
    assert [number for number, _ in rows()] == list(range(1, len(rows()) + 1))


@pytest.mark.parametrize(("number", "tests"), rows())
def test_every_test_of_a_row_exists(number: int, tests: str) -> None:
    named = TEST.findall(tests)
    assert len(named) == len(tests.split()) > 0, f"row {number}: {tests}"
    assert len(set(named)) == len(named), f"row {number} names a test twice"
    for path, name in named:
        assert (ROOT / path).is_file(), f"row {number}: there is no {path}"
        assert name in functions(path), f"row {number}: {path} has no {name}"
