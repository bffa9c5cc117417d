"""The package as its users get it: light to import, complete in the wheel, and never imported through the links.

The wheel is built as it is published, through the sdist, and used from another folder.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import lit_bump
from tests.conftest import RunPython

HEAVY = ("torch", "lightning", "torchvision", "matplotlib", "timm", "numpy")


def loaded_after(statement: str, names: tuple[str, ...]) -> str:
    """Return a program that runs a statement and prints which of the modules it loaded."""
    return f"import sys\n{statement}\nprint(sorted(set({names!r}) & set(sys.modules)))"


def test_importing_the_package_loads_nothing_heavy(run_python: RunPython) -> None:
    result = run_python("-c", loaded_after("import lit_bump; dir(lit_bump)", HEAVY))
    assert (result.stdout.strip(), result.stderr) == ("[]", "")


def test_importing_measure_loads_no_lightning(run_python: RunPython) -> None:
    names = ("lightning", "pytorch_lightning", "torchvision", "matplotlib", "timm", "torchmetrics")
    result = run_python("-c", loaded_after("import lit_bump.measure", names))
    assert (result.stdout.strip(), result.stderr) == ("[]", "")


def test_public_names_are_listed_and_load() -> None:
    listed = dir(lit_bump)
    for name in lit_bump.__all__:
        assert name in listed
        value = getattr(lit_bump, name)
        assert name == "__version__" or getattr(value, "__name__", None) == name


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(lit_bump.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {name: f"lit_bump.{part}" for part, names in lit_bump._PUBLIC.items() for name in names}


def test_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Profil'.*did you mean 'Profile'"):
        lit_bump.Profil  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("link", ["callbacks", "datamodules"])
def test_importing_through_a_link_says_what_to_import(link: str, run_python: RunPython, repository: Path) -> None:
    result = run_python("-c", f"import {link}", cwd=repository)
    assert result.returncode == 1
    assert f"ImportError: import lit_bump.{link} instead" in result.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(root)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


@pytest.mark.wheel
def test_sdist_and_wheel_hold_every_file(built: Path, repository: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    (wheel,) = built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    sources = {str(p.relative_to(repository)) for p in (repository / "lit_bump").rglob("*.py")} | {"lit_bump/py.typed"}
    configs = {p.name for p in (repository / "configs").glob("*.yaml")}
    assert sources - in_sdist == set()
    assert {f"configs/{name}" for name in configs} - in_sdist == set()
    assert sources - in_wheel == set()
    assert {f"lit_bump/configs/{name}" for name in configs} - in_wheel == set()
    assert not [name for name in in_wheel if name.startswith(("tests/", "callbacks", "datamodules"))]


@pytest.mark.wheel
def test_wheel_works_from_another_folder(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    away = tmp_path / "away"
    away.mkdir()

    def run(*args: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(site)}
        done = subprocess.run(
            [sys.executable, *args], cwd=away, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    where = "import lit_bump, lit_bump.callbacks, lit_bump.datamodules; print(lit_bump.__file__, lit_bump.__version__)"
    path, version = run("-c", where).split()
    assert Path(path).is_relative_to(site)
    assert version[0].isdigit()
    assert "quickstart" in run("-m", "lit_bump", "configs")
    assert "class_path" in run("-m", "lit_bump", "configs", "quickstart")
