"""Which optimiser steps to measure: 0, then evenly in log step, then the last one.

Paper: A.2 "Training", formation: "an approximately logarithmic step schedule from initialization to the end".
Standard library only. A target is met at the first step *at or after* it, since a trainer's step may advance by more
than one at a time: ask ``next_target(last measured step)`` and compare with ``<=``, never with ``==``.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from dataclasses import dataclass

from lit_bump.errors import LitBumpError


@dataclass(frozen=True)
class LogSteps:
    """Schedule of optimiser steps, given in one of three ways.

    By density: ``LogSteps(per_decade=4)`` is 0, 1, round(10^(k/4)) and the last step. By number:
    ``LogSteps(n_points=24)`` is that many steps, 0 and the last included, evenly spaced in log step; it needs a run of
    known length. By list: ``LogSteps(steps=(0, 100, 400))`` is exactly these, so 0 and the last only if listed.

    Args:
        per_decade: targets per factor of ten, at least 1.
        n_points: number of targets in all, at least 2; a run of fewer steps gets every step once.
        steps: the targets themselves, increasing, from 0 up; none beyond the run's last step.

    Raises:
        LitBumpError: if more than one way is used, or a value is out of range.

    Example:
        >>> LogSteps(per_decade=2).targets(total=50)
        (0, 1, 3, 10, 32, 50)
        >>> LogSteps(n_points=5).targets(total=1000)
        (0, 1, 10, 100, 1000)
        >>> LogSteps().next_target(1000, total=None)
        1778

    """

    per_decade: int = 4
    n_points: int | None = None
    steps: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no schedule; listed steps become a tuple, so that the schedule can be hashed.

        Raises:
            LitBumpError: if more than one way is used, or a value is out of range.

        """
        if self.per_decade < 1:
            raise LitBumpError(f"per_decade={self.per_decade}: give at least 1 step per factor of ten")
        ways = (self.per_decade != 4, self.n_points is not None, self.steps is not None)
        if sum(ways) > 1:
            raise LitBumpError(f"{self}: give only one of per_decade, n_points and steps")
        if self.n_points is not None and self.n_points < 2:
            raise LitBumpError(f"n_points={self.n_points}: give at least 2, for step 0 and the last step")
        if self.steps is not None:
            object.__setattr__(
                self, "steps", tuple(self.steps)
            )  # a list of a config, too, must leave a hashable object
            _check_listed(self.steps)

    def __str__(self) -> str:
        """Show the one way in use.

        Returns:
            One line that evaluates to an equal schedule.

        """
        given = [("per_decade", self.per_decade)] if self.per_decade != 4 else []
        given += [(name, value) for name in ("n_points", "steps") if (value := getattr(self, name)) is not None]
        return f"LogSteps({', '.join(f'{name}={value}' for name, value in given) or 'per_decade=4'})"

    @property
    def includes_last(self) -> bool:
        """Whether the last step is a target wherever the run ends; not so for listed steps."""
        return self.steps is None

    def targets(self, total: int | None) -> tuple[int, ...]:
        """Return all targets of a run, increasing and each once.

        Args:
            total: the run's last optimiser step; None if unknown, which only listed steps allow.

        Returns:
            Steps from 0 to ``total``.

        Raises:
            LitBumpError: if ``total`` is negative, a listed step lies beyond it, or it is None and has to be known.

        """
        if total is None and self.steps is None:
            raise LitBumpError(f"{self} has no end in a run of unknown length: set trainer.max_steps or max_epochs")
        return _targets(self, total)

    def next_target(self, step: int, total: int | None) -> int | None:
        """Return the smallest target above a step.

        A measurement is due at step g after one at step s where ``next_target(s, total) <= g``. Start with s = -1.

        Args:
            step: the last measured step, -1 before the first.
            total: the run's last optimiser step; None if unknown: then targets go on forever by density.

        Returns:
            The next target, or None if there is none.

        Raises:
            LitBumpError: if ``total`` is negative, a listed step lies beyond it, or it is None and needed.

        """
        if total is None and self.steps is None and self.n_points is None:
            return _next_by_density(step, self.per_decade)
        targets = self.targets(total)
        position = bisect.bisect_right(targets, step)
        return targets[position] if position < len(targets) else None

    def n_targets_above(self, step: int, total: int | None) -> int | None:
        """Return how many targets are still to come after a step.

        Args:
            step: an optimiser step.
            total: the run's last optimiser step; None if unknown.

        Returns:
            The number, or None if targets go on forever.

        Raises:
            LitBumpError: if ``total`` is negative, a listed step lies beyond it, or it is None and needed.

        Example:
            >>> LogSteps(steps=(0, 10, 20)).n_targets_above(10, total=50)
            1

        """
        if total is None and self.steps is None and self.n_points is None:
            return None
        targets = self.targets(total)
        return len(targets) - bisect.bisect_right(targets, step)


def _check_listed(steps: tuple[int, ...]) -> None:
    if not steps:
        raise LitBumpError("steps=(): list at least one step, or give per_decade")
    for step in steps:
        if isinstance(step, bool) or not isinstance(step, int):
            raise LitBumpError(f"steps hold {step!r}: give whole numbers of optimiser steps")
    if steps[0] < 0:
        raise LitBumpError(f"steps hold {steps[0]}: give steps from 0 up")
    for before, after in itertools.pairwise(steps):
        if after <= before:
            raise LitBumpError(f"steps hold {before} before {after}: give them in increasing order, each once")


@functools.lru_cache(maxsize=256)  # asked after every batch
def _targets(schedule: LogSteps, total: int | None) -> tuple[int, ...]:
    if total is not None and total < 0:
        raise LitBumpError(f"total={total}: the last step of a run is at least 0")
    if schedule.steps is not None:
        if total is not None and schedule.steps[-1] > total:
            cure = "train longer or drop the steps beyond"
            raise LitBumpError(f"step {schedule.steps[-1]} is scheduled, but the run ends at step {total}: {cure}")
        return schedule.steps
    assert total is not None  # targets() has refused it
    if schedule.n_points is not None:
        return _by_number(schedule.n_points, total)
    steps, step = [0], 0
    while (step := _next_by_density(step, schedule.per_decade)) < total:
        steps.append(step)
    return (*steps, total) if total > 0 else (0,)


def _next_by_density(step: int, per_decade: int) -> int:
    if step < 1:
        return step + 1 if step == 0 else 0
    rung = max(0, math.floor(per_decade * math.log10(step)) - 1)  # at or below the step, whatever the rounding
    while (target := round(10 ** (rung / per_decade))) <= step:
        rung += 1
    return target


def _by_number(n_points: int, total: int) -> tuple[int, ...]:
    # By 1 where the even ratio to the last step would not move on to the next whole number: exactly n_points in all.
    if total < n_points:
        return tuple(range(total + 1))
    if n_points == 2:
        return (0, total)
    steps, place = [0, 1], 1.0
    while len(steps) < n_points - 1:
        ratio = (total / place) ** (1 / (n_points - len(steps)))
        place = max(place * ratio, place + 1)
        steps.append(round(place))
    return (*steps, total)
