"""Every packaged config is parsed and run for two steps, narrow and with a few pairs, as its users run it.

Configs are the project's examples: one that does not run, or whose head does not say how, is a bug.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import yaml

from lit_bump import config_files, load_formation
from lit_bump.__main__ import main

CONFIGS = config_files.packaged()
SMALL = (
    "--trainer.max_steps=2",
    "--rprofile.max_share=null",
    "--trainer.limit_val_batches=1",
    "--trainer.accelerator=cpu",
    "--trainer.enable_progress_bar=false",
    "--trainer.enable_model_summary=false",
    "--trainer.check_val_every_n_epoch=1",
    "--trainer.log_every_n_steps=1",
    "--data.batch_size=4",
    "--data.num_workers=0",
    "--rprofile.protocol={n_pairs: 1, etas: [0.1, 1.0]}",
    "--rprofile.figures=false",
)
WIDTH = 4


def run_small(name: str, cifar: Path, *options: str) -> int:
    """Run a config for two steps with four images a batch.

    Returns:
        The exit code.

    """
    loaded = yaml.safe_load(CONFIGS[name].read_text(encoding="utf-8"))
    probes = [probe.replace("32", "2").replace("shapes8", "shapes2") for probe in loaded["rprofile"]["probes"]]
    arguments = [f"--model.width={WIDTH}", f"--rprofile.probes=[{', '.join(probes)}]"]
    arguments += [f"--data.data_dir={cifar}"] if "CIFAR10" in loaded["data"]["class_path"] else ["--data.n_train=40"]
    return main(["fit", "--config", f"{name}.yaml", *SMALL, *arguments, *options])


@pytest.mark.parametrize("name", CONFIGS)
def test_config_runs_and_leaves_profiles(
    name: str, cifar_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_small(name, cifar_folder) == 0
    folder = tmp_path / "runs" / name / "version_0"
    formations = load_formation(folder)
    assert formations
    for formation in formations.values():
        assert formation.steps == (0, 1, 2)
    checkpoints = sorted(folder.glob("checkpoints/*.ckpt"))
    assert checkpoints
    for path in checkpoints:
        assert torch.load(path)["global_step"] <= 2  # as torch loads what it does not trust
    saved = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    assert type(saved["seed_everything"]) is int
    assert saved["trainer"]["max_steps"] == 2


@pytest.mark.parametrize("name", CONFIGS)
def test_head_says_what_it_is_and_how_to_run_it(name: str) -> None:
    head = [line for line in CONFIGS[name].read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert config_files.summary(CONFIGS[name]).endswith(".")
    assert any(line.startswith("# Paper:") for line in head)
    assert any(f"python -m lit_bump fit --config {name}.yaml" in line for line in head)


def test_every_run_of_the_papers_figures_has_a_config() -> None:
    networks = {"resnet18", "vgg16", "wrn"}
    assert {f"{network}_clean" for network in networks} <= set(CONFIGS)  # figure 1c
    assert {"resnet18_blur1", "resnet18_blur2"} <= set(CONFIGS)  # figure 2b
    assert {"resnet18_randlabel", "resnet18_noise"} <= set(CONFIGS)  # figure 2c


@pytest.mark.slow  # decodes all images
@pytest.mark.skipif("LIT_BUMP_CIFAR10" not in os.environ, reason="needs CIFAR-10's images in LIT_BUMP_CIFAR10")
def test_config_runs_on_real_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_small("resnet18_clean", Path(os.environ["LIT_BUMP_CIFAR10"])) == 0
