"""``python -m lit_bump`` (also ``lit-bump``): the front door of the command line.

Answers ``--help``, ``--version``, ``configs`` and wrong commands by itself, without torch or lightning, so that they
come at once; the training commands are in ``cli``. What a user can cure ends as one line on the error stream and exit
code 2. Not a place for options: those belong to the classes, whose docstrings are the help.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from lit_bump import config_files
from lit_bump.cli_help import COMMANDS, ENCODER_COMMANDS, LISTING_COMMANDS, RUN_COMMANDS, front_page
from lit_bump.errors import LitBumpError, nearest

SHOW_TRACEBACK = "LIT_BUMP_TRACEBACK"
INTERRUPTED = 130  # what a shell reports for a command that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: what follows the program's name; those of this process if not given.

    Returns:
        0 on success, 2 where the user can cure the error (its line is then the last on the error stream), 130 after
        Ctrl-C.

    Raises:
        LitBumpError: where the environment sets ``LIT_BUMP_TRACEBACK=1``, instead of the line.

    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except LitBumpError as error:
        if os.environ.get(SHOW_TRACEBACK, "0") not in {"", "0"}:
            raise
        line = " ".join(str(error).split())
        sys.stderr.write(f"lit_bump: error: {line}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("lit_bump: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(words: list[str]) -> int:
    if not words:
        raise LitBumpError(f"no command given; choose one of {', '.join(COMMANDS)} (see python -m lit_bump --help)")
    command, rest = words[0], words[1:]
    if command in {"-h", "--help", "help"}:
        sys.stdout.write(front_page(SHOW_TRACEBACK))
    elif command == "--version":
        from lit_bump import __version__

        sys.stdout.write(f"lit_bump {__version__}\n")
    elif command.startswith("-"):
        raise LitBumpError(f"{command} comes before the command; write: python -m lit_bump fit {' '.join(words)}")
    elif command not in COMMANDS:
        raise LitBumpError(f"no command {command!r}{nearest(command, COMMANDS)}")
    elif command in LISTING_COMMANDS:
        _list(command, rest)
    elif command in {**RUN_COMMANDS, **ENCODER_COMMANDS}:
        module = import_module(f"lit_bump.cli_{command}")
        getattr(module, f"run_{command}")(rest)
    else:
        options, configs = config_files.resolve(rest)  # a missing config is said before torch loads
        from lit_bump import cli

        cli.run_trainer(command, options, run_name=configs[0].stem if configs else command)
    return 0


def _list(command: str, rest: list[str]) -> None:
    if rest and rest[0] in {"-h", "--help"}:
        sys.stdout.write(f"usage: python -m lit_bump {command}\n\n{LISTING_COMMANDS[command]}\n")
    elif command == "configs" and len(rest) == 1:
        sys.stdout.write(config_files.find_config(rest[0]).read_text(encoding="utf-8"))
    elif rest:
        raise LitBumpError(f"{command} takes no argument {rest[-1]!r}")
    elif command == "configs":
        _print_table("config", {name: config_files.summary(path) for name, path in config_files.packaged().items()})
    elif command == "encoders":
        from lit_bump.encoders import ENCODERS

        _print_table("encoder", ENCODERS)
    else:
        from lit_bump.probes import IMAGE_SETS, PROBE_SETS

        _print_table("probe set", PROBE_SETS)
        _print_table("image set, for probe", IMAGE_SETS)


def _print_table(heading: str, rows: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(heading, no_wrap=True)
    table.add_column("what it is")
    for name, text in rows.items():
        table.add_row(name, text)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    sys.exit(main())
