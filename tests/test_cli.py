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

from lit_bump import ClassifierModule, load_formation
from lit_bump.__main__ import main
from lit_bump.cli_help import COMMANDS
from tests.conftest import RunPython

TINY = """\
model: {class_path: ClassifierModule, init_args: {width: 4, lr: 1e-1}}
data: {class_path: ShapesDataModule, init_args: {n_train: 8, n_test: 8, batch_size: 4}}
rprofile: {probes: [shapes2], protocol: {n_pairs: 2, etas: [0.01, 0.1, 1.0]}, schedule: {per_decade: 1}, figures: false}
trainer:
  max_steps: 2
  accelerator: cpu
  log_every_n_steps: 1
  enable_progress_bar: false
  enable_model_summary: false
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, made the working folder, that holds tiny.yaml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one run of tiny.yaml, which no test may change."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(TINY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["fit", "--config", "tiny.yaml"]) == 0
    return folder / "runs" / "tiny" / "version_0"


def checkpoint(folder: Path) -> Path:
    """Return the last checkpoint of a run."""
    (path,) = folder.glob("checkpoints/epoch*.ckpt")
    return path


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the last line on the error stream, after checking that no traceback stands before it."""
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return [line for line in text.splitlines() if line.strip()][-1]


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


# It ends errors in one line.

