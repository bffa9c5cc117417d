"""The commands, and the pages that ``--help`` shows: short, with what is ours first.

Lightning's own page is over 500 lines, most of them Trainer options that nobody looks for. Each option's line here is
the first sentence of its docstring, so it cannot go stale. Standard library only; prints nothing.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence

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
TRAINER_OPTIONS = (
    "max_epochs",
    "max_steps",
    "accelerator",
    "devices",
    "strategy",
    "precision",
    "logger",
    "callbacks",
    "fast_dev_run",
    "accumulate_grad_batches",
    "limit_train_batches",
    "limit_val_batches",
    "check_val_every_n_epoch",
    "default_root_dir",
    "enable_progress_bar",
)
_COLUMN = 34
_WIDTH = 118


def front_page(traceback_switch: str) -> str:
    """Return the help of the whole command line.

    Args:
        traceback_switch: the environment variable that shows tracebacks.

    Returns:
        The page.

    """
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
  {traceback_switch}=1                a traceback instead of one line, where an error is not clear
"""


def help_page(
    command: str, description: str, actions: Sequence[argparse.Action], models: Sequence[str], data: Sequence[str]
) -> str:
    """Return the help of one command of the Trainer.

    Args:
        command: its name.
        description: what it does.
        actions: of its parser.
        models: class names that ``--model`` knows.
        data: class names that ``--data`` knows.

    Returns:
        The page.

    """
    by_key = {action.dest: action for action in actions if action.option_strings and action.help != argparse.SUPPRESS}
    own = [by_key[key] for key in by_key if "." not in key and key not in {"trainer", "model", "data", "rprofile"}]
    measurement = [action for key, action in by_key.items() if re.fullmatch(r"rprofile\.\w+", key)]
    training = [by_key[f"trainer.{name}"] for name in TRAINER_OPTIONS if f"trainer.{name}" in by_key]
    parts = [
        f"usage: python -m lit_bump {command} --config CONFIG [--OPTION VALUE ...]",
        description,
        "The run:\n" + "".join(map(_option, own)),
        "The measurement, section rprofile:\n" + "".join(map(_option, measurement)),
        "Model and data, sections model and data: a class and its arguments, such as --model.width 16\n"
        + _entry("--model CLASS", f"{', '.join(models)}, or any LightningModule by its dotted path")
        + _entry("--data CLASS", f"{', '.join(data)}, or any LightningDataModule")
        + _entry("--model.help CLASS", "the arguments of a model; --data.help CLASS those of a data module"),
        "The training, section trainer: the most used ones of Lightning's Trainer, which are all accepted\n"
        + "".join(map(_option, training)),
    ]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _option(action: argparse.Action) -> str:
    names = [name for name in action.option_strings if not name.endswith(("+", ".help"))]
    says_nothing = action.default is None or action.default is False or action.default == argparse.SUPPRESS
    shown = "" if says_nothing else f" [{action.default}]"
    return _entry(", ".join(names), _first_sentence(action.help or "") + shown) if names else ""


def _first_sentence(text: str) -> str:
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?([^`]+)`", r"\1", " ".join(text.split())).replace("`", "")
    sentence = re.split(r"(?<=[^.]\w[.;])(?=\s*[A-Z]|$)", plain, maxsplit=1)[0]
    return sentence.rstrip(".;").replace("%%", "%")


def _entry(name: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - _COLUMN) or [""]
    first = f"  {name:<{_COLUMN - 2}}" if len(name) < _COLUMN - 2 else f"  {name}\n{' ' * _COLUMN}"
    return first + f"\n{' ' * _COLUMN}".join(lines) + "\n"
