"""The formation of a run: its profiles on one probe set over optimiser steps, read from the files of the run.

Paper: section 3 "Formation" (fig. 1c). Needs NumPy and ``Profile``. A run's folder holds
``profiles/<probe>/step_00000400.npz``; this module alone knows that layout, for writers and readers alike.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure.bump import Bump
from lit_bump.measure.profile import Profile

FloatArray = np.ndarray
FOLDER = "profiles"
_STEP_FILE = re.compile(r"step_(\d{8,})\.npz")


@dataclass(frozen=True, eq=False, repr=False)
class Formation:
    """Hold the profiles of one run on one probe set, by optimiser step.

    Args:
        steps: optimiser steps, increasing; 0 is the initialisation.
        profiles: one a step.

    Raises:
        LitBumpError: if the numbers differ, or a step is negative, repeated or out of order.

    """

    steps: tuple[int, ...]
    profiles: tuple[Profile, ...]

    def __post_init__(self) -> None:
        """Refuse what is no sequence of steps.

        Raises:
            LitBumpError: if the numbers differ, or a step is negative, repeated or out of order.

        """
        if len(self.steps) != len(self.profiles):
            raise LitBumpError(f"there are {len(self.steps)} steps and {len(self.profiles)} profiles; give one a step")
        if self.steps and self.steps[0] < 0:
            raise LitBumpError(f"steps begin at {self.steps[0]}; the first possible is 0")
        for before, after in itertools.pairwise(self.steps):
            if after <= before:
                raise LitBumpError(f"steps hold {before} before {after}; give them in increasing order, each once")

    def __repr__(self) -> str:
        """Return the steps, and what the newest shows, in one line."""
        newest = f"; newest: {self.profiles[-1].bump()}" if self.profiles else ""
        return f"<Formation: steps {', '.join(map(str, self.steps)) or 'none'}{newest}>"

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.steps)

    def medians(self) -> Float[FloatArray, "step rung"]:
        """Return the median profile of every step.

        Returns:
            Medians over images, ``(step, rung)``; NaN where no image is kept.

        Raises:
            LitBumpError: if the steps were measured on different ladders.

        """
        for step, profile in zip(self.steps, self.profiles, strict=True):
            if not np.array_equal(profile.etas, self.profiles[0].etas):
                raise LitBumpError(f"step {step} was measured on another ladder than step {self.steps[0]}")
        n_rungs = self.profiles[0].etas.size if self.profiles else 0
        return np.array([profile.median() for profile in self.profiles]).reshape(len(self), n_rungs)

    def bumps(self) -> tuple[Bump, ...]:
        """Return what the median profile of every step shows."""
        return tuple(profile.bump() for profile in self.profiles)


def load_formation(log_dir: str | os.PathLike[str]) -> dict[str, Formation]:
    """Return the formation of a run on each of its probe sets.

    Args:
        log_dir: the run's folder, for instance ``lightning_logs/version_0``.

    Returns:
        Formations by the name of the probe set, in alphabetic order.

    Raises:
        FileNotFoundError: if the folder holds no profiles; nearby folders that do are named.

    """
    folder = Path(log_dir) / FOLDER
    found = {path.name: step_files(path) for path in sorted(folder.glob("*")) if path.is_dir()}
    formations = {
        probe: Formation(tuple(files), tuple(Profile.load(path) for path in files.values()))
        for probe, files in found.items()
        if files
    }
    if not formations:
        raise FileNotFoundError(f"{folder} holds no profiles{_other_runs(Path(log_dir))}")
    return formations


def step_file(log_dir: str | os.PathLike[str], probe: str, step: int) -> Path:
    """Return the path of a profile in a run's folder.

    Args:
        log_dir: the run's folder.
        probe: name of the probe set.
        step: optimiser step.

    Returns:
        The path, whether or not the file exists.

    Example:
        >>> step_file("run", "cifar32", 400).as_posix()
        'run/profiles/cifar32/step_00000400.npz'

    """
    return Path(log_dir) / FOLDER / probe / f"step_{step:08d}.npz"


def step_files(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """Return the profiles in the folder of a probe set; unfinished and foreign files are passed over.

    Args:
        folder: ``<log_dir>/profiles/<probe>``; it need not exist.

    Returns:
        Paths by step, increasing.

    """
    matches = ((_STEP_FILE.fullmatch(path.name), path) for path in Path(folder).glob("step_*.npz"))
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def _other_runs(log_dir: Path) -> str:
    """Return a hint at folders beneath that hold profiles, or at a neighbour of a similar name."""
    if log_dir.is_dir():
        runs = sorted({str(path.parent) for path in log_dir.glob(f"**/{FOLDER}") if path.is_dir()})
        return f" (did you mean {', '.join(runs[:3])}?)" if runs else ""
    parent = log_dir.parent
    names = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    return f": there is no such folder{nearest(log_dir.name, names) if names else ''}"
