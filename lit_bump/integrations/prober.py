"""Prober: response profiles in a training loop of one's own, at logarithmic steps, with the files of the callback.

Paper: section 3 "Formation". Needs torch; no Trainer. The loop says after every optimiser step where it is; what is
due is measured, saved, and written to TensorBoard. Training is bit for bit the same with and without it.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.utilities.seed import isolate_rng
from torch import nn

from lit_bump.callbacks.formation_table import Row, formation_row
from lit_bump.callbacks.measurement_budget import MeasurementBudget, stopped
from lit_bump.callbacks.probe_choice import listed_probes
from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.callbacks.profile_scalars import scalars
from lit_bump.callbacks.profile_summary import print_summary
from lit_bump.callbacks.profile_tensorboard import write_profiles
from lit_bump.callbacks.protocol_choice import ProtocolChoice, chosen_protocol
from lit_bump.errors import LitBumpError
from lit_bump.measure import NormalisedEncoder, Profile, as_encoder, measure_profile
from lit_bump.probes import ProbeSet, named_probe_set
from lit_bump.schedules import LogSteps

FIGURE_FILE = "formation.png"


class Prober:
    """Measure response profiles in a training loop of one's own.

    Call it with 0 before training, and with the number of optimiser steps after each of them; call ``close`` at the
    end. What is due is measured and written to ``<log_dir>/profiles/<probe>/step_00000400.npz`` and to the table
    ``<log_dir>/profiles/formation.csv``, which ``load_formation``, ``watch``, ``report`` and ``figures`` read.

    Args:
        probes: probe sets, or names that the registry knows.
        log_dir: folder of the run.
        total_steps: optimiser steps of the whole run; None if unknown: then ``close`` measures the last.
        protocol: ``quick`` (also None), ``accurate``, ``paper``, fields that replace those of ``quick``, or a protocol.
        schedule: steps to measure at; None for about four a factor of ten, 0 and the last.
        writer: a TensorBoard ``SummaryWriter`` (of torch or tensorboardX) that also gets scalars, figure and the tab's
            numbers; None for files alone.
        figures: draw the cumulative figure, for the writer and as ``formation.png`` at the end.
        mean: a value a channel, for an encoder that expects normalised images.
        std: a value a channel, with ``mean``.
        chunk: perturbed images a forward; chosen by itself when None.
        progress: as for ``measure_profile``.
        max_share: keep all measurements within this share of the loop's time, as the callback does; None for no limit.

    Raises:
        LitBumpError: if an argument is wrong, or a listed step lies beyond the run.

    Example:
        >>> import tempfile
        >>> images = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     probe = ProbeSet.from_tensor(images, name="mine")
        ...     prober = Prober(probe, folder, total_steps=3, figures=False, max_share=None)
        ...     measured = [step for step in range(4) if prober(step, nn.Flatten())]
        >>> measured
        [0, 1, 2, 3]

    """

    def __init__(
        self,
        probes: ProbeSet | str | Sequence[ProbeSet | str],
        log_dir: str | os.PathLike[str],
        *,
        total_steps: int | None = None,
        protocol: ProtocolChoice = None,
        schedule: LogSteps | None = None,
        writer: Any | None = None,
        figures: bool = True,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        chunk: int | None = None,
        progress: bool | Callable[[int, int], None] | None = None,
        max_share: float | None = 0.05,
    ) -> None:
        if (mean is None) != (std is None):
            raise LitBumpError(f"mean is {mean} and std is {std}; give both or neither")
        if max_share is not None and not 0 < max_share <= 1:
            raise LitBumpError(f"max_share is {max_share}; give a share of the loop's time, above 0 and at most 1")
        found = [named_probe_set(one) if isinstance(one, str) else one for one in listed_probes(probes)]
        if not found:
            raise LitBumpError("probes is None: give a ProbeSet (ProbeSet.from_tensor(images, name=...)) or a name")
        self.sets = {probe.name: probe for probe in found}
        if len(self.sets) < len(found):
            raise LitBumpError("two probe sets have one name; give each its own")
        self.protocol, self.chunk, self.progress, self.figures = protocol, chunk, progress, figures
        for probe in found:  # a wrong name or value is said now
            chosen_protocol(protocol, probe.input_size)
        self.schedule = LogSteps() if schedule is None else schedule
        self.schedule.next_target(-1, total_steps)
        self.total_steps, self.writer, self.mean, self.std = total_steps, writer, mean, std
        self.rows: list[Row] = []
        self.seconds = 0.0
        self._files = ProfileFiles(Path(log_dir).resolve(), self.sets)
        self._budget = MeasurementBudget(max_share, None)
        self._measured, self._seen = -1, -1
        self._is_open = self._cannot_write = False

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed loop needs, in plain types: save it with the loop's own checkpoint."""
        return {
            "measured": self._measured,
            "seconds": self.seconds,
            "rows": [dict(row) for row in self.rows],
            "budget": self._budget.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the history of the loop that is resumed; call it before the first step.

        Args:
            state: of ``state_dict``.

        """
        self._measured, self.seconds = state["measured"], state["seconds"]
        self.rows = [dict(row) for row in state["rows"]]
        self._budget.load_state_dict(state["budget"])

    def __call__(self, step: int, encoder: nn.Module | Callable[..., Any]) -> dict[str, Profile]:
        """Measure if a step is due.

        Args:
            step: optimiser steps so far; 0 before the first.
            encoder: module or callable images in [0, 1] pixels -> features, with the weights as they are now.

        Returns:
            Profiles by probe set; empty where nothing was measured.

        Raises:
            LitBumpError: if steps go backwards, log_dir cannot be used, or the first measurement cannot be made. A
                later one that fails gives a warning, and the loop goes on.

        """
        if step < self._seen:
            raise LitBumpError(f"step {step} after step {self._seen}: a prober follows one loop; make another")
        self._open(step)
        self._budget.note(step)
        self._seen = step
        if step <= self._measured:
            return {}
        target = self.schedule.next_target(self._measured, self.total_steps)
        return (
            self._measure(step, encoder, must=step == self.total_steps) if target is not None and target <= step else {}
        )

    def close(self, encoder: nn.Module | Callable[..., Any] | None = None) -> None:
        """Measure the last step where that has not been done, draw the figures, print the table.

        Args:
            encoder: as it is now; None to measure nothing more.

        Raises:
            LitBumpError: if some profiles can still not be written; they stay in memory, and it can be called again.

        """
        if encoder is not None and self.schedule.includes_last and self._seen > self._measured:
            self._measure(self._seen, encoder, must=True)
        self._budget.training.stop()
        with isolate_rng(include_cuda=False):
            if self._cannot_write and (problem := self._files.write(self.rows)):
                raise LitBumpError(
                    f"response profiles cannot be written to {problem}; they are still in memory: close again"
                )
            for label, pixels in self._drawn().items():
                try:
                    self._files.add_picture(label, FIGURE_FILE, pixels)
                except OSError as error:
                    warnings.warn(f"no {FIGURE_FILE} of {label!r}: {error.strerror or error}", stacklevel=2)
            self._files.release()
            print_summary(self.rows, seconds=self.seconds, share=self._share(), limits=str(self._budget))

    def _open(self, step: int) -> None:
        if self._is_open:
            return
        self._is_open = True
        if not self._files.hold():
            raise LitBumpError(f"another run writes its profiles into {self._files.log_dir}: give another log_dir")
        try:
            if step == 0:
                self._files.set_aside()
            self._files.go_back_to(step if step > 0 else -1, None)
        except OSError as error:
            problem = f"{self._files.log_dir} cannot be used ({error.strerror or error})"
            raise LitBumpError(f"log_dir {problem}: make it writable, or give another") from error
        if step > 0 and self._measured < 0:  # resumed without a state: the files tell, else what is past is past
            self._measured = max((int(row["step"]) for row in self._files.rows()), default=step)
        known = {(row["step"], row["probe"]) for row in self.rows}
        self.rows += [row for row in self._files.rows() if (row["step"], row["probe"]) not in known]
        self.rows = sorted((row for row in self.rows if row["step"] <= step), key=lambda row: int(row["step"]))
        self._budget.begin(step)

    def _measure(self, step: int, encoder: nn.Module | Callable[..., Any], *, must: bool) -> dict[str, Profile]:
        is_first = self._measured < 0
        n_later = self.schedule.n_targets_above(step, self.total_steps) or 0
        with stopped([self._budget.training]):
            planned = self._budget.planned(step, self.total_steps, 1 + n_later, self.seconds)
            sizes = {label: float(len(probe.images)) for label, probe in self.sets.items()}
            granted = self._budget.granted(planned, sizes, must=must or is_first or n_later == 0)
            self._measured = step
            if granted is None:
                return {}
            profiles = {}
            for label, probe in self.sets.items():
                try:
                    profiles[label] = self._profile(step, label, probe, encoder, granted.get(label))
                except Exception as error:  # whatever the encoder raises
                    text = " ".join(str(error).split())
                    text = text if isinstance(error, LitBumpError) else f"{type(error).__name__}: {text}"
                    if is_first:
                        raise LitBumpError(f"probe set {label!r} cannot be measured: {text}") from error
                    warnings.warn(f"no response profile of {label!r} at step {step}: {text}", stacklevel=3)
            self._record(step, profiles)
            if profiles.keys() == self.sets.keys():
                self._budget.learn(profiles.values())
        return profiles

    def _profile(
        self, step: int, label: str, probe: ProbeSet, encoder: nn.Module | Callable[..., Any], seconds: float | None
    ) -> Profile:
        began = time.perf_counter()
        phi = as_encoder(encoder)
        device = next((tensor.device for tensor in (*phi.parameters(), *phi.buffers())), torch.device("cpu"))
        if self.mean is not None and self.std is not None:
            phi = NormalisedEncoder(phi, self.mean, self.std)
        profile = measure_profile(
            phi, probe.images.to(device), chosen_protocol(self.protocol, probe.input_size), chunk=self.chunk,
            progress=self.progress, budget_seconds=seconds,
        )  # fmt: skip
        took = time.perf_counter() - began
        self.seconds += took
        return profile.with_context(
            step=step, probe=label, probe_source=probe.source, probe_digest=probe.digest, seconds=took,
            share=self._share(),
        )  # fmt: skip

    def _record(self, step: int, profiles: Mapping[str, Profile]) -> None:
        rows = [formation_row(profile) for profile in profiles.values()]
        self.rows += rows
        for label, profile in profiles.items():
            self._files.keep(label, step, profile)
        if rows and (problem := self._files.write(self.rows)) and not self._cannot_write:
            self._cannot_write = True
            cure = "make room there, or make the folder writable"
            warnings.warn(
                f"response profiles cannot be written to {problem}; they are kept in memory: {cure}", stacklevel=4
            )
        if self.writer is not None and rows:
            try:
                with isolate_rng(include_cuda=False):
                    for row in rows:
                        for tag, value in scalars(row).items():
                            self.writer.add_scalar(tag, value, step)
                    write_profiles(self.writer, step, rows, profiles, self._drawn())
            except Exception as error:  # training and the files matter more
                self.writer = None
                problem = f"{type(error).__name__}: {error}"
                warnings.warn(
                    f"the writer gets no more response profiles ({problem}); their files are complete", stacklevel=4
                )

    def _share(self) -> float:
        return self.seconds / max(self.seconds + self._budget.training.seconds(), 1e-9)

    def _drawn(self) -> dict[str, np.ndarray]:
        if not self.figures:
            return {}
        from lit_bump.figures import formation_figure, rgb_array

        formations = {label: self._files.formation(label) for label in self.sets}
        return {label: rgb_array(formation_figure(one)) for label, one in formations.items() if len(one)}
