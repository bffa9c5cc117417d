"""The command line: it answers at once, reruns, reproduces, never loses the measurement, and ends errors in one line.

Commands run in this process through ``main``, except where the process itself is the point.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lit_bump import ClassifierModule, load_formation
from lit_bump.__main__ import main
from lit_bump.cli_help import COMMANDS
from tests.conftest import RunPython
from tests.tiny_cli import checkpoint, last_line


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a run's last checkpoint."""
    loaded: dict[str, torch.Tensor] = torch.load(checkpoint(folder), weights_only=True)["state_dict"]
    return loaded


# It answers at once.


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["configs"], ["configs", "quickstart"], []])
def test_light_commands_load_no_torch(arguments: list[str], run_python: RunPython) -> None:
    program = (
        f"import sys\nfrom lit_bump.__main__ import main\ncode = main({arguments!r})\n"
        "sys.stderr.write(str({'torch', 'lightning', 'numpy'} & set(sys.modules)))\nsys.exit(code)"
    )
    started = time.monotonic()
    result = run_python("-c", program)
    assert result.stderr.endswith("set()")
    assert result.returncode == (0 if arguments else 2)
    assert time.monotonic() - started < 3


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)


def test_configs_and_probes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configs"]) == 0
    assert re.search(r"^wrn_randlabel +WRN-28-10, labels permuted", capsys.readouterr().out, re.MULTILINE)
    assert main(["configs", "wrn_randlabel.yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["model"]["init_args"]["network"] == "wrn28x10"
    assert main(["probes"]) == 0
    assert re.search(r"^cifar32b1 ", capsys.readouterr().out, re.MULTILINE)


def test_help_of_fit_shows_the_measurement_and_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "--help"])
    text = capsys.readouterr().out
    for option in ("--rprofile.protocol", "--run_name", "--trainer.max_steps", "--model"):
        assert option in text
    assert len(text.split("\n\n")[0].splitlines()) <= 3  # the usage is not a page of options


# It reruns and reproduces.


@pytest.mark.parametrize("logger", ["true", "false"])
def test_second_identical_run_keeps_the_first(logger: str, tiny: Path) -> None:
    command = ["fit", "--config", "tiny.yaml", f"--trainer.logger={logger}"]
    assert [main(command), main(command)] == [0, 0]
    for version in ("version_0", "version_1"):
        folder = tiny / "runs" / "tiny" / version
        assert (folder / "config.yaml").is_file()
        assert load_formation(folder)["shapes2"].steps == (0, 1, 2)
    assert sorted(path.name for path in tiny.iterdir()) == ["runs", "tiny.yaml"]


def test_saved_config_reproduces_the_run(finished: Path, tiny: Path) -> None:
    saved = yaml.safe_load((finished / "config.yaml").read_text(encoding="utf-8"))
    assert type(saved["seed_everything"]) is int
    assert saved["model"]["init_args"]["num_classes"] == 10
    assert saved["model"]["init_args"]["lr"] == pytest.approx(0.1)
    assert main(["fit", "--config", str(finished / "config.yaml"), "--trainer.default_root_dir", "again"]) == 0
    second = tiny / "again" / "tiny" / "version_0"
    before, after = weights(finished), weights(second)
    assert all(torch.equal(before[name], after[name]) for name in before)
    profiles = [load_formation(folder)["shapes2"].profiles[0] for folder in (finished, second)]
    assert (profiles[0].response == profiles[1].response).all()


def test_global_seed_leaves_probe_images_and_directions_alone(finished: Path, tiny: Path) -> None:
    assert main(["fit", "--config", "tiny.yaml", "--seed_everything=1", "--trainer.max_steps=1"]) == 0
    folders = (finished, tiny / "runs" / "tiny" / "version_0")
    one, two = (load_formation(folder)["shapes2"].profiles[0] for folder in folders)
    assert one.image_digests == two.image_digests
    assert one.protocol == two.protocol
    assert one.encoder_digest != two.encoder_digest


def test_checkpoint_loads_without_the_command_line(finished: Path, run_python: RunPython) -> None:
    program = (
        "from lit_bump import ClassifierModule\n"
        f"module = ClassifierModule.load_from_checkpoint({str(checkpoint(finished))!r})\n"
        "print(module.num_classes, module.network.num_features)"
    )
    result = run_python("-c", program)
    assert result.stdout.split() == ["10", str(ClassifierModule(width=4).network.num_features)]


@pytest.mark.parametrize("command", ["validate", "test", "predict"])
def test_config_saved_by_fit_runs_the_other_commands(command: str, finished: Path, tiny: Path) -> None:
    config, weights_file = str(finished / "config.yaml"), str(checkpoint(finished))
    assert main([command, "--config", config, "--ckpt_path", weights_file]) == 0
    assert [path.name for path in tiny.iterdir()] == ["tiny.yaml"]  # an evaluation leaves no folder of its own


def test_types_are_read_as_meant(tiny: Path) -> None:
    changes = "trainer: {max_steps: '1'}\nrprofile: {protocol: {etas: [1e-3, 1e-2], n_pairs: 2}}\n"
    (tiny / "changes.yaml").write_text(changes, encoding="utf-8")
    assert main(["fit", "--config", "tiny.yaml", "--config", "changes.yaml", "--model.weight_decay=0"]) == 0
    saved = yaml.safe_load((tiny / "runs" / "tiny" / "version_0" / "config.yaml").read_text(encoding="utf-8"))
    assert saved["trainer"]["max_steps"] == 1
    assert saved["rprofile"]["protocol"]["etas"] == [0.001, 0.01]
    assert saved["model"]["init_args"]["weight_decay"] == 0.0


