"""A parser of options whose errors are one line and whose help is one page of ours.

Needs jsonargparse. The pages are for the commands that work on saved runs; those of the Trainer have Lightning's
parser, with the same errors.
"""

from __future__ import annotations

import argparse
from argparse import HelpFormatter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jsonargparse import ArgumentParser

from lit_bump.cli_errors import one_line
from lit_bump.errors import LitBumpError

Page = Callable[[Sequence[argparse.Action]], str]


class OneLineErrors(ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raise the error in one line; inside a union of types, let jsonargparse go on to the next one.

        Args:
            message: what is wrong, of any number of lines.
            ex: the exception behind it.

        Raises:
            LitBumpError: with the key, the problem and the nearest valid name.

        """
        if not self.exit_on_error:
            super().error(message, ex)
        parser = getattr(ex, "subcommand_parser", None) or self
        raise LitBumpError(one_line(message, {action.dest for action in parser._actions})) from ex


class PageParser(OneLineErrors):
    """A parser whose errors are one line and whose help is one page."""

    page: Page | None = None

    @classmethod
    def of(cls, command: str, page: Page) -> PageParser:
        """Make the parser of a command.

        Args:
            command: its name.
            page: what makes the help from the parser's options.

        Returns:
            A parser without options but ``--help``.

        """
        parser = cls(prog=f"python -m lit_bump {command}", allow_abbrev=False)
        parser.page = page
        return parser

    def format_help(self, formatter: HelpFormatter | None = None) -> str:
        """Return the page of the command.

        Args:
            formatter: of the usual help, where there is no page.

        Returns:
            Text for a terminal of 120 columns.

        """
        return str(super().format_help(formatter)) if self.page is None else self.page(self._actions)

    def options(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Return the options that a command line gives.

        Args:
            arguments: the words after the command.

        Returns:
            Values by name, defaults included.

        """
        return dict(self.parse_args(list(arguments)).as_dict())
