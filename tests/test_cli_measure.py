"""``measure``: runs x probe sets in one command, errors in one line, and options that come from the function itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from lit_bump.__main__ import main
from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.measure import load_formation
from tests.runs.tiny_saved_run import trained


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a trained run, which no test may change."""
    return trained(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def runs(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, made the working folder, that holds the runs ``a`` and ``b``."""
    for name in "ab":
        shutil.copytree(finished, tmp_path / name / "version_0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the last line on the error stream, after checking that no traceback stands before it."""
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return [line for line in text.splitlines() if line.strip()][-1]


def test_every_run_is_measured_on_every_probe_set(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "a", "b", "--probes", "noise2", "shapes2", "--steps", "first", "and", "last"]) == 0
    for name in "ab":
        formations = load_formation(runs / name / "version_0")
        assert {label: f.steps for label, f in formations.items()} == {
            "noise2": (0, 2),
            "noise2train": (0, 1, 2),
            "shapes2": (0, 2),
        }
    out, err = capsys.readouterr()
    assert re.search(r"^b/version_0 \(resnet18, noise\), run 2 of 2$", out, re.MULTILINE)
    assert len(re.findall(r"│ +2 +│ shapes2 ", out.replace("┃", "│"))) == 2
    assert "b/version_0 shapes2 step 2 (4 of 4)" in err


def test_options_reach_the_measurement(runs: Path) -> None:
    options = ["--steps", "1,2", "--n_pairs", "3", "--name", "x", "--encoder", "network", "--chunk", "4"]
    assert main(["measure", "a", "--probes", "noise2", *options, "--device", "cpu", "--extend", "true"]) == 0
    formation = load_formation("a/version_0")["x-noise2"]
    profile = formation.profiles[0]
    assert (formation.steps, profile.protocol.n_pairs, profile.context["encoder"]) == ((1, 2), 3, "network")
    assert profile.context["chunk"] == 4
    assert profile.etas[:3].tolist() == [0.01, 0.1, 1.0]  # the run's own protocol, but for the pairs


def test_a_preset_takes_the_place_of_the_protocol_of_the_run(runs: Path) -> None:
    options = ["--steps", "last", "--protocol", "paper", "--n_pairs", "2"]
    assert main(["measure", "a", "--probes", "noise1", *options]) == 0
    protocol = load_formation("a/version_0")["noise1"].profiles[0].protocol
    assert (len(protocol.etas), protocol.n_pairs, protocol.estimator) == (17, 2, "paper")


def test_a_broken_run_does_not_cost_the_others(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in Path("a/version_0/checkpoints").glob("*.ckpt"):
        path.write_text("<html>")
    assert main(["measure", "a", "b", "--probes", "noise2", "--steps", "last"]) == 2
    assert "1 of 2 runs could not be measured; " in last_line(capsys)
    assert load_formation("b/version_0")["noise2"].steps == (2,)


def test_steps_whose_checkpoints_are_elsewhere_are_named(runs: Path) -> None:
    Path("a/version_0/checkpoints/step_00000000.ckpt").unlink()  # as after a run that was resumed at step 1
    with pytest.warns(UserWarning, match="has profiles of steps 0, but no checkpoints of them"):
        assert main(["measure", "a", "--probes", "noise2"]) == 0


def test_a_checkpoint_is_measured_alone(runs: Path) -> None:
    assert main(["measure", "a/version_0/checkpoints/step_00000001.ckpt", "--probes", "noise2"]) == 0
    assert load_formation("a/version_0")["noise2"].steps == (1,)


def test_another_protocol_needs_a_word(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["measure", "a", "--probes", "noise2train", "--n_pairs", "3", "--steps", "last"]
    assert main(command) == 2
    assert re.search(r"step_00000000\.npz .* \(n_pairs 2, now 3\); .*--name X .* --overwrite true$", last_line(capsys))
    assert main([*command, "--overwrite", "true"]) == 0
    assert load_formation("a/version_0")["noise2train"].steps == (2,)
    assert len(list(Path("a/version_0/profiles.1/noise2train").iterdir())) == 3


def test_help_is_a_page_with_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["measure", "--help"])
    text = capsys.readouterr().out
    for option in [
        "probes",
        "protocol",
        "n_pairs",
        "steps",
        "data_dir",
        "extend",
        "encoder",
        "name",
        "overwrite",
        "chunk",
        "device",
        "model",
    ]:
        assert re.search(rf"^  --{option} +\w", text, re.MULTILINE), option
    lines = text.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120


WRONG = {
    "no run": ("--probes noise2", r"no run given; write: python -m lit_bump measure RUN --probes NAME"),
    "no probe set": ("a", r"no probe set given; write"),
    "empty probes": ("a --probes", r"--probes: expected at least one argument"),
    "run": ("aa --probes noise2", r"no run 'aa'"),
    "probe set": ("a --probes noise2s", r"no probe set 'noise2s'"),
    "swallowed run": ("--probes noise2 a", r"no run given"),
    "option": ("a --probes noise2 --extnd true", r"no option 'extnd' \(did you mean 'extend'\?\)"),
    "protocol": ("a --probes noise2 --protocol papr", r"got 'papr' \(did you mean 'paper'\?\)"),
    "field": ("a --probes noise2 --protocol.n_pair 3", r"n_pair.*did you mean|no 'n_pair'"),
    "number": ("a --probes noise2 --chunk many", r"chunk: expected int or null, got 'many'"),
    "zero": ("a --probes noise2 --chunk 0", r"chunk is 0; it must be at least 1"),
    "step": ("a b --probes noise2 --steps 0 5", r"no checkpoint of step 5"),
    "steps": ("a --probes noise2 --steps lats", r"steps is 'lats'"),
    "folder": ("a --probes cifar2 --data_dir nowhere", r"no CIFAR-10 in 'nowhere'"),
    "class": ("a --probes noise2 --model lit_bump.Nope", r"class 'lit_bump\.Nope' cannot be imported"),
    "other runs": ("b a --probes noise2 --encoder netwrk", r"b/version_0: .*'netwrk' \(did you mean 'network'\?\)"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_end_in_one_line(words: str, message: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", *words.split()]) == 2
    assert re.search(rf"^lit_bump: error: .*({message})", last_line(capsys))


def test_a_folder_that_may_not_be_written_ends_in_one_line(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied", "profiles")

    monkeypatch.setattr(ProfileFiles, "add", refuse)
    assert main(["measure", "a", "--probes", "noise2", "--steps", "last"]) == 2
    assert last_line(capsys) == "lit_bump: error: PermissionError: [Errno 13] Permission denied: 'profiles'"


def test_interrupt_ends_with_130(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProfileFiles, "add", interrupt)
    assert main(["measure", "a", "--probes", "noise2", "--steps", "last"]) == 130
    assert last_line(capsys) == "lit_bump: interrupted"
