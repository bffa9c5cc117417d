"""A run is found by any of its names, says what it was trained on, and lists each checkpoint once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from lit_bump.errors import LitBumpError
from lit_bump.runs import SavedRun
from tests.runs.tiny_saved_run import Elementwise, saved_by_hand


def run_with(folder: Path, **sections: Any) -> SavedRun:
    """Return a run that has a config and nothing else."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(sections), encoding="utf-8")
    return SavedRun.find(folder)


def test_a_run_is_found_by_each_of_its_names(run_folder: Path) -> None:
    for path in (run_folder, run_folder.parent, run_folder / "checkpoints", str(run_folder)):
        assert SavedRun.find(path) == SavedRun(run_folder)
    assert SavedRun.find(run_folder).name == "tiny/version_0"


def test_the_newest_version_counts_by_its_number(tmp_path: Path) -> None:
    for number in (9, 10):
        run_with(tmp_path / f"version_{number}")
    (tmp_path / "version_11").mkdir()  # a run that never began
    assert SavedRun.find(tmp_path).log_dir.name == "version_10"


def test_a_version_without_results_does_not_hide_one_that_has_some(run_folder: Path) -> None:
    run_with(run_folder.parent / "version_1")  # a training that failed at once leaves its config
    assert SavedRun.find(run_folder.parent) == SavedRun(run_folder)


def test_a_broken_checkpoint_of_another_step_does_not_matter(run_folder: Path) -> None:
    (run_folder / "checkpoints" / "step_00000009.ckpt").write_text("<html>")
    (run_folder / "checkpoints" / "epoch=1-step=7.ckpt").write_text("<html>")
    assert {1, 7, 9} <= SavedRun.find(run_folder).checkpoints().keys()


def test_a_checkpoint_stands_for_its_run_alone(run_folder: Path) -> None:
    path = run_folder / "checkpoints" / "step_00000001.ckpt"
    run = SavedRun.find(path)
    assert (run.log_dir, run.checkpoints()) == (run_folder, {1: path})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tini", r"no run '.*tini' \(did you mean 'tiny'\?\)"),
        ("tiny/version_1", r"did you mean 'version_0'"),
        ("tiny/version_0/config.yaml", r"neither a run's folder nor a \.ckpt file"),
        (".", r"holds no run: .*version_0|holds no run"),
    ],
)
def test_what_is_no_run_is_refused_with_the_nearest(path: str, message: str, run_folder: Path) -> None:
    with pytest.raises(LitBumpError, match=message):
        SavedRun.find(run_folder.parent.parent / path)


REGIMES = {
    "clean": ("CIFAR10DataModule", {}, "ClassifierModule", {}),
    "blur 1": ("BlurredCIFAR10DataModule", {}, "ClassifierModule", {}),
    "blur 2": ("BlurredShapesDataModule", {"sigma": 2.0}, "ClassifierModule", {}),
    "permuted labels": ("PermutedLabelsShapesDataModule", {}, "ClassifierModule", {}),
    "noise": ("NoiseCIFAR10DataModule", {}, "ClassifierModule", {}),
    "L2 0.5": ("CIFAR10DataModule", {}, "AdversarialClassifierModule", {"norm": "L2", "eps": 0.5}),
    "Linf 8/255": ("CIFAR10DataModule", {}, "AdversarialClassifierModule", {"norm": "linf", "eps": 8 / 255}),
    "blur 1, L2 1": ("BlurredCIFAR10DataModule", {}, "AdversarialClassifierModule", {"norm": "l2", "eps": 1}),
}


@pytest.mark.parametrize(("regime", "sections"), REGIMES.items(), ids=REGIMES)
def test_the_regime_is_read_from_the_config(regime: str, sections: tuple[Any, ...], tmp_path: Path) -> None:
    data, data_args, model, model_args = sections
    run = run_with(
        tmp_path / "run",
        data={"class_path": f"lit_bump.{data}", "init_args": data_args},
        model={"class_path": f"lit_bump.{model}", "init_args": model_args},
    )
    assert run.regime == regime


def test_no_blur_and_no_budget_are_clean(tmp_path: Path) -> None:
    data = {"class_path": "lit_bump.BlurredShapesDataModule", "init_args": {"sigma": 0.0}}
    model = {"class_path": "lit_bump.AdversarialClassifierModule", "init_args": {"norm": "L2", "eps": 0.0}}
    assert run_with(tmp_path / "run", data=data, model=model).regime == "clean"


def test_network_and_width_are_read_from_the_config(run_folder: Path, tmp_path: Path) -> None:
    run = SavedRun.find(run_folder)
    assert (run.network, run.width, run.regime) == ("resnet18", 4, "noise")
    nested = {"class_path": "a.B", "init_args": {"network": {"class_path": "my.Net"}}}
    assert run_with(tmp_path / "nested", model=nested).network == "Net"
    assert run_with(tmp_path / "other", model={"class_path": "my.Module"}).network == "Module"
    assert run_with(tmp_path / "empty").network == "empty"


def test_a_run_without_config_is_read_from_its_hparams(tmp_path: Path) -> None:
    (tmp_path / "hparams.yaml").write_text("network: vgg16\nwidth: 8\n", encoding="utf-8")
    assert (SavedRun.find(tmp_path).network, SavedRun.find(tmp_path).width) == ("vgg16", 8)
    (tmp_path / "hparams.yaml").write_text("network: !!python/object:a.B {}\n", encoding="utf-8")
    assert SavedRun.find(tmp_path).network == tmp_path.name


def test_a_config_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(LitBumpError, match=r"config\.yaml cannot be read"):
        _ = SavedRun.find(tmp_path).regime


def test_each_step_is_listed_once_and_in_order(run_folder: Path) -> None:
    folder = run_folder / "checkpoints"
    assert any(folder.glob("epoch=*"))  # Lightning's own, of the last step
    shutil.copy(folder / "step_00000002.ckpt", folder / "last.ckpt")
    saved_by_hand(run_folder, Elementwise(), step=10).rename(folder / "epoch=5-step=10.ckpt")
    found = SavedRun.find(run_folder).checkpoints()
    names = ["step_00000000.ckpt", "step_00000001.ckpt", "step_00000002.ckpt", "epoch=5-step=10.ckpt"]
    assert ([path.name for path in found.values()], list(found)) == (names, [0, 1, 2, 10])


def test_the_step_is_the_one_in_the_file(tmp_path: Path) -> None:
    saved_by_hand(tmp_path, Elementwise(), step=3).rename(tmp_path / "step_00000007.ckpt")
    assert list(SavedRun.find(tmp_path).checkpoints()) == [3]


def test_saved_profiles_are_returned_by_probe_set(run_folder: Path) -> None:
    assert {label: f.steps for label, f in SavedRun.find(run_folder).formations().items()} == {"noise2train": (0, 1, 2)}
