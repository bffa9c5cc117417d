"""The files of a run: a profile per step and probe set, and the table of all of them. Written by the first process.

Paper: section 3 "Formation". Imports ``measure`` alone. Every file is written whole before it gets its name. What the
folder holds is always one history, each step once: what a run supersedes that goes back to an older checkpoint, or that
begins anew in the folder of an older one, is moved to ``profiles.1``, ``profiles.2`` and so on. Nothing is deleted.
What cannot be written (disk full, folder read-only or gone) stays in memory and is written as soon as that works.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from PIL import Image

from lit_bump.callbacks.formation_table import Row, formation_row, write_table
from lit_bump.measure import Profile
from lit_bump.measure.formation import FOLDER, Formation, step_file, step_files
from lit_bump.whole_file import whole_file

TABLE = "formation.csv"
LOCK = ".profiles.lock"
WAIT = 10.0  # seconds: the workers of a run that was killed hold its lock until they notice


class ProfileFiles:
    """Keep the profiles of some probe sets in a run's folder.

    Args:
        log_dir: the run's folder.
        labels: the names of the probe sets' folders.

    """

    def __init__(self, log_dir: Path, labels: Iterable[str]) -> None:
        self.log_dir = log_dir
        self.labels = tuple(labels)
        self._profiles: dict[str, dict[int, Profile]] = {label: {} for label in self.labels}
        self._unsaved: set[tuple[str, int]] = set()
        self._lock: BaseFileLock | None = None

    def hold(self) -> bool:
        """Keep other processes from writing into the same folder, until ``release`` or the end of this process.

        Returns:
            False where another process writes there now. True also where the file system knows no locks.

        """
        try:
            self.log_dir.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.log_dir / LOCK, timeout=WAIT, is_singleton=True)  # two callbacks of a run share it
            lock.acquire()
        except Timeout:
            return False
        except (OSError, NotImplementedError):
            return True
        self._lock = lock
        return True

    def release(self) -> None:
        """Let others write into the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def go_back_to(self, step: int, earlier: Path | None) -> Path | None:
        """Take up a run at a step: later files are moved aside, earlier ones read, from another folder where need be.

        Args:
            step: optimiser step at which the run goes on; -1 for a new run.
            earlier: folder of the run that goes on, if it was another one; its files are copied.

        Returns:
            Where the later files are now, or None if there were none.

        """
        aside: Path | None = None
        for label in self.labels:
            folder = step_file(self.log_dir, label, 0).parent
            for later, path in step_files(folder).items():
                if later > step:
                    aside = aside or self._unused_folder()
                    (aside / label).mkdir(parents=True, exist_ok=True)
                    path.rename(aside / label / path.name)
            if earlier is not None and earlier != self.log_dir:
                for old_step, path in step_files(step_file(earlier, label, 0).parent).items():
                    if old_step <= step and not step_file(self.log_dir, label, old_step).exists():
                        with whole_file(folder / path.name) as partial:
                            shutil.copyfile(path, partial)
            self._profiles[label] = {n: Profile.load(path) for n, path in step_files(folder).items()}
        return aside

    def set_aside(self) -> Path | None:
        """Move all profiles of an older run in the same folder out of the way.

        Returns:
            Where they are now, or None if there were none.

        """
        folder = self.log_dir / FOLDER
        if not any(folder.glob("*/step_*.npz")):
            return None
        return folder.rename(self._unused_folder())

    def _unused_folder(self) -> Path:
        n = 1
        while (aside := self.log_dir / f"{FOLDER}.{n}").exists():
            n += 1
        return aside

    def add(self, label: str, step: int, profile: Profile) -> None:
        """Save a profile.

        Args:
            label: of the probe set.
            step: optimiser step.
            profile: with the facts that a row needs in its context.

        Raises:
            OSError: if it cannot be written.

        """
        profile.save(step_file(self.log_dir, label, step))
        self._profiles[label][step] = profile

    def keep(self, label: str, step: int, profile: Profile) -> None:
        """Take in a profile that the next ``write`` saves.

        Args:
            label: of the probe set.
            step: optimiser step.
            profile: with the facts that a row needs in its context.

        """
        self._profiles[label][step] = profile
        self._unsaved.add((label, step))

    def write(self, rows: Iterable[Row], folder: Path | None = None) -> str:
        """Save every profile that has no file yet, and the table; what fails is tried again by the next call.

        Args:
            rows: of the table, of these probe sets; those of other callbacks stay.
            folder: where to, instead of the run's folder.

        Returns:
            What is in the way, in words; empty where all is written.

        """
        place = folder or self.log_dir
        try:
            for label, of_label in self._profiles.items():
                for step, profile in of_label.items():
                    path = step_file(place, label, step)
                    if (label, step) in self._unsaved or not path.exists():  # the folder may have been deleted
                        profile.save(path)
                        self._unsaved.discard((label, step))
            write_table(place / FOLDER / TABLE, rows)
        except OSError as error:
            return f"{place / FOLDER}: {error.strerror or error}"
        return ""

    def formation(self, label: str) -> Formation:
        """Return all profiles of a probe set so far.

        Args:
            label: of the probe set.

        Returns:
            In order of the steps.

        """
        profiles = dict(sorted(self._profiles[label].items()))
        return Formation(tuple(profiles), tuple(profiles.values()))

    def add_picture(self, label: str, name: str, pixels: np.ndarray) -> None:
        """Save a picture beside the profiles.

        Args:
            label: of the probe set.
            name: of the file, with ``.png``.
            pixels: ``(height, width, 3)``, 8 bits a channel.

        """
        with whole_file(step_file(self.log_dir, label, 0).parent / name) as partial:
            Image.fromarray(pixels).save(partial, format="png")

    def write_table(self, rows: Iterable[Row]) -> None:
        """Write the table anew.

        Args:
            rows: of these probe sets; those of other callbacks stay.

        """
        write_table(self.log_dir / FOLDER / TABLE, rows)

    def rows(self) -> list[Row]:
        """Return the rows of all saved profiles."""
        return [formation_row(profile) for of_label in self._profiles.values() for profile in of_label.values()]
