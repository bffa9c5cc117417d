"""How many seconds the next measurement may take, so that all of them stay within a share of the training time.

Not in the paper. Needs ``measure`` for the cost of a profile; no trainer and, but for the stopwatch, no clock. What is
planned with is the whole training's time, as the steps so far foretell it: early measurements, close together on a
logarithmic schedule, are paid for by the long stretch of steps that follows them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lit_bump.measure import Profile

START_UP = 10.0  # the first step (workers start, kernels are chosen) is taken to be this much slower than later ones
LEAST_BUDGET = 1e-3  # seconds; a measurement that is made in any case then takes its least number of pairs


@dataclass(frozen=True)
class Moment:
    """Hold a moment of the training.

    Args:
        step: optimiser step.
        seconds: of training up to here, measurements not counted.

    """

    step: int
    seconds: float


class Stopwatch:
    """Add up the seconds while it runs.

    Args:
        now: seconds of some clock.

    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._before, self._since = 0.0, math.nan

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return not math.isnan(self._since)

    def seconds(self) -> float:
        """Return the sum."""
        return self._before + (self._now() - self._since if self.runs else 0.0)

    def start(self) -> None:
        """Run from here, or go on running."""
        if not self.runs:
            self._since = self._now()

    def stop(self) -> None:
        """Stand still."""
        self._before, self._since = self.seconds(), math.nan

    def set(self, seconds: float) -> None:
        """Stand still at a sum.

        Args:
            seconds: the sum.

        """
        self._before, self._since = seconds, math.nan


@contextmanager
def stopped(watches: Iterable[Stopwatch]) -> Iterator[None]:
    """Let those stopwatches that run stand still during a block."""
    running = [watch for watch in watches if watch.runs]
    for watch in running:
        watch.stop()
    try:
        yield
    finally:
        for watch in running:
            watch.start()


