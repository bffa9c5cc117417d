"""One line from what jsonargparse says about a wrong config.

Its messages list every alternative of a type over many lines, with the useful sentence in the middle. Here the line is
found, the key is written with all its dots, and the nearest valid name is added. Reads text and class signatures only.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Collection, Iterable

from jsonargparse import ArgumentParser

_KEY = re.compile(r'Parser key "([^"]+)"')
_CLASS = re.compile(r"Problem with given class_path '([^']+)'")
_OPTION = re.compile(r"Option '([^']+)' is not accepted|does not accept option '([^']+)'|Key '([^']+)' is not expected")
_UNRECOGNIZED = re.compile(r"unrecognized arguments: --([^\s=]+)")
_IMPORT = re.compile(r"Expected a dot import path string: (.+)")
_EXPECTED = re.compile(r"Expected an? (.+?)(?:\. Got value: (.*))?$", re.MULTILINE)
_GIVEN = re.compile(r"Given value: (.*)")
_REQUIRED = re.compile(r"arguments are required: (.+)")
_REFUSED = re.compile(r"Errors:\n(?!Expected an? )(.+)")
_NOT_A_CLASS = re.compile(r"Not a valid subclass of (\w+)")
_LITERAL = re.compile(r"Literal\[(.+)\]")
_NO_MAPPING = re.compile(r"Unexpected config: ?(.*)", re.DOTALL)
_DOTTED = re.compile(r"[A-Za-z_][\w.]*\.[A-Za-z_]\w*")


def one_line(message: str, known_keys: Collection[str]) -> str:
    """Say in one line what is wrong with a config.

    Args:
        message: what the parser said, of any number of lines.
        known_keys: the dotted keys that the command accepts.

    Returns:
        The key, the problem and the nearest valid name, where there is one.

    """
    lines = [line.strip(" -") for line in message.splitlines() if line.strip()]
    text = "\n".join(lines)
    key = ".".join(dict.fromkeys(_KEY.findall(text)))
    prefix = f"{key}: " if key else ""
    owner = _last(_CLASS, text)
    if match := _NO_MAPPING.match(text):
        return f"a config holds options by name, such as trainer:, not {' '.join(match[1].split())!r}"
    if match := _UNRECOGNIZED.search(text):
        return _unknown_key(match[1], known_keys)
    if match := _OPTION.search(text):
        option = next(group for group in match.groups() if group)
        if owner is None:
            return _unknown_key(option, known_keys)
        return f"{prefix}{_short(owner)} has no argument {option!r}{hint(option, arguments_of(owner))}"
    if match := _REQUIRED.search(text):
        return _missing(match[1], prefix, owner)
    block = _innermost_block(message)
    choices = [value.strip("'\" ") for found in _LITERAL.findall(block) for value in found.split(",")]
    if (match := _IMPORT.search(block)) and not choices:
        return f"{prefix}no class {match[1]!r}{hint(match[1], _subclass_names(block))}"
    if owner is not None and owner in block:
        reason = next((line for line in block.splitlines()[_row(block, owner) + 1 :]), "it cannot be used")
        return f"{prefix}{owner}: {reason}"
    if (match := _NOT_A_CLASS.search(block)) and (given := _last(_GIVEN, block)):
        return f"{prefix}expected class_path and init_args of a {match[1]}, got {given!r}"
    if match := _REFUSED.search(block):
        return f"{prefix}{match[1]}"  # what the constructor of the class said
    return _wrong_value(block, choices, prefix) or " ".join(lines)


def hint(name: str, valid: Iterable[str], *, prefix: str = "") -> str:
    """Return the nearest valid name in brackets, or all names where they are few.

    Args:
        name: what the user wrote.
        valid: the names that exist.
        prefix: what to write before the nearest one.

    Returns:
        Text to append, starting with a space; empty where it would help nobody.

    """
    names = sorted(set(valid))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f" (did you mean {prefix + close[0]!r}?)"
    return f" (valid: {', '.join(names)})" if 0 < len(names) <= 20 else ""


def arguments_of(class_path: str) -> list[str]:
    """Return the names of the arguments that a class accepts in a config.

    Args:
        class_path: its dotted path.

    Returns:
        The names, with those that parents take through ``**kwargs``; empty where the class cannot be imported.

    """
    found = _import(class_path)
    if not isinstance(found, type):
        return []
    keys = ArgumentParser(exit_on_error=False).add_class_arguments(found, "it", fail_untyped=False)
    return sorted({key.split(".")[1] for key in keys if "." in key})


def subclass_names(base: type) -> list[str]:
    """Return the names of the loaded classes that a config may give where a class is asked for.

    Args:
        base: the class asked for.

    Returns:
        Names of its subclasses, at any depth, without private ones and mixins.

    """
    names: set[str] = set()
    waiting = [base]
    while waiting:
        subclasses: list[type] = type.__subclasses__(waiting.pop())
        names.update(subclass.__name__ for subclass in subclasses)
        waiting += subclasses
    return sorted(name for name in names if not name.startswith("_") and not name.endswith("Mixin"))


def _unknown_key(key: str, known_keys: Collection[str]) -> str:
    sections = {known.split(".")[0] for known in known_keys} - {"help", "print_config"}
    section = key.split(".")[0]
    if section not in sections:
        return f"no option {section!r}{hint(section, sections)}"
    parent, _, name = key.rpartition(".")
    beside = [known.rpartition(".")[2] for known in known_keys if known.rpartition(".")[0] == parent]
    return f"no option {key!r}{hint(name, beside, prefix=f'{parent}.')}"


def _missing(names: str, prefix: str, owner: str | None) -> str:
    if prefix or owner:
        return f"{prefix}{_short(owner or '')} needs {names}"
    keys = ", ".join(name.strip().partition(".")[2] or name.strip() for name in names.split(","))
    return f"{keys} not given; name a config, such as --config quickstart.yaml (see python -m lit_bump configs)"


def _wrong_value(block: str, choices: list[str], prefix: str) -> str:
    expected = [found for found in _EXPECTED.findall(block) if not found[0].startswith(("dot import path", "path but"))]
    if not expected:
        return ""
    given = _last(_GIVEN, block) or next((value for _, value in expected if value), "")
    kinds = list(dict.fromkeys(_readable(kind) for kind, _ in expected))
    return f"{prefix}expected {' or '.join(kinds)}, got {given!r}{_closest(given, choices)}"


def _closest(given: str, choices: list[str]) -> str:
    close = difflib.get_close_matches(given, choices, n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _readable(kind: str) -> str:
    if match := _LITERAL.search(kind):
        return f"one of {match[1]}"
    name = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", kind)
    return "null" if name == "NoneType" else re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", name)


def _subclass_names(block: str) -> list[str]:
    subtypes = next((line for line in block.splitlines() if line.startswith("Subtypes:")), "")
    bases: list[type] = [found for path in _DOTTED.findall(subtypes) if isinstance(found := _import(path), type)]
    return sorted({name for base in bases for name in subclass_names(base)}) or [base.__name__ for base in bases]


def _import(path: str) -> object:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return None


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found: list[str] = pattern.findall(text)
    return found[-1] if found else None


def _row(block: str, owner: str) -> int:
    return next(i for i, line in enumerate(block.splitlines()) if owner in line)


def _innermost_block(message: str) -> str:
    # The lines of the last key, which are indented more than its own; the alternatives of outer unions come after them.
    raw = [line for line in message.splitlines() if line.strip()]
    start = max((i for i, line in enumerate(raw) if _KEY.search(line)), default=0)
    lines = raw[start : start + 1]
    for line in raw[start + 1 :]:
        if start and len(line) - len(line.lstrip()) <= len(raw[start]) - len(raw[start].lstrip()):
            break
        lines.append(line)
    return "\n".join(line.strip(" -") for line in lines)


def _short(class_path: str) -> str:
    return class_path.rpartition(".")[2]