WRONG = {
    "misspelt command": (["fitt"], r"no command 'fitt' \(did you mean 'fit'\?\)"),
    "no command": ([], r"no command given; choose one of fit, validate"),
    "option before the command": (["--config", "tiny", "fit"], r"--config comes before the command"),
    "no config": (["fit"], r"model not given; name a config"),
    "no name": (["fit", "--config"], r"--config needs the name of a config"),
    "misspelt bare name": (["fit", "--config", "quickstrt.yaml"], r"'quickstrt.yaml'.*did you mean 'quickstart'"),
    "missing file": (["fit", "--config", "./tinny.yaml"], r"'./tinny.yaml' does not exist \(did you mean 'tiny.yaml'"),
    "argument of a listing": (["probes", "x"], r"probes takes no argument 'x'"),
}
WRONG_OPTION = {
    "class": ("--model=ClassifierModul", r"model: no class 'ClassifierModul' \(did you mean 'ClassifierModule'\?\)"),
    "key": ("--trainer.max_step=3", r"no option 'trainer.max_step' \(did you mean 'trainer.max_steps'\?\)"),
    "section": ("--trainr.max_steps=3", r"no option 'trainr' \(did you mean 'trainer'\?\)"),
    "argument": ("--model.widht=3", r"model: ClassifierModule has no argument 'widht' \(did you mean 'width'\?\)"),
    "type": ("--trainer.max_steps=many", r"trainer.max_steps: expected int, got 'many'"),
    "nested type": ("--model.width=many", r"model.width: expected int or null, got 'many'"),
    "choice": ("--trainer.precision=bf61", r"trainer.precision: expected .*got 'bf61' \(did you mean 'bf16'\?\)"),
    "network": ("--model.network=resnet8", r"no network 'resnet8' \(did you mean 'resnet18'\?\)"),
    "value": ("--model.lr=-1", r"lr=-1.0"),
    "probe set": ("--rprofile.probes=[shaps2]", r"'shaps2'"),
    "protocol": ("--rprofile.protocol=papr", r"rprofile.protocol: expected .*got 'papr' \(did you mean 'paper'\?\)"),
    "pairs": ("--rprofile.protocol={n_pairs: many}", r"n_pairs.* 'many'"),
    "checkpoint": ("--ckpt_path=none.ckpt", r"none.ckpt"),
    "too few classes": ("--model.num_classes=5", r"num_classes=5, but ShapesDataModule has 10 classes"),
    "seed": ("--seed_everything=-1", r"seed_everything: -1"),
    "file as root": ("--trainer.default_root_dir=tiny.yaml", r"NotADirectoryError: .*tiny.yaml"),
    "folder as checkpoint": ("--ckpt_path=.", r"IsADirectoryError"),
    "no batches": ("--trainer.limit_train_batches=0", r"trainer.limit_train_batches=0 leaves nothing to train"),
    "no steps": ("--trainer.max_steps=0", r"trainer.max_steps=0 leaves nothing to train"),
    "short data": ("--data={batch_size: 9, drop_last: true}", r"batch_size=9 leaves no batch of the 8 training images"),
    "accelerator": ("--trainer.accelerator=gpuu", r"accelerator='gpuu'"),
}
WRONG_YAML = {
    "class": ("model: {class_path: ClassifierModul}", r"no class 'ClassifierModul' \(did you mean 'ClassifierModule'"),
    "module": ("data: {class_path: no_such.Data}", r"data: no_such.Data: No module named 'no_such'"),
    "argument": ("rprofile: {probe: [shapes2]}", r"no option 'rprofile.probe' \(did you mean 'rprofile.probes'\?\)"),
    "schedule": ("rprofile: {schedule: {per_decades: 3}}", r"LogSteps has no argument 'per_decades'.*'per_decade'"),
    "protocol": ("rprofile: {protocol: {n_pair: 3}}", r"no 'n_pair' \(did you mean 'n_pairs'\?\)"),
    "callback": (
        "trainer: {callbacks: [{class_path: EarlyStoping}]}",
        r"'EarlyStoping' \(did you mean 'EarlyStopping'",
    ),
    "callback's argument": (
        "trainer: {callbacks: [{class_path: EarlyStopping, init_args: {monitr: x}}]}",
        r"trainer.callbacks: EarlyStopping has no argument 'monitr' \(did you mean 'monitor'\?\)",
    ),
    "callback's type": (
        "trainer: {callbacks: [{class_path: EarlyStopping, init_args: {monitor: x, patience: many}}]}",
        r"trainer.callbacks.patience: expected int, got 'many'",
    ),
    "section": ("rprofile: 3", r"rprofile: expected options by name, got 3"),
    "no class": ("data: 3", r"data: expected class_path and init_args of a LightningDataModule, got '3'"),
    "syntax": ("model: [", r"line 2"),
    "no mapping": ("just text", r"a config holds options by name, such as trainer:, not 'just text'"),
    "list": ("- trainer", r"a config holds options by name"),
    "empty": ("", r"config file 'wrong.yaml' is empty: write options by name"),
    "comments alone": ("# model:\n---\n", r"config file 'wrong.yaml' is empty"),
}


