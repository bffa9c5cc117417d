"""The profiles that a run's folder holds already: which of them stand, and which are in the way.

Paper: A.2 (one protocol a formation). A formation holds one protocol, one set of images and one Phi: a profile of
another kind is refused, or moved to ``profiles.1`` and so on. Nothing is deleted and nothing is mixed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from lit_bump.callbacks.formation_table import Row, formation_row
from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, image_digests
from lit_bump.measure.extended_ladder import n_further_rungs
from lit_bump.measure.formation import FOLDER, Formation, step_file, step_files
from lit_bump.probes import ProbeSet


@dataclass(frozen=True)
class Task:
    """What is to be measured at every step under one label.

    Args:
        probe: the images.
        protocol: on the ladder that is asked for.
        encoder: name of Phi in the records.
        extend: whether further rungs may follow the ladder.

    """

    probe: ProbeSet
    protocol: Protocol
    encoder: str
    extend: bool

    def difference(self, profile: Profile) -> str:
        """Say in what a profile differs from what is asked for.

        Args:
            profile: a saved one.

        Returns:
            Words for a message; empty where it stands.

        """
        if profile.image_digests != image_digests(self.probe.images):
            return "other images"
        if profile.context.get("encoder", self.encoder) != self.encoder:
            return f"another encoder ({profile.context['encoder']}, now {self.encoder})"
        further = n_further_rungs(self.protocol, profile.protocol)
        if further is None:
            return f"another protocol ({_changes(profile.protocol, self.protocol)})"
        return f"{further} further rungs, which --extend true takes" if further and not self.extend else ""


class KeptProfiles:
    """Keep the profiles of a run's folder that stand for some tasks, and add to them.

    Args:
        log_dir: the run's folder.
        tasks: by label, the name of a probe set's folder.
        overwrite: move profiles that differ out of the way.

    Raises:
        LitBumpError: if a saved profile differs and ``overwrite`` is false, or a file is no profile.

    """

    def __init__(self, log_dir: Path, tasks: Mapping[str, Task], *, overwrite: bool) -> None:
        self.log_dir, self.overwrite = log_dir, overwrite
        self._aside: Path | None = None
        for label, task in tasks.items():
            for step, path in step_files(step_file(log_dir, label, 0).parent).items():
                if difference := task.difference(Profile.load(path)):
                    self.refuse(label, step, difference)
        self._files = ProfileFiles(log_dir, tasks)
        self._files.go_back_to(sys.maxsize, None)  # reads all there are
        self._rows: dict[tuple[str, int], Row] = {}
        for row in self._files.rows():
            self._rows[row["probe"], row["step"]] = row
        if self._rows:  # a process that was killed may have left a profile without its row
            self._files.write_table(self._rows.values())

    def refuse(self, label: str, step: int, difference: str) -> None:
        """Move a profile out of the way, or refuse to.

        Args:
            label: of the probe set.
            step: optimiser step.
            difference: in what it differs, in words.

        Raises:
            LitBumpError: if nothing may be overwritten.

        """
        path = step_file(self.log_dir, label, step)
        if not self.overwrite:
            cure = "give --name X to keep both, or --overwrite true"
            raise LitBumpError(f"{path} was measured with {difference}; {cure}")
        self._aside = self._aside or _unused_folder(self.log_dir)
        (self._aside / label).mkdir(parents=True, exist_ok=True)
        path.rename(self._aside / label / path.name)

    def get(self, label: str, step: int) -> Profile | None:
        """Return a profile that stands.

        Args:
            label: of the probe set.
            step: optimiser step.

        Returns:
            The profile, or None where it is still to be measured.

        """
        formation = self._files.formation(label)
        return dict(zip(formation.steps, formation.profiles, strict=True)).get(step)

    def add(self, label: str, step: int, profile: Profile) -> None:
        """Save a profile and its row.

        Args:
            label: of the probe set.
            step: optimiser step.
            profile: with the facts that a row needs in its context.

        """
        self._files.add(label, step, profile)
        self._rows[label, step] = formation_row(profile)
        self._files.write_table(self._rows.values())

    def formation(self, label: str, steps: tuple[int, ...]) -> Formation:
        """Return the profiles of some steps.

        Args:
            label: of the probe set.
            steps: optimiser steps that are there, increasing.

        Returns:
            The formation of these steps.

        """
        found = self._files.formation(label)
        profiles = dict(zip(found.steps, found.profiles, strict=True))
        return Formation(steps, tuple(profiles[step] for step in steps))


def _changes(saved: Protocol, asked: Protocol) -> str:
    """Return the fields of two protocols that differ, in words."""
    pairs = {field.name: (getattr(saved, field.name), getattr(asked, field.name)) for field in fields(Protocol)}
    pairs["etas"] = (_range(saved.etas), _range(asked.etas))
    if saved.etas != asked.etas and pairs["etas"][0] == pairs["etas"][1]:
        return "etas"
    return "; ".join(f"{name} {old}, now {new}" for name, (old, new) in pairs.items() if old != new)


def _range(etas: tuple[float, ...]) -> str:
    return f"{len(etas)} rungs {etas[0]:.3g}..{etas[-1]:.3g}"


def _unused_folder(log_dir: Path) -> Path:
    n = 1
    while (aside := log_dir / f"{FOLDER}.{n}").exists():
        n += 1
    return aside
