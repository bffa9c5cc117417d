"""A figure as files: every format, whole or not at all, and the same bytes for the same figure."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from PIL import Image

from lit_bump import LitBumpError
from lit_bump.figures import save_figure


@pytest.fixture
def figure() -> Figure:
    """Return a figure of 3 x 2 inches."""
    figure = Figure((3, 2))
    figure.subplots().plot([1, 2], [1, 2], marker="o")
    return figure


def test_every_format_is_what_it_says(figure: Figure, tmp_path: Path) -> None:
    paths = save_figure(figure, tmp_path / "deep" / "eps_0.5", ("png", "svg", "pdf"))
    assert [path.name for path in paths] == ["eps_0.5.png", "eps_0.5.svg", "eps_0.5.pdf"]
    with Image.open(paths[0]) as picture:
        assert picture.size == (600, 400)  # 200 dots an inch
    assert "<svg" in paths[1].read_text(encoding="utf-8")
    assert paths[2].read_bytes().startswith(b"%PDF")
    assert {path.name for path in paths[0].parent.iterdir()} == {path.name for path in paths}


def test_the_same_figure_gives_the_same_bytes(figure: Figure, tmp_path: Path) -> None:
    formats = ("png", "svg", "pdf")
    once, again = (save_figure(figure, tmp_path / name, formats) for name in ("a", "b"))
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_a_wrong_format_is_named_and_nothing_is_written(figure: Figure, tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"no format 'pgn' for figures \(did you mean 'png'\?\)"):
        save_figure(figure, tmp_path / "a", ("png", "pgn"))
    assert not list(tmp_path.iterdir())


def test_an_interrupt_leaves_the_older_file(figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_figure: Figure, path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt("stop")

    (tmp_path / "a.png").write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        save_figure(figure, tmp_path / "a")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.png", b"old")]


def test_saving_leaves_rc_parameters_alone(figure: Figure, tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    save_figure(figure, tmp_path / "a", ("svg",))
    assert dict(mpl.rcParams) == before
