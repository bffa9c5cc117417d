"""A name means the images of the run's own data: its seeds, its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from lit_bump.errors import LitBumpError
from lit_bump.probes import ProbeSet, named_probe_set
from lit_bump.runs import SavedRun
from lit_bump.runs.run_probes import run_probes


def run_on(folder: Path, class_name: str, **arguments: Any) -> SavedRun:
    """Return a run whose config names a data module."""
    config = {"data": {"class_path": f"lit_bump.{class_name}", "init_args": arguments}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return SavedRun(folder)


def test_training_noise_is_that_of_the_run(tmp_path: Path) -> None:
    run = run_on(tmp_path, "NoiseShapesDataModule", noise_seed=5)
    assert run_probes(run, ["noise4train"]) == (named_probe_set("noise4train", noise_seed=5),)
    assert run_probes(run, ["noise4train"]) != (named_probe_set("noise4train"),)


def test_shapes_are_those_of_the_run(tmp_path: Path) -> None:
    run = run_on(tmp_path, "ShapesDataModule", shapes_seed=3)
    assert run_probes(run, ["shapes2", "shapes2b1"])[1] == named_probe_set("shapes2b1", shapes_seed=3)


def test_the_folder_is_that_of_the_run_or_the_one_given(cifar_folder: Path, tmp_path: Path) -> None:
    expected = named_probe_set("cifar4", data_dir=cifar_folder)
    assert run_probes(run_on(tmp_path, "CIFAR10DataModule", data_dir=str(cifar_folder)), ["cifar4"]) == (expected,)
    moved = run_on(tmp_path, "CIFAR10DataModule", data_dir="moved")
    assert run_probes(moved, ["cifar4"], data_dir=cifar_folder) == (expected,)
    with pytest.raises(LitBumpError, match="no CIFAR-10 in 'moved'"):
        run_probes(moved, ["cifar4"])


def test_a_run_on_shapes_can_be_measured_on_other_images(cifar_folder: Path, tmp_path: Path) -> None:
    run = run_on(tmp_path, "NoiseShapesDataModule", noise_seed=5)
    cifar, noise = run_probes(run, ["cifar4", "noise4train"], data_dir=cifar_folder)
    assert cifar == named_probe_set("cifar4", data_dir=cifar_folder)
    assert noise == named_probe_set("noise4train", noise_seed=5)
    with pytest.raises(LitBumpError, match="'cifar4' needs CIFAR-10: give data_dir"):
        run_probes(run, ["cifar4"])
    with pytest.raises(LitBumpError, match=r"no CIFAR-10 in '.*nowhere'"):
        run_probes(run, ["cifar4"], data_dir=tmp_path / "nowhere")


def test_a_set_is_taken_as_it_is(tmp_path: Path) -> None:
    mine = ProbeSet.from_tensor(torch.zeros(1, 3, 8, 8), name="mine")
    (tmp_path / "config.yaml").write_text("data: {class_path: gone.Data}", encoding="utf-8")
    assert run_probes(SavedRun(tmp_path), [mine]) == (mine,)


def test_a_run_without_config_takes_names_from_the_registry(tmp_path: Path) -> None:
    assert run_probes(SavedRun(tmp_path), ["noise2train"]) == (named_probe_set("noise2train"),)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["shapes2", "shapes2"], "'shapes2' is given twice"),
        (["shape32"], r"no probe set 'shape32' \(did you mean 'shapes32'\?\)"),
        ([], "no probe set given"),
    ],
)
def test_wrong_names_are_refused(names: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=message):
        run_probes(run_on(tmp_path, "ShapesDataModule"), names)
