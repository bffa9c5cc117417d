"""Probe sets for a saved run: named as in its config, made with its own seeds and folder, as its callback made them.

Paper: A.2 "Probe sets". A name is asked of the run's data module first, then of the registry. ``noise32train`` thus
holds images that this run was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningDataModule

from lit_bump.errors import LitBumpError
from lit_bump.probes import ProbeSet, named_probe_set
from lit_bump.runs.configured_class import as_built, built
from lit_bump.runs.saved_run import SavedRun


def run_probes(
    run: SavedRun, probes: Sequence[ProbeSet | str], *, data_dir: str | Path | None = None
) -> tuple[ProbeSet, ...]:
    """Return probe sets, named ones made with the options of a run's data.

    Args:
        run: the run.
        probes: sets, which are taken as they are, and names.
        data_dir: where CIFAR-10 is; None for the folder of the run's config.

    Returns:
        The sets, in the order given.

    Raises:
        LitBumpError: if a name is unknown, occurs twice, or its images are not to be had.

    """
    section = run.config.get("data")
    data: Any = None
    if isinstance(section, dict) and section.get("class_path") and any(isinstance(entry, str) for entry in probes):
        data = built(section, LightningDataModule)
        if data_dir is not None and hasattr(data, "data_dir"):
            data.data_dir = Path(data_dir)
    with as_built():
        found = tuple(
            entry if isinstance(entry, ProbeSet) else _named(entry, data, data_dir=data_dir) for entry in probes
        )
    names = [probe.name for probe in found]
    for name in names:
        if names.count(name) > 1:
            raise LitBumpError(f"probe set {name!r} is given twice: give each once, or another name")
    if not found:
        raise LitBumpError("no probe set given: name one, such as shapes32 (see python -m lit_bump probes)")
    return found


def _named(name: str, data: Any, *, data_dir: str | Path | None) -> ProbeSet:
    unknown: LitBumpError | None = None
    if callable(getattr(data, "probe_set", None)):
        try:
            found: ProbeSet = data.probe_set(name)
        except LitBumpError as error:
            unknown = error
        else:
            return found
    try:
        return named_probe_set(name, data_dir=data_dir)
    except LitBumpError as error:
        raise (error if unknown is None or data_dir is not None else unknown) from None
