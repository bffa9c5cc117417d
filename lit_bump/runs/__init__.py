"""Saved training runs, read back: what they are, their checkpoints as modules, and measurements of them afterwards.

Paper: section 3 and A.2. May import everything but the command line: ``runs`` puts the parts together. Results lie
where those of the callback lie, ``<log_dir>/profiles/<probe>/step_<n>.npz``. The names load on first use, so that
reading profiles needs no Lightning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lit_bump.runs.saved_run import SavedRun

if TYPE_CHECKING:
    from lit_bump.runs.checkpoint_module import load_module
    from lit_bump.runs.run_measurement import measure_run

__all__ = ["SavedRun", "load_module", "measure_run"]


def __getattr__(name: str) -> object:
    if name == "load_module":
        from lit_bump.runs.checkpoint_module import load_module

        return load_module
    if name == "measure_run":
        from lit_bump.runs.run_measurement import measure_run

        return measure_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
