"""Measure the checkpoints of a saved run: every step, every probe set, as the callback would have while it trained.

Paper: section 3 "Formation", figs. 1c, 2a-2c. Needs Lightning to build the modules. The same checkpoint, protocol and
images give the numbers of the callback. Every measurement is saved as soon as it is there; one that was interrupted is
given again and goes on with what is missing.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities import rank_zero_warn
from torch import nn
from tqdm import tqdm

from lit_bump.callbacks.probed_encoder import encoder_name, probed_encoder
from lit_bump.callbacks.protocol_choice import ProtocolChoice, chosen_protocol
from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure import Formation, Profile, Protocol, measure_profile
from lit_bump.measure.extended_ladder import further_etas, joined_rungs
from lit_bump.measure.formation import FOLDER, step_files
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.probes import ProbeSet
from lit_bump.probes.probe_set import NAME
from lit_bump.runs.checkpoint_file import read_checkpoint
from lit_bump.runs.checkpoint_module import load_module
from lit_bump.runs.kept_profiles import KeptProfiles, Task
from lit_bump.runs.run_probes import run_probes
from lit_bump.runs.saved_run import SavedRun

RUNGS_AT_A_TIME = 4  # a decade of the usual ladders
MOST_FURTHER_RUNGS = 12
STEPS = ("all", "last", "first and last")


def measure_run(
    run: SavedRun | str | os.PathLike[str],
    probes: Sequence[ProbeSet | str],
    *,
    protocol: ProtocolChoice = None,
    steps: str | Sequence[int] = "all",
    encoder: str | None = None,
    data_dir: str | Path | None = None,
    chunk: int | None = None,
    progress: bool = True,
    extend: bool = False,
    name: str | None = None,
    overwrite: bool = False,
    device: str | None = None,
    model: str | type[LightningModule] | None = None,
) -> dict[str, Formation]:
    """Measure the response profiles of a saved run at its checkpoints.

    A profile goes to ``<log_dir>/profiles/<probe>/step_00000400.npz`` and its row to ``profiles/formation.csv``, beside
    those of the run's callback. What is there already, of the same weights, protocol and images, is not measured again.

    Args:
        run: a saved run, or what ``SavedRun.find`` takes: its folder or a ``.ckpt`` file.
        probes: the images: probe sets, or names that the run's data module or the registry knows. Named ones are made
            with the seeds of the run's data.
        protocol: ``quick``, ``accurate`` or ``paper``, or fields that replace those of ``quick`` (of another, where the
            key ``preset`` says so); None for that of the run's config, or ``quick``.
        steps: ``all``, ``last``, ``first and last``, or optimiser steps that have a checkpoint.
        encoder: where the features come from: the dotted name of a submodule or method; None for that of the run's
            config, or ``forward_features``.
        data_dir: where CIFAR-10 is; None for the folder of the run's config.
        chunk: perturbed images a forward; the answer does not depend on it.
        progress: show a bar.
        extend: where the median profile is still rising at the ladder's end, measure further rungs at the same spacing,
            four at a time and at most twelve, with the same directions.
        name: put before the probe sets' names, to keep measurements of another protocol or encoder apart.
        overwrite: move saved profiles of another protocol, encoder or images to ``profiles.<n>`` instead of refusing.
        device: where to measure, such as ``cuda:1``; None for the first GPU, or the CPU.
        model: class of the module, for a checkpoint that does not name its own.

    Returns:
        Formations of the steps asked for, by label.

    Raises:
        LitBumpError: if run, checkpoint, probe set, protocol or encoder cannot be used, or a saved profile is in the
            way; the message names it and the cure.

    """
    run = run if isinstance(run, SavedRun) else SavedRun.find(run)
    if name and not NAME.fullmatch(name):  # it becomes part of a folder's name
        raise LitBumpError(f"name is {name!r}: give at most 64 letters, digits, '_', '.' or '-'")
    phi = _Phi.of(run, encoder, _device(device))
    protocol = run_protocol(run) if protocol is None else protocol
    tasks = {
        f"{name}-{probe.name}" if name else probe.name: Task(
            probe, chosen_protocol(protocol, probe.input_size), phi.name, extend
        )
        for probe in run_probes(run, probes, data_dir=data_dir)
    }
    checkpoints = chosen_steps(run, steps)
    if isinstance(steps, str) and steps != "last" and run.only is None:
        _warn_of_lost(run, next(iter(checkpoints)))
    phi.of_module(load_module(run, next(iter(checkpoints.values())), model=model))  # refused before a file is touched
    kept = KeptProfiles(run.log_dir, tasks, overwrite=overwrite)
    with _Bar(len(checkpoints) * len(tasks), shown=progress) as bar:
        for step, path in checkpoints.items():
            module = phi.of_module(load_module(run, path, model=model))
            facts = {"step": step, "epoch": int(read_checkpoint(path).get("epoch", 0)), "checkpoint": path.name}
            for label, task in tasks.items():
                bar.show(f"{run.name} {label} step {step:,}")
                _measure(kept, label, task, module, {**facts, "probe": label}, chunk=chunk, bar=bar)
    return {label: kept.formation(label, tuple(checkpoints)) for label in tasks}


def chosen_steps(run: SavedRun, steps: str | Sequence[int]) -> dict[int, Path]:
    """Return the checkpoints of the steps asked for.

    Args:
        run: the run.
        steps: ``all``, ``last``, ``first and last``, or optimiser steps.

    Returns:
        Checkpoints by step, increasing.

    Raises:
        LitBumpError: if the run has no checkpoint, or none of a step.

    """
    found = run.checkpoints()
    if not found:
        raise LitBumpError(f"{run.log_dir} holds no checkpoints: train with --rprofile.save_checkpoints true")
    saved = list(found)
    if isinstance(steps, str):
        if steps not in STEPS:
            raise LitBumpError(f"steps is {steps!r}{nearest(steps, STEPS)}, or numbers of steps")
        steps = {"all": saved, "last": saved[-1:], "first and last": [saved[0], saved[-1]]}[steps]
    for step in steps:
        if step not in found:
            raise LitBumpError(f"{run.log_dir} has no checkpoint of step {step} (it has {', '.join(map(str, saved))})")
    if not steps:
        raise LitBumpError("steps is an empty list: give steps, or leave it out for all")
    return {step: found[step] for step in sorted(set(steps))}


def _warn_of_lost(run: SavedRun, first: int) -> None:
    """Warn of steps that the run's callback measured, and of which there is no checkpoint any more, or here."""
    steps = {step for folder in (run.log_dir / FOLDER).glob("*") for step in step_files(folder)}
    if lost := sorted(step for step in steps if step < first):
        where = "a resumed run leaves them in the version that it was resumed from"
        shown = ", ".join(map(str, lost))
        rank_zero_warn(f"{run.log_dir} has profiles of steps {shown}, but no checkpoints of them ({where})")


