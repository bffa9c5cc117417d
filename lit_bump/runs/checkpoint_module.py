"""A checkpoint as the module that was trained: built as its run built it, weights loaded, in evaluation mode.

Needs Lightning. The class comes from the run's ``config.yaml``, from the user, or from the checkpoint itself; a class
that only the checkpoint names must have been imported already, so that a foreign file cannot make us import code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule

from lit_bump.errors import LitBumpError, nearest
from lit_bump.runs.checkpoint_file import read_checkpoint
from lit_bump.runs.configured_class import as_built, described, imported_class
from lit_bump.runs.saved_run import SavedRun

_BUILDER = "lightning.pytorch.cli.instantiate_module"  # knows nested classes; Lightning allows checkpoints this one
_NOT_ARGUMENTS = ("_class_path", "_instantiator")


def load_module(
    run: SavedRun | str | os.PathLike[str],
    checkpoint: int | Path | None = None,
    *,
    model: str | type[LightningModule] | None = None,
) -> LightningModule:
    """Return the module of a checkpoint.

    Args:
        run: a saved run, or what ``SavedRun.find`` takes.
        checkpoint: one of the run's optimiser steps, or a file; None for the last.
        model: class of the module or its dotted path, for a checkpoint that does not name its own.

    Returns:
        The module on the CPU, in evaluation mode, with the weights that were trained, as the callback measured them,
        also where the run kept averaged ones beside them. Global random streams are as they were.

    Raises:
        LitBumpError: if there is no such checkpoint, its class is unknown, or its weights do not fit.

    """
    run = run if isinstance(run, SavedRun) else SavedRun.find(run)
    path = checkpoint if isinstance(checkpoint, Path) else _of_step(run, checkpoint)
    contents = read_checkpoint(path)
    saved = contents.get("hyper_parameters") or {}
    section = _model_section(run)
    found = _class(model, section, saved, path)
    lacking = {name: value for name, value in _arguments(section, found).items() if name not in saved}
    if lacking and "_instantiator" not in saved:
        lacking["_instantiator"] = _BUILDER
    try:
        with as_built():
            module = found.load_from_checkpoint(path, map_location="cpu", weights_only=True, **lacking)
            if "current_model_state" in contents:  # WeightAveraging saves its average as the state_dict
                module.load_state_dict(contents["current_model_state"])
    except LitBumpError:
        raise
    except (RuntimeError, TypeError, ValueError, KeyError) as error:
        raise LitBumpError(f"{path} cannot be loaded as {found.__name__}: {described(error)}") from error
    return module.eval()


def _of_step(run: SavedRun, step: int | None) -> Path:
    checkpoints = run.checkpoints()
    if not checkpoints:
        raise LitBumpError(f"{run.log_dir} holds no checkpoints: train with --rprofile.save_checkpoints true")
    if step is None:
        return list(checkpoints.values())[-1]
    if step not in checkpoints:
        raise LitBumpError(f"{run.log_dir} has no checkpoint of step {step}{nearest(str(step), map(str, checkpoints))}")
    return checkpoints[step]


def _model_section(run: SavedRun) -> dict[str, Any]:
    section = run.config.get("model")
    return section if isinstance(section, dict) else {}


def _class(
    model: str | type[LightningModule] | None, section: dict[str, Any], saved: dict[str, Any], path: Path
) -> type[LightningModule]:
    """Return the class to build: the user's choice before the run's config before the checkpoint's own word.

    Raises:
        LitBumpError: if none names a class that may be used.

    """
    if isinstance(model, type):
        return model
    if class_path := model or section.get("class_path"):
        return imported_class(str(class_path), LightningModule)
    module, _, name = str(saved.get("_class_path", "")).rpartition(".")
    found = getattr(sys.modules.get(module), name, None) if name else None
    if isinstance(found, type) and issubclass(found, LightningModule):
        return found
    named = f"names the class {module}.{name}, which is not imported" if name else "does not name its class"
    raise LitBumpError(f"{path} {named}: give --model CLASS, such as --model lit_bump.ClassifierModule")


def _arguments(section: dict[str, Any], found: type[LightningModule]) -> dict[str, Any]:
    """Return the arguments of the config, where it is one of this class."""
    class_path, arguments = section.get("class_path"), section.get("init_args")
    if not class_path or not isinstance(arguments, dict) or imported_class(str(class_path), LightningModule) != found:
        return {}
    return {name: value for name, value in arguments.items() if name not in _NOT_ARGUMENTS}
