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
RUN_COMMANDS = {
    "measure": "measure saved runs at their checkpoints, on any probe sets",
    "figures": "draw the paper's figures from the saved profiles of runs",
    "claims": "train what is missing, measure it, and say which of the paper's claims hold",
    "watch": "show in the terminal how the profiles of a run form",
    "report": "write one page with the profiles of runs, to be opened in any browser",
}
ENCODER_COMMANDS = {
    "probe": "measure frozen encoders (torchvision, timm, checkpoints) on sets of images",
}
LISTING_COMMANDS = {
    "configs": "list the packaged configs; configs NAME prints one",
    "probes": "list the named probe sets and image sets",
    "encoders": "list how frozen encoders are named",
}
COMMANDS = {**TRAINER_COMMANDS, **RUN_COMMANDS, **ENCODER_COMMANDS, **LISTING_COMMANDS}
FIGURES = {
    "1c": "formation: the medians of all steps, a panel a run; on the test images that most runs have",
    "2a": "adversarial training: profiles and local predictions by budget, beside the clean run's",
    "2b": "blur: a panel for each training blur, a curve for each evaluation blur (probe sets X, Xb1, Xb2)",
    "2c": "permuted labels and noise inputs: a panel a run, a curve a probe set",
    "profile": "every run on every probe set, a panel each",
}
PROBE_FIGURES = {
    "1a": "frozen encoders: each trained one on one image set, a panel each, every image a thin line",
    "1b": "frozen encoders: trained ones solid, random ones dashed, medians in one panel",
    "3": "trained encoders (rows) on all image sets (columns)",
    "4": "random encoders on all image sets",
    "5": "adversarially trained encoders (robust:...), by budget, on all image sets",
    "compare": "all medians in one panel, also of runs; images of several sizes by their amplitude a pixel",
}
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
  python -m lit_bump measure runs/quickstart --probes shapes32 noise32 --protocol paper --steps last
  python -m lit_bump figures runs/quickstart runs/quickstart_randlabel --formats png pdf
  python -m lit_bump claims --scale laptop                        the paper's seven claims, in a quarter of an hour
  python -m lit_bump probe --encoder timm:vit_small_patch16_224.augreg_in1k --images folder:DIR
  python -m lit_bump probe --encoder demo random:demo --images demo           real weights and photographs, no network
  python -m lit_bump watch runs/quickstart
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


def measure_page(actions: Sequence[argparse.Action]) -> str:
    """Return the help of ``measure``.

    Args:
        actions: of its parser.

    Returns:
        The page.

    """
    return f"""usage: python -m lit_bump measure RUN [RUN ...] --probes NAME [NAME ...] [--OPTION VALUE ...]

{RUN_COMMANDS["measure"]}

A RUN is a run's folder, the folder of its versions (for the newest one), or a .ckpt file. Each is measured on every
probe set at every step, into its own profiles/<probe>/step_<n>.npz and profiles/formation.csv. What is there already is
not measured again: a command that was interrupted goes on when it is given again.

options:
{"".join(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)}
examples:
  python -m lit_bump measure runs/quickstart --probes shapes32 shapes32b1 shapes32b2 --protocol paper
  python -m lit_bump measure runs/*_clean --probes cifar32 noise32 --data_dir DIR --steps first and last
"""


def figures_page(actions: Sequence[argparse.Action]) -> str:
    """Return the help of ``figures``.

    Args:
        actions: of its parser.

    Returns:
        The page.

    """
    return f"""usage: python -m lit_bump figures RUN [RUN ...] [--OPTION VALUE ...]

{RUN_COMMANDS["figures"]}

A RUN is a run's folder, the folder of its versions (for the newest one), or one that probe wrote. Nothing is measured:
a figure is drawn from the profiles in these folders, those of the last measured step unless it says otherwise.

figures of runs:
{"".join(f"  {name:9} {text}" + chr(10) for name, text in FIGURES.items())}
figures of folders that probe wrote:
{"".join(f"  {name:9} {text}" + chr(10) for name, text in PROBE_FIGURES.items())}
2a, 2b and 2c compare runs of one network; of several networks each gets a file of its own. "all" draws those for which
the runs hold the data, and says which it leaves out and why.

options:
{"".join(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)}
examples:
  python -m lit_bump figures runs/quickstart
  python -m lit_bump figures runs/resnet18_* --figure 2b --probe cifar32 --formats pdf --band confidence
  python -m lit_bump figures probe runs/quickstart --figure compare
"""


