"""The training commands: Lightning's command line with the measurement as a section of its own, ``rprofile:``.

Paper: A.2 "Training". The callback is forced (a later file that lists ``trainer.callbacks`` cannot lose it);
``--rprofile.enable false`` is the one way to switch it off. Runs go to ``<default_root_dir>/<run_name>/version_<n>``,
with or without a logger, so nothing is ever overwritten. Importing this file loads torch and lightning.
"""

from __future__ import annotations

import logging
import warnings
from argparse import HelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI, SaveConfigCallback
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_info
from lightning.pytorch.utilities.exceptions import SIGTERMException

# The first two are loaded so that a config may name their classes alone: jsonargparse looks among subclasses.
from lit_bump import datamodules, modules  # noqa: F401
from lit_bump.callbacks import RProfileCallback
from lit_bump.cli_checkpoint import check_checkpoint, checkpoint_misfit
from lit_bump.cli_errors import one_line, subclass_names
from lit_bump.cli_help import TRAINER_COMMANDS, help_page
from lit_bump.cli_parser import OneLineErrors
from lit_bump.errors import LitBumpError
from lit_bump.modules.run_length import run_length

RUNS = "runs"
TERMINATED = 143  # what a shell reports for a command that SIGTERM ended
# What Lightning 2.6 does to torch 2.14 and jsonargparse 4.53; no user can cure it.
_DEPRECATED_BY_OTHERS = (
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",
    r"\s*By default only one JsonargparseDeprecationWarning",
    r"\s*.+ was deprecated in v4\.\d+\.\d+ and will be",
)
_NO_CHECKPOINTS_TO_COME = "The dirpath has changed"  # of a ModelCheckpoint that an evaluation never calls
_CURABLE = (LitBumpError, MisconfigurationException, OSError)
_CURABLE_IN_CONSTRUCTORS = (*_CURABLE, TypeError, ValueError, ImportError)


def run_trainer(command: str, arguments: Sequence[str], *, run_name: str) -> BumpCLI:
    """Run one of the Trainer's commands.

    Args:
        command: ``fit``, ``validate``, ``test`` or ``predict``.
        arguments: the words after it, with paths for configs.
        run_name: the default name of the run's folder.

    Returns:
        The command line after its run, with ``trainer``, ``model``, ``datamodule`` and ``config``.

    Raises:
        LitBumpError: for every error that the user can cure, with a message of one line.
        KeyboardInterrupt: if Ctrl-C ended the run; Lightning has then closed its loggers.

    """
    logging.getLogger("lightning.pytorch.utilities.rank_zero").addFilter(_is_no_advertisement)
    with warnings.catch_warnings():
        for message in (*_DEPRECATED_BY_OTHERS, *(() if command == "fit" else (_NO_CHECKPOINTS_TO_COME,))):
            warnings.filterwarnings("ignore", message=message)
        return BumpCLI([command, *arguments], run_name=run_name)


class BumpArgumentParser(OneLineErrors, LightningArgumentParser):
    """Lightning's parser, whose errors are one line and whose help is one page."""

    command: str | None = None  # of the Trainer; None for the parsers of classes, which keep their usual help

    def format_help(self, formatter: HelpFormatter | None = None) -> str:
        """Return the page of a command.

        Args:
            formatter: of the usual help of a class.

        Returns:
            Text for a terminal of 120 columns.

        """
        if self.command is None:
            return str(super().format_help(formatter))
        models, data = subclass_names(LightningModule), subclass_names(LightningDataModule)
        return help_page(self.command, TRAINER_COMMANDS[self.command], self._actions, models, data)


class VersionedConfig(SaveConfigCallback):
    """Save the config of a training run beside its results, under a name that is free."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Save ``config.yaml`` in the run's folder, or ``config_1.yaml`` and so on where a resumed run has one.

        Args:
            trainer: the Trainer, whose ``log_dir`` is the run's folder.
            pl_module: the module to be trained.
            stage: only ``fit`` is saved.

        """
        if stage != "fit" or self.already_saved:
            return
        folder = Path(str(trainer.log_dir))
        count = sum(1 for _ in folder.glob("config*.yaml")) if trainer.is_global_zero else 0
        count = trainer.strategy.broadcast(count)
        if count:
            self.config_filename = f"config_{count}.yaml"
        rank_zero_info(f"Run folder: {folder} ({self.config_filename})")
        super().setup(trainer, pl_module, stage)


