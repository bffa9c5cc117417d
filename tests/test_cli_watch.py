"""The terminal's view: what there is, what to do when there is nothing, and an end without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lit_bump.__main__ import main
from lit_bump.measure.formation import step_file
from tests.figures.drawn_profiles import drawn_profile


def once(folder: Path, *more: str) -> int:
    """Look at a folder once.

    Returns:
        The exit code.

    """
    return main(["watch", str(folder), "--once", "true", *more])


def test_the_growth_of_the_bump_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for step, height in enumerate((0.0, 3.0, 6.0)):
        drawn_profile(height, step=step).save(step_file(tmp_path / "version_1", "shapes8", step))
    assert once(tmp_path) == 0
    said = capfd.readouterr().out
    assert "version_1" in said.replace("\n", "")
    assert "r = 1" in said
    assert [line.split()[1] for line in said.splitlines() if line.strip().startswith(("0 ", "1 ", "2 "))] == [
        "none",
        "bump",
        "bump",
    ]


def test_once_needs_no_value(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path), "--once"]) == 0
    assert "no profiles yet" in capfd.readouterr().out.replace("\n", "")


def test_an_empty_folder_says_what_to_do(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert once(tmp_path) == 0
    assert "fit --config quickstart.yaml" in capfd.readouterr().out


def test_a_profile_that_is_being_written_or_lost_is_passed_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    drawn_profile(3.0).save(step_file(tmp_path, "shapes8", 0))
    step_file(tmp_path, "shapes8", 5).write_bytes(b"half")
    step = drawn_profile(0.0)
    lost = step_file(tmp_path, "shapes8", 7)
    type(step).save(step, lost)
    assert once(tmp_path) == 0
    assert "step 7" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no run given"),
        (["nowhere"], "no folder 'nowhere' to watch"),
        ([".", "--every", "0"], "every is 0"),
        ([".", "--evry", "1"], "evry"),
    ],
)
def test_errors_are_one_line(arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *arguments]) == 2
    assert says in capfd.readouterr().err.splitlines()[-1]


def test_an_unknown_probe_set_gets_the_nearest_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    drawn_profile(3.0).save(step_file(tmp_path, "shapes8", 0))
    assert once(tmp_path, "--probe", "shape8") == 2
    assert "did you mean 'shapes8'" in capfd.readouterr().err


@pytest.mark.slow
def test_an_interrupt_ends_it_quietly_while_new_steps_appear(tmp_path: Path) -> None:
    drawn_profile(0.0).save(step_file(tmp_path, "shapes8", 0))
    command = [sys.executable, "-m", "lit_bump", "watch", str(tmp_path), "--every", "0.2"]
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "100"}
    said: list[str] = []

    def sees(words: str) -> None:
        end = time.monotonic() + 60
        while words not in "".join(said) and time.monotonic() < end:
            time.sleep(0.1)
        assert words in "".join(said)

    heard: Any = {
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    }  # a shell's background jobs ignore it
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes, **heard) as process:
        out, error = process.stdout, process.stderr
        assert out is not None
        assert error is not None
        reader = threading.Thread(target=lambda: said.extend(iter(lambda: out.read(64), "")))
        reader.start()
        sees("step 0")
        drawn_profile(6.0, step=17).save(step_file(tmp_path, "shapes8", 17))
        sees("step 17")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        reader.join()
        assert "Traceback" not in error.read()