def claims_page(actions: Sequence[argparse.Action]) -> str:
    """Return the help of ``claims``.

    Args:
        actions: of its parser.

    Returns:
        The page.

    """
    return f"""usage: python -m lit_bump claims [--scale laptop | cifar-small | paper] [--OPTION VALUE ...]

{RUN_COMMANDS["claims"]}

laptop       drawn shapes and narrow networks; no download
cifar-small  CIFAR-10, width 16, 2,500 steps a run
paper        the paper's configs; meant for a GPU

Writes runs, claims.json, claims.md, a figure for each claim, report.html and formation.html into one folder. What is
there already is not done again: a command that was interrupted or killed goes on when it is given again.

options:
{"".join(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)}
examples:
  python -m lit_bump claims
  python -m lit_bump claims --scale cifar-small --data_dir DIR --only C4 C5
  python -m lit_bump claims --scale paper --data_dir DIR --dry-run
"""


def report_page(actions: Sequence[argparse.Action]) -> str:
    """Return the help of ``report``.

    Args:
        actions: of its parser.

    Returns:
        The page.

    """
    return f"""usage: python -m lit_bump report RUN [RUN ...] [-o FILE]

{RUN_COMMANDS["report"]}

A RUN is a run's folder, or the folder of its versions (for the newest one). The page is that of TensorBoard's Bump tab,
with all numbers inside: profiles by step, growth, map, export. It needs neither TensorBoard nor a network.

options:
{"".join(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)}
examples:
  python -m lit_bump report runs/quickstart runs/quickstart_randlabel -o report.html
"""


def watch_page(actions: Sequence[argparse.Action]) -> str:
    """Return the help of ``watch``.

    Args:
        actions: of its parser.

    Returns:
        The page.

    """
    return f"""usage: python -m lit_bump watch RUN [--OPTION VALUE ...]

{RUN_COMMANDS["watch"]}

A RUN is a run's folder, or the folder of its versions (for the newest one), also one that is still empty. Ctrl-C ends.

options:
{"".join(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)}
examples:
  python -m lit_bump watch runs/quickstart
  python -m lit_bump watch runs/quickstart --probe shapes32 --once true
"""


def probe_page(actions: Sequence[argparse.Action]) -> str:
    """Return the help of ``probe``.

    Args:
        actions: of its parser.

    Returns:
        The page.

    """
    return f"""usage: python -m lit_bump probe --encoder SPEC [SPEC ...] --images SPEC [SPEC ...] [--OPTION VALUE ...]

{ENCODER_COMMANDS["probe"]}

Every encoder is measured on every image set; python -m lit_bump encoders and python -m lit_bump probes list how they
are named. The normalisation of an encoder is inside it, and its images are resized and cropped as it wants them; what
was chosen is printed. Finished profiles are kept: a command that was interrupted goes on when it is given again.

options:
{"".join(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)}
examples:
  python -m lit_bump probe --encoder demo random:demo --images demo --out out
  python -m lit_bump probe --encoder torchvision:resnet50:IMAGENET1K_V2 --images val64:DIR --protocol paper
  python -m lit_bump probe --encoder timm:vit_small_patch16_224.augreg_in1k@layer=blocks.5+blocks.11 --images DIR
  python -m lit_bump figures out --figure compare
"""


def _option(action: argparse.Action) -> str:
    names = [name for name in action.option_strings if not name.endswith(("+", ".help"))]
    says_nothing = action.default is None or action.default is False or action.default == argparse.SUPPRESS
    words = " ".join(map(str, action.default)) if isinstance(action.default, list) else action.default
    shown = "" if says_nothing else f" [{words}]"
    return _entry(", ".join(names), _first_sentence(action.help or "") + shown) if names else ""


def _first_sentence(text: str) -> str:
    plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?([^`]+)`", r"\1", " ".join(text.split())).replace("`", "")
    sentence = re.split(r"(?<=[^.]\w[.;])(?=\s*[A-Z]|$)", plain, maxsplit=1)[0]
    return sentence.rstrip(".;").replace("%%", "%")


def _entry(name: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - _COLUMN) or [""]
    first = f"  {name:<{_COLUMN - 2}}" if len(name) < _COLUMN - 2 else f"  {name}\n{' ' * _COLUMN}"
    return first + f"\n{' ' * _COLUMN}".join(lines) + "\n"
