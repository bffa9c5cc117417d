"""Classes that a run's config names, imported and built as Lightning's command line built them.

Needs Lightning's command line, which knows classes as arguments of classes.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from lightning.pytorch.cli import instantiate_module
from lightning.pytorch.utilities.seed import isolate_rng

from lit_bump.errors import LitBumpError

Built = TypeVar("Built")
# What Lightning 2.6 does to jsonargparse 4.53.
_DEPRECATED_BY_OTHERS = (r"\s*By default only one JsonargparseDeprecationWarning", r"\s*.+ was deprecated in v4\.\d+\.")


def imported_class(class_path: str, base: type[Built]) -> type[Built]:
    """Return the class of a dotted path.

    Args:
        class_path: such as ``lit_bump.ClassifierModule``.
        base: the class that it must extend.

    Returns:
        The class.

    Raises:
        LitBumpError: if it cannot be imported, or is another kind of class.

    Example:
        >>> from lit_bump.errors import LitBumpError
        >>> imported_class("lit_bump.errors.LitBumpError", ValueError) is LitBumpError
        True

    """
    module, _, name = class_path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module or "lit_bump"), name)
    except (ImportError, AttributeError) as error:
        raise LitBumpError(f"class {class_path!r} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise LitBumpError(f"{class_path!r} is no {base.__name__}")
    return found


def built(section: dict[str, Any], base: type[Built]) -> Built:
    """Return the object that a section of a config describes.

    Args:
        section: ``class_path`` and ``init_args``.
        base: the class that it must extend.

    Returns:
        The object. Global random streams are as they were.

    Raises:
        LitBumpError: if the class is unknown or refuses its arguments.

    """
    class_path, arguments = str(section.get("class_path", "")), section.get("init_args") or {}
    found = imported_class(class_path, base)
    try:
        with as_built():
            made: Built = instantiate_module(found, dict(arguments))
    except Exception as error:  # whatever a constructor raises
        raise LitBumpError(f"{found.__name__} cannot be built as in the run's config: {described(error)}") from error
    return made


@contextmanager
def as_built() -> Iterator[None]:
    """Let something be built inside: no warnings of what Lightning's command line uses, no draw from global streams."""
    with warnings.catch_warnings(), isolate_rng(include_cuda=False):
        for message in _DEPRECATED_BY_OTHERS:
            warnings.filterwarnings("ignore", message=message)
        yield


def described(error: Exception) -> str:
    """Return an error on one line of bearable length.

    Args:
        error: any.

    Returns:
        Its class, where it is not ours, and its message.

    """
    text = " ".join(str(error).split())
    text = text if isinstance(error, LitBumpError) else f"{type(error).__name__}: {text}"
    return text if len(text) <= 240 else f"{text[:240]} ..."