@pytest.mark.parametrize(("arguments", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_command_line_ends_in_one_line(
    arguments: list[str], expected: str, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert re.search(rf"^lit_bump: error: .*{expected}", last_line(capsys))


@pytest.mark.parametrize(("option", "expected"), WRONG_OPTION.values(), ids=WRONG_OPTION)
def test_wrong_option_ends_in_one_line(
    option: str, expected: str, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "--config", "tiny", option]) == 2
    assert re.search(rf"^lit_bump: error: .*{expected}", last_line(capsys))


@pytest.mark.parametrize(("text", "expected"), WRONG_YAML.values(), ids=WRONG_YAML)
def test_wrong_config_ends_in_one_line(
    text: str, expected: str, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny / "wrong.yaml").write_text(text, encoding="utf-8")
    assert main(["fit", "--config", "tiny", "--config", "wrong"]) == 2
    assert re.search(rf"^lit_bump: error: .*{expected}", last_line(capsys))


@pytest.mark.parametrize("option", ["--config", "--trainer", "--model"])
def test_binary_config_ends_in_one_line(option: str, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tiny / "binary.yaml").write_bytes(bytes(range(128, 256)))
    assert main(["fit", "--config", "tiny", option, "binary.yaml"]) == 2
    assert re.search(r"^lit_bump: error: .*(no text in UTF-8|'utf-8' codec)", last_line(capsys))


def test_config_that_may_not_be_read_ends_in_one_line(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, **options: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    assert main(["fit", "--config", "tiny"]) == 2
    assert last_line(capsys) == "lit_bump: error: config file 'tiny.yaml' cannot be read: Permission denied"


@pytest.mark.parametrize("kind", ["junk", "empty", "truncated", "tensor", "weights alone"])
def test_file_that_is_no_checkpoint_ends_in_one_line(
    kind: str, finished: Path, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tiny / "wrong.ckpt"
    if kind in {"tensor", "weights alone"}:
        torch.save(torch.zeros(2) if kind == "tensor" else {"weight": torch.zeros(2)}, path)
    else:
        whole = checkpoint(finished).read_bytes()
        path.write_bytes({"junk": b"junk junk", "empty": b"", "truncated": whole[: len(whole) // 2]}[kind])
    assert main(["test", "--config", "tiny", "--ckpt_path", "wrong.ckpt"]) == 2
    assert re.search(r"^lit_bump: error: ckpt_path 'wrong.ckpt' (cannot be read|is no checkpoint)", last_line(capsys))


def test_checkpoint_with_code_is_not_run(finished: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(torch.load(checkpoint(finished), weights_only=True) | {"code": time.sleep}, tiny / "code.ckpt")
    assert main(["test", "--config", "tiny", "--ckpt_path", "code.ckpt"]) == 2
    assert re.search(r"^lit_bump: error: ckpt_path 'code.ckpt' .*--weights_only false", last_line(capsys))
    assert main(["test", "--config", "tiny", "--ckpt_path", "code.ckpt", "--weights_only=false"]) == 0


@pytest.mark.parametrize("error", ["RuntimeError", "TypeError", "ValueError", "KeyError"])
def test_bug_in_a_module_keeps_its_traceback(error: str, tiny: Path) -> None:
    module = "from lit_bump import ClassifierModule\nclass Wrong(ClassifierModule):\n"
    module += f"    def training_step(self, batch, batch_idx):\n        raise {error}('a bug')\n"
    name = f"wrong_module_{error.lower()}"
    (tiny / f"{name}.py").write_text(module, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tiny))
        with pytest.raises(Exception, match="a bug") as caught:
            main(["fit", "--config", "tiny", f"--model={name}.Wrong", "--rprofile.enable=false"])
    assert type(caught.value).__name__ == error


def test_traceback_on_request(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIT_BUMP_TRACEBACK", "1")
    with pytest.raises(ValueError, match="no command 'fitt'"):
        main(["fitt"])


def test_the_process_exits_with_the_code_and_the_line(run_python: RunPython) -> None:
    result = run_python("-m", "lit_bump", "fit", "--config", "quickstrt")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("lit_bump: error: no config 'quickstrt'")


def test_interrupt_ends_with_130(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = "from lit_bump import ClassifierModule\nclass Interrupted(ClassifierModule):\n"
    module += "    def training_step(self, batch, batch_idx):\n        raise KeyboardInterrupt\n"
    (tiny / "interrupted_module.py").write_text(module, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tiny))
        assert main(["fit", "--config", "tiny", "--model=interrupted_module.Interrupted"]) == 130
    assert last_line(capsys) == "lit_bump: interrupted"


def test_termination_is_no_success(tiny: Path) -> None:
    module = "import os, signal\nfrom lit_bump import ClassifierModule\nclass Terminated(ClassifierModule):\n"
    module += "    def on_train_batch_start(self, batch, batch_idx):\n        os.kill(os.getpid(), signal.SIGTERM)\n"
    (tiny / "terminated_module.py").write_text(module, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tiny))
        with pytest.raises(SystemExit, match="143"):
            main(["fit", "--config", "tiny", "--model=terminated_module.Terminated", "--rprofile.enable=false"])
