"""The parser of our own commands: its help is the page given, its errors are one line."""

from __future__ import annotations

import pytest

from lit_bump import LitBumpError
from lit_bump.cli_parser import PageParser


@pytest.fixture
def parser() -> PageParser:
    """Return a parser with one option."""
    parser = PageParser.of("paint", lambda actions: f"page of {len(actions)} options")
    parser.add_argument("--colour", type=int, default=3)
    return parser


def test_options_are_given_by_name(parser: PageParser) -> None:
    assert parser.options(["--colour", "7"]) == {"colour": 7}
    assert parser.options([]) == {"colour": 3}


def test_help_is_the_page(parser: PageParser) -> None:
    assert parser.format_help() == "page of 2 options"


def test_errors_are_one_line_with_the_nearest_name(parser: PageParser) -> None:
    with pytest.raises(LitBumpError, match=r"no option 'color' \(did you mean 'colour'\?\)"):
        parser.options(["--color", "7"])
    with pytest.raises(LitBumpError, match="colour: expected int, got 'red'"):
        parser.options(["--colour", "red"])
