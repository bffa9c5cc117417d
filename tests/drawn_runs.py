"""Folders of runs with a config and made-up profiles, for tests of what is read from saved runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from lit_bump.measure.formation import step_file
from lit_bump.runs import SavedRun
from tests.figures.drawn_profiles import drawn_profile

REGIMES: dict[str, tuple[str, dict[str, object]]] = {
    "clean": ("ShapesDataModule", {}),
    "blur 1": ("BlurredShapesDataModule", {"sigma": 1.0}),
    "blur 2": ("BlurredShapesDataModule", {"sigma": 2.0}),
    "permuted labels": ("PermutedLabelsShapesDataModule", {}),
    "noise": ("NoiseShapesDataModule", {}),
}


def drawn_run(
    folder: Path,
    name: str,
    regime: str = "clean",
    *,
    network: str = "resnet18",
    probes: Mapping[str, Sequence[float]] | None = None,
    eps: float | str | None = None,
    n_images: int = 6,
) -> SavedRun:
    """Return a run, written to a folder, with peaks of the given heights by probe set, one a step (0, 1, 2, 4 ...)."""
    log_dir = folder / name / "version_0"
    log_dir.mkdir(parents=True)
    data, options = REGIMES[regime]
    model = "lit_bump.ClassifierModule" if eps is None else "lit_bump.AdversarialClassifierModule"
    init_args = {"network": network, "width": 8} | ({} if eps is None else {"norm": "L2", "eps": eps})
    config = {
        "model": {"class_path": model, "init_args": init_args},
        "data": {"class_path": f"lit_bump.{data}", "init_args": options},
    }
    (log_dir / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    for probe, heights in ({"shapes6": [0.0, 9.0]} if probes is None else probes).items():
        for k, height in enumerate(heights):
            step = 2**k // 2
            profile = drawn_profile(height, step=step, n_images=n_images).with_context(probe=probe)
            profile.save(step_file(log_dir, probe, step))
    return SavedRun.find(log_dir)
