"""A trained run, made once, and a copy of it that a test may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs.tiny_saved_run import trained


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a trained run, which no test may change."""
    return trained(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def run_folder(finished_run: Path, tmp_path: Path) -> Path:
    """Return the folder of a copy."""
    return Path(shutil.copytree(finished_run, tmp_path / "tiny" / "version_0"))