def run_protocol(run: SavedRun) -> ProtocolChoice:
    """Return the protocol of a run's own callback.

    Args:
        run: the run.

    Returns:
        As its config says; None where it says nothing.

    """
    choice: ProtocolChoice = _rprofile(run).get("protocol")
    return choice


def _measure(
    kept: KeptProfiles,
    label: str,
    task: Task,
    module: nn.Module,
    facts: dict[str, Any],
    *,
    chunk: int | None,
    bar: _Bar,
) -> None:
    """Measure what is missing of one profile: the ladder, then rungs beyond it, each part saved at once."""
    step = facts["step"]
    profile = kept.get(label, step)
    if profile is not None and profile.encoder_digest != _digest(module):
        kept.refuse(label, step, "other weights")
        profile = None

    def measured(protocol: Protocol) -> Profile:
        began = time.perf_counter()
        try:
            part = measure_profile(module, task.probe.images, protocol, chunk=chunk, progress=bar.part)
        except LitBumpError as error:
            size = "x".join(str(n) for n in task.probe.input_size)
            raise LitBumpError(f"probe set {task.probe.name!r} ({size}) cannot be measured: {error}") from error
        source, digest = task.probe.source, task.probe.digest
        seconds = time.perf_counter() - began
        return part.with_context(
            **facts, probe_source=source, probe_digest=digest, encoder=task.encoder, processes=1, seconds=seconds
        )

    if profile is None:
        profile = measured(task.protocol)
        kept.add(label, step, profile)
    while task.extend and profile.bump().verdict == "rising":
        n_further = len(profile.etas) - len(task.protocol.etas)
        n_more = min(RUNGS_AT_A_TIME, MOST_FURTHER_RUNGS - n_further)
        if n_more < 1:
            break
        etas = further_etas(task.protocol.etas, n_further + n_more)[n_further:]
        further = measured(replace(task.protocol, etas=etas))
        seconds = profile.context.get("seconds", profile.seconds) + further.context["seconds"]
        profile = joined_rungs(profile, further).with_context(seconds=seconds)
        kept.add(label, step, profile)
    bar.next()


@dataclass(frozen=True)
class _Phi:
    """Where the features come from: as the user says, else as the run's own callback took them."""

    encoder: str | None
    mean: Sequence[float] | None
    std: Sequence[float] | None
    device: torch.device

    @classmethod
    def of(cls, run: SavedRun, encoder: str | None, device: torch.device) -> _Phi:
        section = _rprofile(run)
        encoder = section.get("encoder") if encoder is None else encoder
        if encoder is not None and not isinstance(encoder, str):
            raise LitBumpError(f"the encoder of {run.name} has no name in its config: give one, such as --encoder net")
        return cls(encoder, section.get("mean"), section.get("std"), device)

    @property
    def name(self) -> str:
        return encoder_name(self.encoder)

    def of_module(self, module: LightningModule) -> nn.Module:
        return probed_encoder(module, self.encoder, mean=self.mean, std=self.std).to(self.device)


class _Bar:
    """A bar over measurements that also moves within one; it says what is being measured."""

    def __init__(self, total: int, *, shown: bool) -> None:
        form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        pause = 0.1 if sys.stderr.isatty() else 30.0  # seconds between two lines of a log file
        self._bar = tqdm(total=total, disable=not shown, bar_format=form, dynamic_ncols=True, mininterval=pause)
        self._done, self._numbers = 0, itertools.count(1)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def show(self, text: str) -> None:
        self._bar.set_description_str(f"{text} ({next(self._numbers)} of {self._bar.total:g})")

    def part(self, done: int, total: int) -> None:
        self._move(self._done + 0.99 * done / total)  # rungs may follow

    def next(self) -> None:
        self._done += 1
        self._move(float(self._done))

    def _move(self, place: float) -> None:
        self._bar.update(max(0.0, place - self._bar.n))


def _rprofile(run: SavedRun) -> dict[str, Any]:
    """Return the options of the run's own callback."""
    section = run.config.get("rprofile")
    return section if isinstance(section, dict) else {}


def _digest(module: nn.Module) -> str:
    return FrozenEncoder(module, torch.float32, torch.device("cpu"), channels_last=False).digest()


def _device(name: str | None) -> torch.device:
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise LitBumpError(f"device {name!r} cannot be used: give cpu, or cuda where there is a GPU") from error