class MeasurementBudget:
    """Plan the measurements of one run.

    Args:
        max_share: most that all measurements may take of the time since training began; None for no limit.
        seconds: most that one measurement of all probe sets may take; None for no limit.
        now: seconds of some clock.

    Attributes:
        training: the time of the training itself; whoever measures lets it stand still meanwhile.
        least: the smallest cost that a measurement of all probe sets is known to come down to; 0 before the first.

    """

    def __init__(
        self, max_share: float | None, seconds: float | None, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self.max_share, self.seconds = max_share, seconds
        self.training = Stopwatch(now)
        self.least = 0.0
        self._start: Moment | None = None
        self._first: Moment | None = None

    @property
    def has_limit(self) -> bool:
        """Whether anything is limited."""
        return self.max_share is not None or self.seconds is not None

    def __str__(self) -> str:
        """Return the limits in words."""
        share = [] if self.max_share is None else [f"{100 * self.max_share:g} % of training"]
        return " and ".join([*share, *([] if self.seconds is None else [f"{self.seconds:g} s a measurement"])])

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run plans with, in plain types."""
        first = None if self._first is None else [self._first.step, self._first.seconds]
        return {"training": self.training.seconds(), "first": first, "least": self.least}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the plan of the run that is resumed.

        Args:
            state: of ``state_dict``.

        """
        self.training.set(state["training"])
        self.least = state["least"]
        self._first = None if state["first"] is None else Moment(*state["first"])

    def begin(self, step: int) -> None:
        """Count the time of training from here on.

        Args:
            step: the optimiser step at which training begins or goes on.

        """
        self._start = Moment(step, self.training.seconds())
        self.training.start()

    def note(self, step: int) -> None:
        """Take the time of the first step that has ended, which the pace of the later ones is reckoned from.

        Args:
            step: the optimiser step after a batch.

        """
        if self._first is None and self._start is not None and step > self._start.step:
            self._first = Moment(step, self.training.seconds())

    def learn(self, profiles: Iterable[Profile]) -> None:
        """Learn from a measurement of all probe sets what the next one costs at least.

        Args:
            profiles: of all probe sets at one step.

        """
        cost = sum(least_seconds(profile, profile.context["seconds"]) for profile in profiles)
        self.least = min(self.least or cost, cost)

    def planned(self, step: int, total: int | None, n_left: int, spent: float) -> float:
        """Return the seconds that the next measurement may take; what is planned is not yet what can be.

        Args:
            step: the optimiser step that has ended.
            total: the run's last step; None if unknown: then only the time that has passed is shared out.
            n_left: measurements that are still to come, this one included.
            spent: seconds of all measurements so far.

        Returns:
            Seconds, at most zero where nothing is left; infinity where nothing limits it, as before the first step.

        """
        if self.max_share is None or self._start is None:
            return math.inf
        now = Moment(step, self.training.seconds())
        if now.step <= self._start.step and self._first is None:
            return math.inf  # nothing is known of the training's length
        whole = whole_training(self._start, self._first or now, now, total)
        return (allowed_seconds(whole, self.max_share) - spent) / max(n_left, 1)

    def granted(self, planned: float, weights: Mapping[str, float], *, must: bool) -> dict[str, float] | None:
        """Return the seconds of every probe set, or None where the measurement is left out.

        ``max_share`` leaves out; ``seconds`` only thins, as it would otherwise leave out either all or none.

        Args:
            planned: of ``planned``.
            weights: what the probe sets cost in relation to one another, by label.
            must: whether the measurement is made in any case.

        Returns:
            Positive seconds by label; empty where nothing limits them.

        """
        if not must and (planned <= 0 or planned < self.least):
            return None
        seconds = min(planned, math.inf if self.seconds is None else self.seconds)
        return {} if math.isinf(seconds) else shared_out(seconds, weights)


def whole_training(start: Moment, first: Moment, now: Moment, total: int | None) -> float:
    """Return the seconds that a training will have taken, measurements not counted, at the pace so far.

    Args:
        start: where it began, or was taken up again.
        first: the end of its first step. The pace is that of the steps after it: the first would foretell hours where
            there are minutes. While it is the only one, ``START_UP`` times its pace is taken.
        now: the present.
        total: the last step; None if unknown.

    Returns:
        Seconds; those that have passed where the total is unknown.

    Example:
        >>> start, first, now = Moment(0, 0.0), Moment(1, 5.0), Moment(11, 10.0)  # 5 s, then 0.5 s a step
        >>> whole_training(start, first, now, 101), whole_training(start, first, now, None)
        (55.0, 10.0)

    """
    if total is None:
        return now.seconds
    if now.step > first.step:
        pace = (now.seconds - first.seconds) / (now.step - first.step)
    else:
        pace = (now.seconds - start.seconds) / max(now.step - start.step, 1) / START_UP
    return now.seconds + pace * max(total - now.step, 0)


def allowed_seconds(training: float, max_share: float) -> float:
    """Return how long all measurements may take so that they make up a share of the time of both together.

    Args:
        training: seconds without measurements.
        max_share: above 0, at most 1.

    Returns:
        Seconds; infinity for a share of 1.

    Example:
        >>> allowed_seconds(training=75.0, max_share=0.25)  # 25 of 100 seconds
        25.0

    """
    return math.inf if max_share == 1 else training * max_share / (1 - max_share)


def shared_out(seconds: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of every probe set, in proportion to its weight.

    Args:
        seconds: of all together.
        weights: by label.

    Returns:
        Positive seconds by label.

    Example:
        >>> shared_out(3.0, {"test": 2.0, "train": 1.0})
        {'test': 2.0, 'train': 1.0}

    """
    whole = sum(weights.values())
    return {label: max(seconds * weight / whole, LEAST_BUDGET) for label, weight in weights.items()}


def least_seconds(profile: Profile, seconds: float) -> float:
    """Return what a measurement would have taken at the largest standard error that a budget can raise it to.

    Args:
        profile: how it came out.
        seconds: what it took.

    Returns:
        Seconds: without the pairs beyond the pilot, each counted as two forwards; all of them for a protocol of fixed
        pairs, which no budget can thin.

    """
    protocol = profile.protocol
    if protocol.target_se is None:
        return seconds
    pilot = 2 * min(protocol.n_pilot, protocol.n_pairs)
    further = float((profile.n_directions - pilot).clip(min=0).sum())
    return seconds * (1.0 - min(1.0, further / float(profile.forward_equivalents.sum())))
