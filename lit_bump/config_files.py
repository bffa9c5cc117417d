"""Finding configs: a path, or a bare name in the working folder or among the packaged configs.

The packaged configs are ``configs/`` at the root of a checkout and ``lit_bump/configs`` in an installed package.
Standard library only, because ``python -m lit_bump configs`` answers without torch. A file that exists always wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lit_bump.errors import LitBumpError, nearest

SUFFIXES = (".yaml", ".yml", ".json")
CONFIG_OPTIONS = ("--config", "-c")


def folder() -> Path:
    """Return the folder of the packaged configs.

    Returns:
        ``lit_bump/configs`` where the package is installed, ``configs`` beside the package in a checkout.

    """
    package = Path(__file__).resolve().parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def packaged() -> dict[str, Path]:
    """Return the packaged configs by name, quickstarts first.

    Returns:
        Names without suffix, and where the files are.

    """
    paths = sorted(folder().glob("*.yaml"), key=lambda path: (not path.stem.startswith("quickstart"), path.stem))
    return {path.stem: path for path in paths}


def summary(path: Path) -> str:
    """Return the first line of a config's head comment.

    Args:
        path: a YAML file.

    Returns:
        The line without its hash, empty where the file has no head comment.

    """
    with path.open(encoding="utf-8") as file:
        first = file.readline()
    return " ".join(first.lstrip("#").split()) if first.startswith("#") else ""


def find_config(name: str) -> Path:
    """Return the file that a config's name means.

    Args:
        name: a path, or a bare name with or without its suffix.

    Returns:
        The path itself where it exists; else the file of that name in the working folder; else the packaged one.

    Raises:
        LitBumpError: if there is none; the message gives the nearest name.

    """
    written = Path(name)
    spellings = [written] if written.suffix in SUFFIXES else [written, *(Path(name + suffix) for suffix in SUFFIXES)]
    for path in spellings:
        if _is_file(path):
            return path
    beside = written.parent if _is_folder(written.parent) else Path()
    here = [path.name for suffix in SUFFIXES for path in beside.glob(f"[!.]*{suffix}")]
    if written.name != name:
        where = f"config file {name[:200]!r} does not exist"
        raise LitBumpError(f"{where}{nearest(written.name, here)}" if here else where)
    known = packaged()
    stem = written.stem if written.suffix in SUFFIXES else name
    if stem in known:
        return known[stem]
    hint = nearest(stem, [*known, *here])
    raise LitBumpError(f"no config {name[:200]!r} in this folder or among the packaged ones{hint}")


def resolve(arguments: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Replace every config's name on a command line by the file that it means.

    Args:
        arguments: the words after the command.

    Returns:
        The words with paths in place of names, and those paths in order.

    Raises:
        LitBumpError: if a config is missing, empty or cannot be read, or an option for one ends the line.

    """
    words: list[str] = []
    found: list[Path] = []
    rest = iter(arguments)
    for word in rest:
        option, equals, value = word.partition("=")
        if option not in CONFIG_OPTIONS:
            words.append(word)
            continue
        if not equals:
            value = next(rest, "")
        if not value:
            raise LitBumpError(f"{option} needs the name of a config (see python -m lit_bump configs)")
        found.append(find_config(value))
        _check_readable(found[-1])
        words += [option, str(found[-1])]
    return words, found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no system has a file of such a name
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _check_readable(path: Path) -> None:
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise LitBumpError(f"config file {str(path)!r} is no text in UTF-8 ({error.reason})") from error
    except OSError as error:
        raise LitBumpError(f"config file {str(path)!r} cannot be read: {error.strerror or error}") from error
    if all(not line or line.startswith("#") or line in {"---", "..."} for line in lines):
        cure = "write options by name, such as model: and data: (see python -m lit_bump configs)"
        raise LitBumpError(f"config file {str(path)!r} is empty: {cure}")