class BumpCLI(LightningCLI):
    """Lightning's command line with ``rprofile:`` and ``run_name``, for any LightningModule and data module."""

    def __init__(self, arguments: list[str], *, run_name: str) -> None:
        self._run_name = run_name
        super().__init__(
            save_config_callback=VersionedConfig,
            trainer_defaults={"default_root_dir": RUNS},
            seed_everything_default=0,  # a run without a seed can be repeated, too
            parser_class=BumpArgumentParser,
            parser_kwargs={"prog": "python -m lit_bump", "allow_abbrev": False},
            auto_configure_optimizers=False,
            args=arguments,
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the run's name and the measurement's section.

        Args:
            parser: the parser of one command.

        """
        parser.add_argument(
            "--run_name",
            type=str,
            default=self._run_name,
            help="The run goes to <trainer.default_root_dir>/<run_name>/version_<n>; by default the config's name.",
        )
        parser.add_lightning_class_args(RProfileCallback, "rprofile")

    def _prepare_subcommand_parser(self, klass: type, subcommand: str, **kwargs: Any) -> LightningArgumentParser:
        parser = super()._prepare_subcommand_parser(klass, subcommand, **kwargs)
        assert isinstance(parser, BumpArgumentParser)
        parser.command = subcommand
        return parser

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parse the words given, whatever this process was started with.

        Args:
            parser: the parser of all commands.
            args: the command and what follows it.

        Raises:
            LitBumpError: if a section holds no options, or its file cannot be read; a wrong word in one is raised by
                the parser.

        """
        assert isinstance(args, list)  # __init__ takes nothing else
        try:
            self.config = parser.parse_args(args)
        except (OSError, UnicodeDecodeError) as error:  # of a file named in place of a section
            raise LitBumpError(_reason(error)) from error
        for section in ("trainer", "rprofile"):
            options = self.config[self.config["subcommand"]][section]
            if not isinstance(options, Namespace):
                raise LitBumpError(f"{section}: expected options by name, got {options!r}")

    def _parse_ckpt_path(self) -> None:
        """Leave the config as the user wrote it: Lightning would put the checkpoint's hyperparameters over it."""

    def instantiate_classes(self) -> None:
        """Make model, data module, callbacks and Trainer from the config.

        Raises:
            LitBumpError: if one of them refuses its arguments.

        """
        try:
            super().instantiate_classes()
        except _CURABLE_IN_CONSTRUCTORS as error:
            raise LitBumpError(_reason(error)) from error

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Make the Trainer, with a folder of its own for each run.

        Args:
            kwargs: arguments beside those of the config.

        Returns:
            A Trainer that logs to TensorBoard by default; without a logger its root is the next free version.

        """
        config = self._get(self.config_init, "trainer")
        root, run_name = Path(config["default_root_dir"] or RUNS), self._get(self.config_init, "run_name")
        logger = config["logger"]
        if logger is None:
            logger = self.subcommand == "fit"  # the other commands print their numbers and leave no folder
        if logger is True and not config["fast_dev_run"]:
            kwargs["logger"] = TensorBoardLogger(root, name=run_name, default_hp_metric=False)
        elif not logger or config["fast_dev_run"]:
            kwargs |= {"logger": False, "default_root_dir": _next_version(root / run_name)}
        return super().instantiate_trainer(**kwargs)

    def _set_seed(self) -> None:
        try:
            super()._set_seed()
        except ValueError as error:
            raise LitBumpError(f"seed_everything: {error}") from error

    def _run_subcommand(self, subcommand: str) -> None:
        try:
            weights_only = self._get(self.config_init, "weights_only")
            step = check_checkpoint(self._get(self.config_init, "ckpt_path"), weights_only=weights_only)
            if subcommand == "fit":
                _check_limits(self.trainer)
            super()._run_subcommand(subcommand)
            if subcommand == "fit":
                _check_training(self.trainer, step)
        except BrokenPipeError:  # nobody reads on; not for the user to cure
            raise
        except _CURABLE as error:
            raise LitBumpError(_reason(error)) from error
        except RuntimeError as error:
            if misfit := checkpoint_misfit(str(error)):
                raise LitBumpError(misfit) from error
            raise
        except SIGTERMException:  # its own exit code would be 0, which a scheduler takes for success
            raise SystemExit(TERMINATED) from None
        except SystemExit:
            if self.trainer.interrupted:  # Lightning turns Ctrl-C into exit code 1
                raise KeyboardInterrupt from None
            raise


def _check_limits(trainer: Trainer) -> None:
    for name in ("limit_train_batches", "max_steps", "max_epochs"):
        if getattr(trainer, name) == 0:
            raise LitBumpError(f"trainer.{name}=0 leaves nothing to train: give at least 1")


def _check_training(trainer: Trainer, resumed_step: int | None) -> None:
    if trainer.num_training_batches == 0:
        raise LitBumpError("the training data hold no batch (0 batches an epoch), so nothing was trained")
    if resumed_step and trainer.global_step == resumed_step:
        total = run_length(trainer)
        if total is not None and resumed_step >= total:
            rank_zero_info(f"nothing left to train: step {resumed_step} of {total}")


def _is_no_advertisement(record: logging.LogRecord) -> bool:
    return "Tip: For seamless" not in record.getMessage()


def _next_version(folder: Path) -> Path:
    taken = [int(path.name[8:]) for path in folder.glob("version_*") if path.name[8:].isdigit()]
    return folder / f"version_{max(taken, default=-1) + 1}"


def _reason(error: Exception) -> str:
    text = one_line(str(error), ())
    return text if isinstance(error, (LitBumpError, ValueError)) else f"{type(error).__name__}: {text}"
