"""What several test files share: the repository's root, a fresh interpreter, and a tiny CIFAR-10 image folder.

Nothing here imports torch, so that the tests of the light parts stay light. One thread a process: the tests' networks
are so small that threads cost more than they give, above all where several test runs share a machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.tiny_cli import TINY

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads, here and in subprocesses
ROOT = Path(__file__).resolve().parent.parent
CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Return a function that runs this interpreter in an empty folder, with the checkout importable."""

    def run(*args: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment}
        command = [sys.executable, *args]
        return subprocess.run(
            command, cwd=cwd or tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.fixture(scope="session")
def cifar_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an image folder laid out as CIFAR-10's, with four random images a class and split."""
    folder = tmp_path_factory.mktemp("cifar10")
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for name in CIFAR_CLASSES:
            (folder / split / name).mkdir(parents=True)
            for i in range(4):
                pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"{i:04d}.png")
    return folder


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, made the working folder, that holds tiny.yaml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one run of tiny.yaml, which no test may change."""
    from lit_bump.__main__ import main

    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(TINY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["fit", "--config", "tiny.yaml"]) == 0
    return folder / "runs" / "tiny" / "version_0"
