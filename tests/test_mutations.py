"""The faults that the tests are tried with can still be planted, and the page that lists them is that of this list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.mutations import MUTATIONS, Mutation


@pytest.mark.parametrize("one", MUTATIONS, ids=lambda one: one.fault)
def test_a_fault_has_one_place(repository: Path, one: Mutation) -> None:
    assert (repository / one.file).read_text(encoding="utf-8").count(one.old) == 1
    assert one.old != one.new
    assert (repository / one.tests).exists()


def test_the_page_lists_them_all_and_none_was_missed(repository: Path) -> None:
    page = (repository / "docs" / "mutations.md").read_text(encoding="utf-8")
    assert all(f"| {one.fault} | `{one.file}` |" in page for one in MUTATIONS)
    assert "NONE" not in page
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)", page):
        assert f"def {name}(" in (repository / path).read_text(encoding="utf-8")
    assert len(MUTATIONS) >= 20
