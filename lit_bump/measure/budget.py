"""How long a measurement may take, and what it gives up to keep to it.

Not in the paper. Needs NumPy alone. Least cost first: the pilot pairs and the prediction are always measured; what is
given up is precision, by a larger standard error than the one asked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from jaxtyping import Int

IntArray = np.ndarray

_LARGEST_TARGET = 1.0
_STEPS = 40  # of bisection


class Budget:
    """Keep a measurement of several groups of images within some seconds.

    Args:
        seconds: of the whole measurement; None for no limit.
        began: ``time.perf_counter`` at its beginning.

    """

    def __init__(self, seconds: float | None, began: float) -> None:
        self.seconds, self._began = seconds, began
        self._rows, self._spent = 0, 0.0
        self._group_ends = began
        self._largest = 0.0
        self._is_raised = False

    def open_group(self, groups_left: int) -> None:
        """Give a group its share of the time that is left.

        Args:
            groups_left: groups of images to come, this one included.

        """
        now = time.perf_counter()
        if self.seconds is not None:
            left = max(self._began + self.seconds - now, 0.0)
            self._group_ends = now + left / groups_left

    @contextmanager
    def timing(self, n_rows: int) -> Iterator[None]:
        """Learn from a block how long a row takes."""
        began = time.perf_counter()
        yield
        self._rows, self._spent = self._rows + n_rows, self._spent + time.perf_counter() - began

    def affordable(
        self, planned: Callable[[float], Int[IntArray, "image rung 2"]], target: float
    ) -> Int[IntArray, "image rung 2"]:
        """Return the plan for the target, or for the smallest larger one whose rows fit into the group's time.

        Args:
            planned: numbers of pairs, and of fine ones, by target standard error.
            target: the one asked for.

        Returns:
            The plan; that for an infinite target, which adds nothing, where nothing fits.

        """
        plan, nothing = planned(target), planned(math.inf)

        def rows(some: np.ndarray) -> int:
            return int((some - nothing).max(axis=-1).sum())

        if self.seconds is None or not rows(plan):
            return plan
        left = self._group_ends - time.perf_counter()
        most = left * self._rows / self._spent if self._spent else 0.0
        if rows(plan) <= most:
            return plan
        low, high = np.log(target), np.log(_LARGEST_TARGET)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if rows(planned(float(np.exp(middle)))) > most else (low, middle)
        given = float(np.exp(high))
        self._largest = max(self._largest, given)
        self._is_raised = True
        plan = planned(given)
        return plan if rows(plan) <= most else nothing

    def gave_up(self, target: float | None) -> str:
        """Return what was given up, in words; empty where nothing was.

        Args:
            target: the standard error asked for.

        Returns:
            One phrase.

        """
        if self.seconds is None:
            return ""
        seconds = time.perf_counter() - self._began
        if target is None:
            over = f"a protocol of fixed pairs took {seconds:.3g} s of a budget of {self.seconds:.3g} s"
            return over if seconds > self.seconds else ""
        if not self._is_raised:
            return ""
        reached = (
            f"a standard error of {100 * self._largest:.2g} %" if self._largest < 1 else "the least number of pairs"
        )
        over = f" ({seconds:.3g} s: less than the least cost)" if seconds > 1.5 * self.seconds else ""
        return f"for a budget of {self.seconds:.3g} s{over}: {reached} in place of {100 * target:g} %"