@pytest.mark.filterwarnings("ignore:`precision=bf16` is supported for historical reasons")
def test_whole_numbers_become_floats_and_old_spellings_are_taken(tiny: Path) -> None:
    changes = "data: {class_path: BlurredShapesDataModule, init_args: {sigma: 1}}\ntrainer: {precision: bf16}\n"
    (tiny / "changes.yaml").write_text(changes, encoding="utf-8")
    options = ("--trainer.max_steps=1", "--rprofile.enable=false")
    assert main(["fit", "--config", "tiny.yaml", "--config", "changes.yaml", *options]) == 0
    saved = yaml.safe_load((tiny / "runs" / "tiny" / "version_0" / "config.yaml").read_text(encoding="utf-8"))
    assert saved["data"]["init_args"]["sigma"] == 1.0
    assert type(saved["data"]["init_args"]["sigma"]) is float
    assert saved["trainer"]["precision"] in ("bf16", "bf16-mixed")


def test_hyper_parameters_have_no_placeholder_metric(finished: Path) -> None:
    tags = EventAccumulator(str(finished)).Reload().Tags()["scalars"]
    assert "hp_metric" not in tags
    assert "bump/max_r/shapes2" in tags


# A checkpoint gives weights and progress, never options.


@pytest.mark.filterwarnings("ignore:the checkpoint was trained with (lr=0.1|weight_decay=0.0005), and training goes on")
@pytest.mark.filterwarnings("ignore:The dirpath has changed")
def test_options_given_beside_a_checkpoint_are_those_trained_with(finished: Path, tiny: Path) -> None:
    resumed = ("--ckpt_path", str(checkpoint(finished)), "--rprofile.enable=false", "--run_name=resumed")
    changes = ("--model.lr=0.3", "--model.weight_decay=0.25", "--trainer.max_steps=4")
    assert main(["fit", "--config", "tiny.yaml", *resumed, *changes]) == 0
    folder = tiny / "runs" / "resumed" / "version_0"
    saved = torch.load(checkpoint(folder), weights_only=True)
    (group,), (schedule,) = saved["optimizer_states"][0]["param_groups"], saved["lr_schedulers"]
    assert (saved["hyper_parameters"]["lr"], group["initial_lr"], schedule["base_lrs"]) == (0.3, 0.3, [0.3])
    assert (group["weight_decay"], group["momentum"]) == (0.25, 0.9)
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    assert config["model"]["init_args"]["lr"] == 0.3


@pytest.mark.filterwarnings("ignore:The dirpath has changed")
@pytest.mark.parametrize(("command", "option"), [("fit", "--model.width=8"), ("test", "--model.network=vgg16")])
def test_checkpoint_of_another_network_is_refused_in_one_line(
    command: str, option: str, finished: Path, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(checkpoint(finished))
    assert main([command, "--config", "tiny", "--ckpt_path", path, option, "--rprofile.enable=false"]) == 2
    line = last_line(capsys)
    assert line.startswith("lit_bump: error: the checkpoint of --ckpt_path does not fit this ClassifierModule: ")
    assert "--config" in line


# It finds configs, and never loses the measurement.


@pytest.mark.parametrize("name", ["tiny", "tiny.yaml", "./tiny.yaml"])
def test_bare_name_is_looked_up_in_the_working_folder(name: str, tiny: Path) -> None:
    assert main(["fit", "--config", name, "--trainer.max_steps=1", "--rprofile.enable=false"]) == 0
    assert (tiny / "runs" / "tiny" / "version_0" / "config.yaml").is_file()
    assert not list(tiny.rglob("*.npz"))


def test_later_file_with_callbacks_keeps_the_measurement(tiny: Path) -> None:
    callbacks = "trainer: {callbacks: [{class_path: LearningRateMonitor}]}\n"
    (tiny / "callbacks.yaml").write_text(callbacks, encoding="utf-8")
    assert main(["fit", "--config", "tiny.yaml", "--config=callbacks.yaml", "--run_name", "kept"]) == 0
    assert load_formation(tiny / "runs" / "kept" / "version_0")["shapes2"].steps == (0, 1, 2)


def test_any_module_and_data_module_will_do(tiny: Path) -> None:
    config = "model: {class_path: lightning.pytorch.demos.boring_classes.BoringModel}\n"
    (tiny / "boring.yaml").write_text(config, encoding="utf-8")
    options = ("--trainer.fast_dev_run=true", "--trainer.accelerator=cpu", "--rprofile.enable=false")
    assert main(["fit", "--config", "boring", *options]) == 0


# A run that cannot train says so.


@pytest.mark.filterwarnings("ignore:The dirpath has changed")
@pytest.mark.parametrize("length", [["--trainer.max_steps=2"], ["--trainer.max_steps=-1", "--trainer.max_epochs=1"]])
def test_finished_run_says_that_nothing_is_left(
    length: list[str], finished: Path, tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resumed = ("--ckpt_path", str(checkpoint(finished)), "--rprofile.enable=false")
    assert main(["fit", "--config", "tiny", *resumed, *length]) == 0
    assert caplog.messages[-1] == "nothing left to train: step 2 of 2"
