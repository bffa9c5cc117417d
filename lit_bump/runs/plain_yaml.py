"""YAML of unknown origin as plain values: no class is made, and a few lines cannot stand for a billion values.

Not in the paper. Needs PyYAML. Aliases are followed, as a config may give one value twice, but what they stand for is
counted first: lists of lists of aliases grow tenfold a line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lit_bump.errors import LitBumpError

_MOST_BYTES = 2**20  # of a file; a config has a few thousand
_MOST_VALUES = 100_000  # once every alias is written out


def plain_yaml(path: Path) -> Any:
    """Return what a file of YAML holds.

    Args:
        path: the file.

    Returns:
        Plain values; None for an empty file.

    Raises:
        LitBumpError: if there is no such file, or it is no YAML of plain values, too large, or endless by its aliases.

    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LitBumpError(f"it has more than {_MOST_BYTES} bytes")
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _n_values(node, {}) > _MOST_VALUES:
                raise LitBumpError(f"its aliases stand for more than {_MOST_VALUES} values")
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except Exception as error:  # a tag such as !!int makes the constructor raise anything
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise LitBumpError(f"{path} cannot be read: {reason}") from error


def _n_values(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values that a node stands for.

    Raises:
        LitBumpError: if it holds itself.

    """
    if id(node) not in known:
        known[id(node)] = 0  # until it is counted
        held = node.value if isinstance(node, (yaml.SequenceNode, yaml.MappingNode)) else []
        known[id(node)] = 1 + sum(
            _n_values(one, known) for entry in held for one in (entry if isinstance(entry, tuple) else (entry,))
        )
    elif known[id(node)] == 0:
        raise LitBumpError("one of its values holds itself")
    return known[id(node)]
