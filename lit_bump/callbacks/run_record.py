"""What a run has measured so far: its table and cost, and their copies in files, loggers and pictures.

Paper: section 3 "Formation". Imports Lightning. Table and cost are known to every process and go into checkpoints;
files, loggers and pictures are the first process's alone. Files come first: nothing that a logger does can lose them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch import Trainer
from lightning.pytorch.utilities import rank_zero_info, rank_zero_warn
from lightning.pytorch.utilities.seed import isolate_rng

from lit_bump.callbacks.formation_table import Row, formation_row
from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.callbacks.profile_log import ProfileLog, shows_images
from lit_bump.callbacks.profile_scalars import monitored, unknown
from lit_bump.callbacks.profile_summary import final_metrics, print_summary
from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile
from lit_bump.probes import ProbeSet

FIGURE_FILE = "formation.png"


class RunRecord:
    """Keep the measurements of one run.

    Args:
        figures: draw them.

    Attributes:
        rows: of the formation table, in order.
        seconds: spent on all measurements.
        log: the way to the loggers.
        log_dir: the run's folder, absolute, once it is known.

    """

    def __init__(self, figures: bool) -> None:
        self.rows: list[Row] = []
        self.seconds = 0.0
        self.log = ProfileLog()
        self.log_dir: Path | None = None
        self._figures = figures
        self._files: ProfileFiles | None = None
        self._earlier_dir: Path | None = None
        self._digests: dict[str, str] = {}
        self._cannot_write = False
        self._elapsed, self._began = 0.0, time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        """Return the record in plain types."""
        return {
            "rows": [dict(row) for row in self.rows],
            "seconds": self.seconds,
            "elapsed": self.elapsed(),
            "digests": dict(self._digests),
            "log_dir": None if self.log_dir is None else str(self.log_dir),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a record.

        Args:
            state: of ``state_dict``.

        """
        self.rows = [dict(row) for row in state["rows"]]
        self.seconds, self._elapsed = state["seconds"], state["elapsed"]
        self._digests = dict(state["digests"])
        self._earlier_dir = None if state["log_dir"] is None else Path(state["log_dir"]).resolve()

    def elapsed(self) -> float:
        """Return the seconds since training began, those of the runs that it resumes included."""
        return self._elapsed + time.perf_counter() - self._began

    def share(self) -> float:
        """Return the part of that time that went into measurements."""
        return min(1.0, self.seconds / max(self.elapsed(), 1e-9))

    def last_costs(self) -> dict[str, float]:
        """Return the seconds that the newest measurement of every probe set took, by label."""
        return {row["probe"]: float(row["seconds"]) for row in self.rows}

    def open(self, trainer: Trainer, probes: Mapping[str, ProbeSet], *, first: bool) -> None:
        """Begin, or go on at the trainer's step: what lies beyond it is dropped everywhere.

        Args:
            trainer: of the run; every process must call this.
            probes: probe sets by label.
            first: whether this is the first such callback, which clears the folder of an older run's profiles.

        Raises:
            LitBumpError: if a resumed run measured other images under a label.

        """
        step = trainer.global_step
        self._began = time.perf_counter()
        self._check(probes)
        self._digests = {label: probe.digest for label, probe in probes.items()}
        self.rows = [row for row in self.rows if row["step"] <= step]
        # absolute: a run may be resumed from another working folder
        self.log_dir = Path(trainer.log_dir or trainer.default_root_dir).resolve()
        if trainer.is_global_zero:
            self._files = self._held_files(self.log_dir, probes)
            self.log_dir = self._files.log_dir
            resumed = step > 0 or bool(self.rows)
            superseded: Path | None = None
            try:
                if first and not resumed and (aside := self._files.set_aside()):
                    rank_zero_info(f"Profiles of an older run in {self.log_dir} are now in {aside}")
                superseded = self._files.go_back_to(step if resumed else -1, self._earlier_dir)
            except OSError as error:
                self._warn_once(f"{self.log_dir}: {error.strerror or error}")
            if superseded:
                rank_zero_info(
                    f"The run goes on from step {step}; later profiles in {self.log_dir} are in {superseded}"
                )
            self._join(self._files.rows(), probes)
            if self.rows:
                self._warn_once(self._files.write(self.rows))
            if superseded:
                self.log.go_back_to(trainer, step, self.rows)
        self.show(trainer, probes)

    def show(self, trainer: Trainer, labels: Iterable[str]) -> None:
        """Put the newest numbers where monitors look.

        Args:
            trainer: of the run.
            labels: of the probe sets.

        """
        newest = {row["probe"]: row for row in self.rows}
        for label in labels:
            values = monitored(newest[label]) if label in newest else unknown(label)
            trainer.callback_metrics.update(values)

    def add(self, trainer: Trainer, profiles: Mapping[str, Profile]) -> None:
        """Take in a measurement: table, monitors, files, loggers, in this order.

        Args:
            trainer: of the run.
            profiles: by label, step and cost in their contexts.

        """
        rows = [formation_row(profile) for profile in profiles.values()]
        self.rows += rows
        self.show(trainer, profiles)
        if self._files is not None:
            for label, profile in profiles.items():
                self._files.keep(label, trainer.global_step, profile)
            self._warn_once(self._files.write(self.rows))
            with isolate_rng(include_cuda=False):  # rich, for one, draws from Python's stream
                drawn = self._drawn(profiles) if any(map(shows_images, trainer.loggers)) else {}
                self.log.add(trainer, trainer.global_step, rows, profiles, drawn)

    def deliver(self, trainer: Trainer) -> None:
        """Give the loggers that had to wait what waits for them.

        Args:
            trainer: of the run.

        """
        if self.log.has_waiting:
            with isolate_rng(include_cuda=False):
                self.log.deliver(trainer)

    def close(self, trainer: Trainer, labels: Iterable[str], skipped: int, limits: str) -> None:
        """Deliver what waits, save the cumulative pictures beside the profiles, print the table.

        Args:
            trainer: of the run.
            labels: of the probe sets.
            skipped: measurements that the budget left out.
            limits: of the budget, in words.

        """
        if self._files is not None:
            self.deliver(trainer)
            self.rescue()
            with isolate_rng(include_cuda=False):
                for label, pixels in self._drawn(labels).items():
                    try:
                        self._files.add_picture(label, FIGURE_FILE, pixels)
                    except OSError as error:
                        self._warn_once(f"{self.log_dir}: {error.strerror or error}")
                share, metrics = self.share(), final_metrics(trainer.callback_metrics)
                print_summary(
                    self.rows, seconds=self.seconds, share=share, skipped=skipped, limits=limits, metrics=metrics
                )
        self._elapsed, self._began = self.elapsed(), time.perf_counter()

    def rescue(self) -> None:
        """Write what is still in memory, and let other runs write into the folder."""
        self._save_the_rest()
        if self._files is not None:
            self._files.release()

    def _held_files(self, log_dir: Path, probes: Mapping[str, ProbeSet]) -> ProfileFiles:
        """Return the files of the run's folder, or of one beside it where another run writes there now."""
        files, n = ProfileFiles(log_dir, probes), 1
        while not files.hold():
            n += 1
            files = ProfileFiles(log_dir / f"run_{n}", probes)
        if n > 1:
            rank_zero_warn(
                f"another run writes its profiles into {log_dir}; those of this one go into {files.log_dir}: give each "
                "run its own logger version or default_root_dir"
            )
        return files

    def _warn_once(self, problem: str) -> None:
        """Say what is in the way of the files, and when it no longer is."""
        if problem and not self._cannot_write:
            rank_zero_warn(
                f"response profiles cannot be written to {problem}; they are kept in memory, and written as soon as "
                "that works: make room there, or make the folder writable"
            )
        elif self._cannot_write and not problem:
            rank_zero_info(f"Response profiles are written to {self.log_dir} again; none is missing")
        self._cannot_write = bool(problem)

    def _save_the_rest(self) -> None:
        """Try once more at the end; what cannot go to the run's folder goes to one for temporary files."""
        if self._files is None or not self._cannot_write:
            return
        problem = self._files.write(self.rows)
        self._warn_once(problem)
        if problem:
            place = Path(tempfile.mkdtemp(prefix="lit_bump_"))
            failed = self._files.write(self.rows, place)
            rank_zero_info(
                f"Response profiles are saved in {place}" if not failed else f"Response profiles are lost: {failed}"
            )

    def _join(self, found: Iterable[Row], labels: Iterable[str]) -> None:
        """Add the rows of the files that the table lacks, and warn of those that have no file."""
        files = {(row["step"], row["probe"]): row for row in found}
        known = {(row["step"], row["probe"]) for row in self.rows}
        if missing := {step for step, probe in known - files.keys() if probe in set(labels)}:
            places = " or ".join(dict.fromkeys(str(place) for place in (self.log_dir, self._earlier_dir) if place))
            steps = ", ".join(map(str, sorted(missing)))
            rank_zero_warn(f"no saved profiles of steps {steps} in {places}: the figures leave them out, not the table")
        self.rows += [row for key, row in files.items() if key not in known]
        self.rows.sort(key=lambda row: row["step"])

    def _check(self, probes: Mapping[str, ProbeSet]) -> None:
        for label, probe in probes.items():
            if self._digests.get(label, probe.digest) != probe.digest:
                cure = "give the same images, or another name="
                raise LitBumpError(f"probe set {label!r} has other images than in the run that is resumed: {cure}")

    def _drawn(self, labels: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the rendered cumulative figures; without Matplotlib, or where it fails, the curves have to do."""
        if not self._figures or self._files is None:
            return {}
        try:
            from lit_bump.figures import formation_figure, rgb_array

            formations = {label: self._files.formation(label) for label in labels}
            return {label: rgb_array(formation_figure(f)) for label, f in formations.items() if len(f)}
        except Exception as error:
            self._figures = False
            rank_zero_warn(f"no figures of the response profiles ({type(error).__name__}: {error})")
            return {}
