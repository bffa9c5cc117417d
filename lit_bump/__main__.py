"""``python -m lit_bump`` (also ``lit-bump``): the front door of the command line.

Answers ``--help``, ``--version``, ``configs`` and wrong commands by itself, without torch or lightning, so that they
come at once; the training commands are in ``cli``. What a user can cure ends as one line on the error stream and exit
code 2. Not a place for options: those belong to the classes, whose docstrings are the help.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from lit_bump import cli_configs
from lit_bump.errors import LitBumpError, nearest

TRAINER_COMMANDS = {
    "fit": "train a network and measure its response profiles while it trains",
    "validate": "evaluate on the validation images",
    "test": "evaluate on the test images",
    "predict": "predict on the prediction images",
}
LISTING_COMMANDS = {
    "configs": "list the packaged configs; configs NAME prints one",
    "probes": "list the named probe sets",
}
COMMANDS = {**TRAINER_COMMANDS, **LISTING_COMMANDS}
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
        return _run(words)
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
        sys.stdout.write(_help())
    elif command == "--version":
        from lit_bump import __version__

        sys.stdout.write(f"lit_bump {__version__}\n")
    elif command.startswith("-"):
        raise LitBumpError(f"{command} comes before the command; write: python -m lit_bump fit {' '.join(words)}")
    elif command not in COMMANDS:
        raise LitBumpError(f"no command {command!r}{nearest(command, COMMANDS)}")
    elif command in LISTING_COMMANDS:
        _list(command, rest)
    else:
        options, configs = cli_configs.resolve(rest)  # a missing config is said before torch loads
        from lit_bump import cli

        cli.run_trainer(command, options, run_name=configs[0].stem if configs else command)
    return 0


def _list(command: str, rest: list[str]) -> None:
    if rest and rest[0] in {"-h", "--help"}:
        sys.stdout.write(f"usage: python -m lit_bump {command}\n\n{LISTING_COMMANDS[command]}\n")
    elif command == "configs" and len(rest) == 1:
        sys.stdout.write(cli_configs.find_config(rest[0]).read_text(encoding="utf-8"))
    elif rest:
        raise LitBumpError(f"{command} takes no argument {rest[-1]!r}")
    elif command == "configs":
        _print_table("config", {name: cli_configs.summary(path) for name, path in cli_configs.packaged().items()})
    else:
        from lit_bump.probes import PROBE_SETS

        _print_table("probe set", PROBE_SETS)


def _print_table(heading: str, rows: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(heading, no_wrap=True)
    table.add_column("what it is")
    for name, text in rows.items():
        table.add_row(name, text)
    Console(highlight=False).print(table)


def _help() -> str:
    listing = "\n".join(f"  {name:10} {text}" for name, text in COMMANDS.items())
    return f"""usage: python -m lit_bump COMMAND ...

Train image encoders and measure, scale by scale, how far they depart from their local linear description.

commands:
{listing}

examples:
  python -m lit_bump fit --config quickstart.yaml                 about a minute on a laptop, no download
  python -m lit_bump fit --config wrn_randlabel.yaml --data.data_dir DIR
  python -m lit_bump fit --config quickstart.yaml --rprofile.protocol paper --trainer.max_steps 400
  python -m lit_bump test --config runs/quickstart/version_0/config.yaml --ckpt_path FILE

A config is a file, or the bare name of one in this folder or among the packaged ones. A run goes to
runs/<config>/version_<n>: config.yaml, profiles, checkpoints and TensorBoard events.

  python -m lit_bump COMMAND --help   the options of a command
  python -m lit_bump --version        the installed version
  {SHOW_TRACEBACK}=1                a traceback instead of one line, where an error is not clear
"""


if __name__ == "__main__":
    sys.exit(main())
