"""What a measurement has done and has still to do, shown as a bar or told to the caller.

Not in the paper. Needs tqdm where a bar is shown. The number of pairs is decided on the way, so the total may grow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = bool | Callable[[int, int], None] | None


class WorkMeter:
    """Count perturbed images and products.

    Args:
        report: called with (done, total) whenever either changes; None for silence.
        total: what is sure to come.

    """

    def __init__(self, report: Callable[[int, int], None] | None, total: int) -> None:
        self._report = report
        self._total, self._done = total, 0

    def advance(self, n: int) -> None:
        """Count work as done."""
        self._done += n
        self._total = max(self._total, self._done)
        if self._report is not None:
            self._report(self._done, self._total)

    def expect(self, n: int) -> None:
        """Add work that was not foreseen."""
        self._total += n

    def finish(self) -> None:
        """Say that all is done, also where less was needed than foreseen."""
        if self._report is not None and self._done < self._total:
            self._report(self._total, self._total)


@contextmanager
def work_meter(progress: Progress, total: int) -> Iterator[WorkMeter]:
    """Yield a meter that shows its work as the caller of a measurement wishes.

    Args:
        progress: None shows a bar on a terminal when it lasts over a second, True always, False never; a callable gets
            (done, total).
        total: what is sure to come.

    Yields:
        The meter.

    """
    if callable(progress) and not isinstance(progress, bool):
        meter = WorkMeter(progress, total)
        yield meter
        meter.finish()
    elif progress or (progress is None and sys.stderr.isatty()):
        from tqdm import tqdm

        options: dict[str, Any] = {"delay": 0.0 if progress else 1.0, "leave": False, "dynamic_ncols": True}
        with tqdm(total=total, desc="response profile", unit="img", **options) as bar:

            def show(done: int, all_of_it: int) -> None:
                bar.total = all_of_it
                bar.update(done - bar.n)

            yield WorkMeter(show, total)
    else:
        yield WorkMeter(None, total)
