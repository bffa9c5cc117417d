"""What README shows works as it stands there, and names only what exists."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from lit_bump import config_files
from tests.callbacks.tiny_run import PlainModule

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        names: dict[str, Any] = {"my_module": PlainModule(), "my_data": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lightning's advice on loaders
            exec(compile(block, "README.md", "exec"), names)
    assert list(tmp_path.rglob("profiles/*/step_00000000.npz"))
    assert (tmp_path / "profile.npz").is_file()


def test_configs_and_pictures_exist() -> None:
    configs = set(re.findall(r"\b(\w+)\.yaml", TEXT)) - {"config"}
    assert configs <= set(config_files.packaged())
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", TEXT):
        assert (ROOT / path).is_file()
