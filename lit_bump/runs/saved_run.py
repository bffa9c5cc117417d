"""A training run, read back from its folder: its config, what it was trained on, its checkpoints and its profiles.

Paper: A.2 "Training" (the regimes that figures compare). Needs torch where a checkpoint is opened.
Runs of this command line have a ``config.yaml``; other Lightning runs may have ``hparams.yaml``, or neither.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure.formation import FOLDER, Formation, load_formation
from lit_bump.runs.checkpoint_file import SUFFIX, read_checkpoint
from lit_bump.runs.plain_yaml import plain_yaml

CHECKPOINTS = "checkpoints"
_VERSION = re.compile(r"version_(\d+)")
_STEP = re.compile(r"(?:\Astep_|-step=)(\d+)(?:-v\d+)?\Z")
_OWN_FILES = ("config.yaml", "hparams.yaml", FOLDER, CHECKPOINTS)  # a folder with one of these is a run
_BY_TRUST = ("step_", "epoch=")  # of two checkpoints of one step, the one whose name begins so is taken


@dataclass(frozen=True)
class SavedRun:
    """Name the folder of a run, such as ``runs/quickstart/version_0``, and read what it holds.

    Args:
        log_dir: the run's folder.
        only: a checkpoint that alone stands for the run; None for all that its folder holds.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "tiny", "version_0", "checkpoints").mkdir(parents=True)
        ...     SavedRun.find(Path(folder, "tiny")).name
        'tiny/version_0'

    """

    log_dir: Path
    only: Path | None = None

    @classmethod
    def find(cls, path: str | os.PathLike[str]) -> SavedRun:
        """Return the run that a path means.

        Args:
            path: the run's folder; that of its versions, for the newest one; or a ``.ckpt`` file, for its run with
                that checkpoint alone.

        Returns:
            The run.

        Raises:
            LitBumpError: if there is no such file or folder (the nearest one is named), or no run in it.

        """
        path = Path(path)
        if path.is_file():
            if path.suffix != SUFFIX:
                raise LitBumpError(f"{path} is neither a run's folder nor a {SUFFIX} file")
            folder = path.absolute().parent
            return cls(folder.parent if folder.name == CHECKPOINTS else folder, path)
        if not path.is_dir():
            raise LitBumpError(f"there is no run {str(path)!r}{_nearest_run(path)}")
        if path.name == CHECKPOINTS:
            path = path.absolute().parent
        if _is_run(path):
            return cls(path)
        versions = {int(match[1]): child for child in path.iterdir() if (match := _VERSION.fullmatch(child.name))}
        runs = [versions[number] for number in sorted(versions) if _is_run(versions[number])]
        if runs:  # a training that failed at once leaves a version with nothing to read
            return cls(([run for run in runs if _has_results(run)] or runs)[-1])
        beneath = sorted(str(child.parent) for child in path.glob("*/version_*") if _is_run(child))
        hint = nearest(path.name, dict.fromkeys(beneath)) if beneath else ""
        raise LitBumpError(f"{str(path)!r} holds no run: no config.yaml, {CHECKPOINTS} or version_<n>{hint}")

    @property
    def name(self) -> str:
        """Folder and version, such as ``quickstart/version_0``; the folder alone where that is no version."""
        folder = self.log_dir.absolute()
        return f"{folder.parent.name}/{folder.name}" if _VERSION.fullmatch(folder.name) else folder.name

    @property
    def config(self) -> dict[str, Any]:
        """The run's ``config.yaml`` as plain values; empty where there is none.

        Raises:
            LitBumpError: if it cannot be read.

        """
        path = self.log_dir / "config.yaml"
        config = plain_yaml(path) if path.is_file() else {}
        return config if isinstance(config, dict) else {}

    @property
    def network(self) -> str:
        """Name of the network, such as ``resnet18``; else the module's class, else the run's name."""
        options, class_name = self._section("model")
        network = options.get("network")
        if isinstance(network, dict):  # a class and its arguments
            network = str(network.get("class_path", "")).rpartition(".")[2]
        return str(network or class_name or self.name)

    @property
    def width(self) -> int | None:
        """Channels of the network's first stage; None for the paper's."""
        width = self._section("model")[0].get("width")
        return width if isinstance(width, int) else None

    @property
    def regime(self) -> str:
        """What it was trained on: ``clean``, ``blur 1``, ``permuted labels``, ``noise``, ``L2 0.5``, ``Linf 8/255``."""
        found = [*_data_regime(*self._section("data")), *_adversarial_regime(*self._section("model"))]
        return ", ".join(found) or "clean"

    def checkpoints(self) -> dict[int, Path]:
        """Return the run's checkpoints by optimiser step, each step once.

        The step is the one in the file; of a file that cannot be read, the one in its name, such as
        ``step_00000400.ckpt``: it is only refused where it is to be measured.

        Returns:
            Paths in the order of the steps; empty where none is saved.

        Raises:
            LitBumpError: if a file cannot be read and its name tells no step.

        """
        if self.only is not None:
            return {int(read_checkpoint(self.only)["global_step"]): self.only}
        found: dict[int, Path] = {}
        for path in self._checkpoint_files():
            found.setdefault(_step_of(path), path)
        return dict(sorted(found.items()))

    def formations(self) -> dict[str, Formation]:
        """Return the run's saved profiles.

        Returns:
            Formations by the name of the probe set.

        """
        return load_formation(self.log_dir)

    def _checkpoint_files(self) -> list[Path]:
        found = [path for folder in (self.log_dir / CHECKPOINTS, self.log_dir) for path in folder.glob(f"*{SUFFIX}")]
        return sorted(found, key=lambda path: ([not path.name.startswith(kind) for kind in _BY_TRUST], path.name))

    def _section(self, name: str) -> tuple[dict[str, Any], str]:
        """Return the arguments and the class name of the model or the data; both may be empty."""
        section = self.config.get(name)
        if section is None and name == "model":
            section = _hparams(self.log_dir / "hparams.yaml")
        if not isinstance(section, dict):
            return {}, ""
        options = section.get("init_args", section)
        class_path = section.get("class_path") or section.get("_class_path") or ""
        return options if isinstance(options, dict) else {}, str(class_path).rpartition(".")[2]


def _data_regime(options: dict[str, Any], class_name: str) -> Iterator[str]:
    if "Blurred" in class_name and (sigma := _number(options.get("sigma", 1.0))):
        yield f"blur {sigma:g}"
    if "PermutedLabels" in class_name:
        yield "permuted labels"
    if "Noise" in class_name:
        yield "noise"


def _adversarial_regime(options: dict[str, Any], class_name: str) -> Iterator[str]:
    if "Adversarial" in class_name and (eps := _number(options.get("eps"))):
        norm = str(options.get("norm", "L2")).capitalize()
        levels = 255 * eps
        in_levels = norm == "Linf" and abs(levels - round(levels)) < 0.01
        yield f"{norm} {round(levels)}/255" if in_levels else f"{norm} {eps:g}"


def _is_run(folder: Path) -> bool:
    return folder.is_dir() and (any((folder / name).exists() for name in _OWN_FILES) or any(folder.glob(f"*{SUFFIX}")))


def _step_of(path: Path) -> int:
    try:
        return int(read_checkpoint(path)["global_step"])
    except LitBumpError:
        if named := _STEP.search(path.stem):
            return int(named[1])
        raise


def _has_results(folder: Path) -> bool:
    return any(folder.glob(f"{FOLDER}/*/step_*.npz")) or any(folder.glob(f"**/*{SUFFIX}"))


def _nearest_run(path: Path) -> str:
    """Return a hint at what the last folder that exists does hold."""
    parent = path.parent
    while not parent.is_dir() and parent != parent.parent:
        path, parent = parent, parent.parent
    names = [child.name for child in parent.iterdir() if child.is_dir() or child.suffix == SUFFIX]
    return nearest(path.name, names) if names else ""


def _hparams(path: Path) -> Any:
    try:
        return plain_yaml(path)
    except LitBumpError:  # only a label; objects in it are no plain YAML
        return None


def _number(value: Any) -> float:
    """Return an option as a number; 0 where it is none, so that it does not show."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if math.isfinite(number) else 0.0
