"""Whatever a user gets wrong ends in one line that names it and the cure; a bug keeps its traceback."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import torch

from lit_bump import load_formation
from lit_bump.__main__ import main
from tests.conftest import RunPython
from tests.tiny_cli import checkpoint, last_line

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
    folder = tiny / "runs" / "tiny" / "version_0"
    assert (folder / "config.yaml").is_file()
    assert load_formation(folder)["shapes2"].steps == (0,)


def test_termination_is_no_success(tiny: Path) -> None:
    module = "import os, signal\nfrom lit_bump import ClassifierModule\nclass Terminated(ClassifierModule):\n"
    module += "    def on_train_batch_start(self, batch, batch_idx):\n        os.kill(os.getpid(), signal.SIGTERM)\n"
    (tiny / "terminated_module.py").write_text(module, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tiny))
        with pytest.raises(SystemExit, match="143"):
            main(["fit", "--config", "tiny", "--model=terminated_module.Terminated", "--rprofile.enable=false"])
