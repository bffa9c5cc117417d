"""RProfileCallback: measures response profiles while a module trains, and leaves no trace in the training.

Paper: section 3 "Formation", fig. 1c. Imports Lightning. *When* is ``LogSteps``, *what* is ``measure_profile``; here
are the hooks and what a run remembers. A step is an optimiser step, ``trainer.global_step``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import StochasticWeightAveraging, WeightAveraging
from lightning.pytorch.utilities import rank_zero_info, rank_zero_warn
from torch import nn

from lit_bump.callbacks.measured_weights import RAW, MeasuredWeights
from lit_bump.callbacks.measurement_budget import MeasurementBudget, stopped
from lit_bump.callbacks.probe_choice import N_IMAGES, chosen_probe, listed_probes, validation_probe
from lit_bump.callbacks.probed_encoder import encoder_name, probed_encoder
from lit_bump.callbacks.profile_scalars import scalar_tags
from lit_bump.callbacks.protocol_choice import chosen_protocol, rehearsal_protocol
from lit_bump.callbacks.run_record import RunRecord
from lit_bump.callbacks.sharded_measurement import measure_sharded
from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure import Profile, Protocol
from lit_bump.modules.run_length import run_length
from lit_bump.probes import ProbeSet
from lit_bump.probes.probe_set import NAME
from lit_bump.schedules import LogSteps

AVERAGING = (StochasticWeightAveraging, WeightAveraging)  # put averaged weights into the module in on_train_end


class RProfileCallback(Callback):
    """Measure response profiles before, during and after training, and save, log and draw them.

    Add it to ``Trainer(callbacks=[...])``; the module needs nothing. Training is bit for bit the same with and without
    it. A measurement goes to ``<log_dir>/profiles/<probe>/step_00000400.npz`` and to the table
    ``<log_dir>/profiles/formation.csv``, then to every logger and to ``trainer.callback_metrics``.

    Args:
        probes: the images: probe sets, or names that the data module or the registry knows; None for 32 seeded images
            of the validation set.
        protocol: ``quick`` (also None), ``accurate`` or ``paper``, or fields that replace those of ``quick`` (of
            another, where the key ``preset`` says so), each with the ladder of the images' size; or a protocol as it
            is.
        schedule: optimiser steps to measure at; None for about four a factor of ten, 0 and the last.
        encoder: where the features come from: the dotted name of a submodule or method, or a callable images ->
            features; None for the module's ``forward_features``.
        name: put before the probe sets' names, so that two callbacks keep apart: letters, digits, ``_``, ``.``, ``-``.
        figures: draw the cumulative figure for loggers that show images, and as ``formation.png`` at the end.
        mean: a value a channel, for a module that expects normalised images: the normalisation becomes part of Phi.
        std: a value a channel, with ``mean``.
        chunk: perturbed images a forward; chosen by itself when None. The answer does not depend on it.
        save_checkpoints: save ``<log_dir>/checkpoints/step_00000400.ckpt`` at every measured step.
        enable: false switches everything off.
        max_share: keep all measurements within this share of the time since training began; None for no limit. What is
            left of it is divided among those still scheduled: they take fewer direction pairs, so a larger standard
            error, and those for which even the fewest are too dear are left out, never the first or last. The images
            stay: medians over different ones could not be compared along a formation. ``paper`` cannot be thinned.
        budget_seconds: most that one measurement of all probe sets takes, the first included, by fewer pairs; None for
            no limit. The smaller of the two holds; either makes the numbers of pairs depend on the machine's speed.
        on_error: what a measurement that fails before training does: ``raise`` or ``warn``. A later one always warns,
            and training goes on without that point.

    Raises:
        LitBumpError: if an argument is wrong; before training, if probe sets, encoder or schedule cannot be used.

    """

    def __init__(
        self,
        probes: ProbeSet | str | Sequence[ProbeSet | str] | None = None,
        protocol: dict[str, Any] | Literal["paper", "quick", "accurate"] | Protocol | None = None,  # dict: for configs
        schedule: LogSteps | None = None,
        encoder: str | Callable[..., Any] | None = None,
        name: str | None = None,
        figures: bool = True,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        chunk: int | None = None,
        save_checkpoints: bool = False,
        enable: bool = True,
        max_share: float | None = 0.05,
        budget_seconds: float | None = None,
        on_error: Literal["raise", "warn"] = "raise",
    ) -> None:
        super().__init__()
        self.probes = listed_probes(probes)
        self.protocol = protocol
        self.schedule = LogSteps() if schedule is None else schedule
        self.encoder, self.mean, self.std, self.chunk = encoder, mean, std, chunk
        self.name, self.figures, self.save_checkpoints, self.enable = name, figures, save_checkpoints, enable
        self.max_share, self.budget_seconds, self.on_error = max_share, budget_seconds, on_error
        chosen_protocol(protocol, (3, 32, 32))  # a wrong name or value is said now
        if name and not NAME.fullmatch(name):  # it becomes part of a folder's name
            raise LitBumpError(f"name is {name!r}: give at most 64 letters, digits, '_', '.' or '-'")
        if max_share is not None and not 0 < max_share <= 1:
            raise LitBumpError(f"max_share is {max_share}; give a share of the training time, above 0 and at most 1")
        if budget_seconds is not None and not budget_seconds > 0:
            raise LitBumpError(f"budget_seconds is {budget_seconds}; give a positive number, or None for no limit")
        if on_error not in ("raise", "warn"):
            raise LitBumpError(f"on_error is {on_error!r}{nearest(on_error, ('raise', 'warn'))}")
        self._begin()

    def _begin(self) -> None:
        self.record = RunRecord(self.figures)
        self.budget = MeasurementBudget(self.max_share, self.budget_seconds)
        self.weights = MeasuredWeights()
        self._sets: dict[str, ProbeSet] = {}
        self._phi: nn.Module | None = None
        self._total: int | None = None
        self._last_step, self._skipped, self._skipped_at = -1, 0, -1
        self._has_told = False

    @property
    def state_key(self) -> str:
        """Key of this callback's state in a checkpoint, made of what it measures: two that differ keep apart."""
        protocol, encoder = str(self.protocol), encoder_name(self.encoder)
        probes = list(map(_name, self.probes))
        return self._generate_state_key(name=self.name, probes=probes, protocol=protocol, encoder=encoder)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, in plain types."""
        own = {"last_step": self._last_step, "skipped": self._skipped, "budget": self.budget.state_dict()}
        return {**own, **self.record.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the history of the run that is resumed."""
        self._last_step, self._skipped = state_dict["last_step"], state_dict["skipped"]
        self.record.load_state_dict(state_dict)
        if "budget" in state_dict:  # not so in checkpoints of older versions
            self.budget.load_state_dict(state_dict["budget"])

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the probe sets in files and tags; that of validation images is only sure once training starts."""
        return tuple(self._sets) or tuple(map(self._label, map(_name, self.probes))) or (self._label(f"val{N_IMAGES}"),)

    def _label(self, name: str) -> str:
        return f"{self.name}-{name}" if self.name else name

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Resolve named probe sets, and refuse labels that occur twice.

        Callbacks that end a run with averaged weights are put after this one, so that every point is of trained ones.

        Raises:
            LitBumpError: if a name is unknown, or a probe set would share files and tags with another.

        """
        if stage != "fit" or not self.enable:
            return
        if trainer.global_step == 0:  # a new run; the state of one that is resumed is loaded after this
            self._begin()
        _stand_before_averaging(trainer, self)
        self._refuse_twins(trainer)
        self._sets = {self._label(_name(entry)): chosen_probe(entry, trainer) for entry in self.probes}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find Phi, and name the scalars as metrics of the run's hyper-parameters."""
        if not self.enable:
            return
        self._phi = probed_encoder(pl_module, self.encoder, mean=self.mean, std=self.std)
        callbacks = _callbacks(trainer)
        if trainer.is_global_zero and trainer.enable_autolog_hparams and callbacks[0] is self:
            data = getattr(trainer, "datamodule", None)
            tags = [tag for callback in callbacks for label in callback.labels for tag in scalar_tags(label)[:2]]
            self.record.log.name_hparam_metrics(trainer, {**_hparams(data), **_hparams(pl_module)}, tags)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measure the initialisation, or take up the history of the run that is resumed."""
        if not self.enable:
            return
        if not self._sets:
            probe = validation_probe(trainer, pl_module, self.mean, self.std)
            self._sets = {self._label(probe.name): probe}
            self._refuse_twins(trainer)
        if trainer.fast_dev_run:  # type: ignore[attr-defined]  # set by Lightning outside its class
            self._rehearse(trainer)
            return
        self._total = run_length(trainer)
        self.schedule.next_target(-1, self._total)  # a listed step beyond the run is refused now
        if trainer.global_step > 0 and self._last_step < 0:
            self._last_step = trainer.global_step  # resumed from a run without this callback: what is past is past
        self.record.open(trainer, self._sets, first=_callbacks(trainer)[0] is self)
        self.budget.begin(trainer.global_step)
        if self._is_due(trainer):
            self._measure(trainer, self._granted(trainer, must=True), before_training=True)
            self.record.deliver(trainer)
        elif trainer.global_step == 0:
            self._rehearse(trainer)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Deliver a measurement to the loggers that had to wait for this step."""
        self.record.deliver(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Measure where an optimiser step has reached a target."""
        self.budget.note(trainer.global_step)
        is_due = self._is_due(trainer)
        if is_due or trainer.is_last_batch:
            self._note_weights(trainer)
        if is_due:
            granted = self._granted(trainer)
            if granted is None:
                self._last_step = self._skipped_at = trainer.global_step
                self._skipped += 1
                self._tell_once(trainer, "no response profile", f"the least costs {self.budget.least:.3g} s")
            else:
                self._measure(trainer, granted)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Remember what the last step has left, where an epoch has ended early."""
        self._note_weights(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measure the last step, wherever training has ended, and say what all has cost."""
        if not self.enable or trainer.fast_dev_run:  # type: ignore[attr-defined]  # as above
            return
        is_new = trainer.global_step > self._last_step or trainer.global_step == self._skipped_at
        if is_new and self.schedule.includes_last:
            self._measure(trainer, self._granted(trainer, must=True, ends=True))
        self.budget.training.stop()
        self.record.close(trainer, self._sets, self._skipped, str(self.budget))

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Deliver what waits for a step that will not come, and write what could not be written."""
        self.record.deliver(trainer)
        self.record.rescue()

    def _note_weights(self, trainer: Trainer) -> None:
        if self.enable and self._phi is not None:
            self.weights.note(trainer, self._phi)

    def _refuse_twins(self, trainer: Trainer) -> None:
        taken = Counter(label for callback in _callbacks(trainer) for label in callback.labels)
        for label in self.labels:
            if taken[label] > 1:
                raise LitBumpError(f"probe set {label!r} occurs twice; give each RProfileCallback another name=")

    def _is_due(self, trainer: Trainer) -> bool:
        if not self.enable or trainer.fast_dev_run or trainer.global_step <= self._last_step:  # type: ignore[attr-defined]
            return False
        target = self.schedule.next_target(self._last_step, self._total)
        return target is not None and trainer.global_step >= target

    def _granted(self, trainer: Trainer, *, must: bool = False, ends: bool = False) -> dict[str, float] | None:
        """Return the seconds that each probe set may take now, empty for no limit; None to leave this step out.

        The first process decides for all. The last scheduled step is never left out.
        """
        if not self.budget.has_limit:
            return {}
        granted: dict[str, float] | None = None
        if trainer.is_global_zero:
            step = trainer.global_step
            total = step if ends else self._total
            n_later = 0 if ends else self.schedule.n_targets_above(step, total)
            with self._aside(trainer):
                planned = self.budget.planned(step, total, 1 + (n_later or 0), self.record.seconds)
            known = self.record.last_costs()
            sizes = {label: float(len(probe.images)) for label, probe in self._sets.items()}
            weights = {label: known[label] for label in sizes} if sizes.keys() <= known.keys() else sizes
            granted = self.budget.granted(planned, weights, must=must or n_later == 0)
        decided: dict[str, float] | None = trainer.strategy.broadcast(granted)
        return decided

    @contextmanager
    def _aside(self, trainer: Trainer) -> Iterator[None]:
        """Count a block as no callback's training time."""
        device = trainer.strategy.root_device
        if device.type == "cuda":  # what training has queued is training
            torch.cuda.synchronize(device)
        with stopped([callback.budget.training for callback in _callbacks(trainer)]):
            yield

    def _measure(self, trainer: Trainer, granted: Mapping[str, float] | None, *, before_training: bool = False) -> None:
        """Measure all probe sets with the weights as they are, and record the result."""
        with self._aside(trainer):
            self._last_step = trainer.global_step
            profiles: dict[str, Profile] = {}
            for label, probe in self._sets.items():
                with self._failing(trainer, loud=before_training):
                    profiles[label] = self._profile(trainer, label, probe, (granted or {}).get(label))
            if profiles:
                self.record.add(trainer, profiles)
            if profiles.keys() == self._sets.keys():
                self.budget.learn(profiles.values())
            for label, profile in profiles.items():
                if profile.gave_up:
                    self._tell_once(trainer, f"response profile of {label}", profile.gave_up)
            if self.save_checkpoints and self.record.log_dir is not None:
                path = self.record.log_dir / "checkpoints" / f"step_{trainer.global_step:08d}.ckpt"
                try:
                    trainer.save_checkpoint(path)
                except OSError as error:
                    trainer.strategy.barrier("Trainer.save_checkpoint")  # where the other processes wait already
                    rank_zero_warn(f"no checkpoint of step {trainer.global_step} ({path}: {error.strerror or error})")

    def _tell_once(self, trainer: Trainer, what: str, why: str) -> None:
        if not self._has_told:
            self._has_told = True
            rank_zero_info(f"Step {trainer.global_step}: {what}: {why} (limit: {self.budget}; said once)")

    def _profile(self, trainer: Trainer, label: str, probe: ProbeSet, seconds_granted: float | None) -> Profile:
        assert self._phi is not None  # on_fit_start has found it
        began = time.perf_counter()
        protocol = chosen_protocol(self.protocol, probe.input_size)
        progress = trainer.progress_bar_callback is not None
        profile = measure_sharded(
            trainer, self._phi, probe, protocol, chunk=self.chunk, progress=progress, budget_seconds=seconds_granted
        )
        seconds = time.perf_counter() - began
        self.record.seconds += seconds
        weights = self.weights.name(trainer, self._phi)
        if weights != RAW:
            rank_zero_info(f"Step {trainer.global_step}: the response profile of {label} is that of weights {weights}")
        return profile.with_context(
            step=trainer.global_step,
            epoch=trainer.current_epoch,
            probe=label,
            probe_source=probe.source,
            probe_digest=probe.digest,
            encoder=encoder_name(self.encoder),
            weights=weights,
            processes=trainer.world_size,
            seconds=seconds,
            share=self.record.share(),
        )

    def _rehearse(self, trainer: Trainer) -> None:
        """Run every part of a measurement on two images, so that what cannot work is said before training."""
        assert self._phi is not None
        for probe in self._sets.values():
            protocol = rehearsal_protocol(chosen_protocol(self.protocol, probe.input_size))
            two = ProbeSet(probe.name, probe.images[:2], probe.source)
            with self._failing(trainer, loud=True):
                measure_sharded(trainer, self._phi, two, protocol, chunk=self.chunk, progress=False)
        self.record.show(trainer, self._sets)

    @contextmanager
    def _failing(self, trainer: Trainer, *, loud: bool) -> Iterator[None]:
        # A failed measurement ends the run only before training, where nothing is lost by it.
        try:
            yield
        except LitBumpError as error:  # the same one in every process
            if loud and self.on_error == "raise":
                raise
            rank_zero_warn(f"no response profile at step {trainer.global_step}: {error}")


def _stand_before_averaging(trainer: Trainer, callback: RProfileCallback) -> None:
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    others = [other for other in callbacks if other is not callback]
    averaging = [place for place, other in enumerate(others) if isinstance(other, AVERAGING)]
    if averaging and averaging[0] < callbacks.index(callback):
        others.insert(averaging[0], callback)
        trainer.callbacks = others  # type: ignore[attr-defined]  # a new list: Lightning goes through the old one


def _name(entry: ProbeSet | str) -> str:
    return entry if isinstance(entry, str) else entry.name


def _callbacks(trainer: Trainer) -> list[RProfileCallback]:
    return [callback for callback in trainer.callbacks if isinstance(callback, RProfileCallback) and callback.enable]  # type: ignore[attr-defined]


def _hparams(owner: Any) -> dict[str, Any]:
    """Return the hyper-parameters that Lightning will log."""
    return dict(getattr(owner, "hparams_initial", {})) if getattr(owner, "_log_hyperparams", False) else {}
