"""All conditions of a scale, some at a time, in processes of their own, with what is done and left shown.

Paper: A.2. Needs rich. On networks this narrow, a process of one thread a core does more than one of many threads. One
that fails does not stop the others: its claims stay undecided, and its message is given.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from lit_bump.claims.condition import Condition
from lit_bump.claims.condition_run import check_made_of, complete_in_child
from lit_bump.claims.evidence import is_finished
from lit_bump.claims.scale import Scale

RUNS, LOGS = "runs", "logs"


def run_conditions(scale: Scale, out: Path, *, jobs: int, options: dict[str, Any], console: Console) -> dict[str, str]:
    """Train and measure what is missing.

    Args:
        scale: with its conditions.
        out: folder of the results.
        jobs: processes at a time.
        options: of ``complete``.
        console: where to show it.

    Returns:
        What went wrong, by condition; empty if nothing did.

    Raises:
        LitBumpError: if a condition's folder was made with other options.

    """
    for condition in scale.conditions:
        check_made_of(condition, out / RUNS, protocol=options["protocol"], extra=options["extra"])
    missing = [c for c in scale.conditions if not is_finished(out / RUNS, c)]
    done = {c.name for c in scale.conditions} - {c.name for c in missing}
    if done:
        console.print(f"{len(done)} of {len(scale.conditions)} conditions are there already", highlight=False)
    if not missing:
        return {}
    waiting = sorted(missing, key=lambda c: -_chain(c, missing))  # what others wait for, and the longest, first
    failed: dict[str, str] = {}
    running: list[_Child] = []
    with _shown(console, waiting) as show, _threads(scale.threads):
        try:
            while waiting or running:
                for condition in _ready(waiting, done, jobs - len(running)):
                    waiting.remove(condition)
                    running.append(_Child(condition, out, {**options, "threads": scale.threads}))
                    show(f"{condition.name} begins", 0.0)
                connection.wait([child.process.sentinel for child in running])
                for child in [child for child in running if not child.process.is_alive()]:
                    running.remove(child)
                    name = child.condition.name
                    if problem := child.problem():
                        failed[name] = problem
                        show(f"{name} failed: {problem}", child.condition.cost)
                    else:
                        done.add(name)
                        show(f"{name} done in {_minutes(time.perf_counter() - child.began)}", child.condition.cost)
                for condition in [c for c in waiting if c.init_from in failed]:
                    waiting.remove(condition)
                    failed[condition.name] = f"it starts from {condition.init_from}, which failed"
        finally:
            for child in running:  # only after an error or Ctrl-C
                child.process.terminate()
    return failed


class _Child:
    """One condition in a process of its own, which tells at its end what went wrong."""

    def __init__(self, condition: Condition, out: Path, options: dict[str, Any]) -> None:
        context = multiprocessing.get_context("spawn")  # not fork: torch's threads do not survive it
        self.condition, self.began = condition, time.perf_counter()
        self._receiver, sender = context.Pipe(duplex=False)
        log = out / LOGS / f"{condition.name}.log"
        arguments = (sender, condition, out / RUNS, log, os.getpid(), options)
        self.process = context.Process(target=complete_in_child, args=arguments)
        self.process.start()
        sender.close()

    def problem(self) -> str:
        """Return what went wrong, or an empty text."""
        self.process.join()
        try:
            return str(self._receiver.recv())
        except EOFError:  # killed, or out of memory
            return f"its process ended with exit code {self.process.exitcode}"


def _ready(waiting: list[Condition], done: set[str], free: int) -> list[Condition]:
    return [c for c in waiting if c.init_from is None or c.init_from in done][: max(0, free)]


def _chain(condition: Condition, others: list[Condition]) -> float:
    """Return the cost of a condition and of the dearest one that waits for it."""
    return condition.cost + max((_chain(c, others) for c in others if c.init_from == condition.name), default=0.0)


@contextmanager
def _shown(console: Console, conditions: list[Condition]) -> Iterator[Callable[[str, float], None]]:
    """Yield a function that prints a line and moves a bar by a cost."""
    total = sum(condition.cost for condition in conditions)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("conditions", total=total)

        def show(line: str, cost: float) -> None:
            bar.console.print(line, highlight=False)
            bar.advance(task, cost)

        yield show


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Give the processes that are started in a block a number of threads."""
    before = os.environ.get("OMP_NUM_THREADS")
    if number is not None:
        os.environ["OMP_NUM_THREADS"] = str(number)
    try:
        yield
    finally:
        if number is not None:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before


def _minutes(seconds: float) -> str:
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s" if seconds >= 60 else f"{seconds:.0f} s"
