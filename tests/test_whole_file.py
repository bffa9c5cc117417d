"""A file is whole or not there: an interrupt leaves the older one, and nothing beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.whole_file import whole_file
from tests.figures.drawn_profiles import drawn_profile


def interrupted(path: Path, error: BaseException) -> None:
    with whole_file(path) as partial:
        partial.write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_file_leaves_the_older_one_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(error, match="stop"):
        interrupted(path, error("stop"))
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text() == "old"
    with whole_file(path) as partial:
        partial.write_text("new")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text() == "new"


def test_interrupted_copies_and_pictures_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ProfileFiles(tmp_path / "a", ["p"]).add("p", 0, drawn_profile(step=0))
    files = ProfileFiles(tmp_path / "b", ["p"])

    def half(*places: Path, **_: object) -> None:
        places[-1].write_bytes(b"half")
        raise KeyboardInterrupt("stop")

    monkeypatch.setattr(shutil, "copyfile", half)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        files.go_back_to(0, tmp_path / "a")
    monkeypatch.setattr(Image.Image, "save", half)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        files.add_picture("p", "formation.png", np.zeros((2, 2, 3), dtype=np.uint8))
    assert [path for path in (tmp_path / "b").rglob("*") if path.is_file()] == []
