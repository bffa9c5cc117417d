"""The errors that a user can cure, and the nearest valid name for a wrong one.

Every message is one line that names the value and the cure; the command line prints it alone, without a traceback.
Imports nothing of the project. ``LitBumpError`` is a ``ValueError``, so that callers may catch the usual class.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LitBumpError(ValueError):
    """Signal bad input: the message names the value and the cure in one line."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint with the nearest valid name, or all of them where none is near and they are few.

    Args:
        name: what the user wrote.
        valid: the names that exist.

    Returns:
        Text to append to a message, starting with a space.

    Example:
        >>> nearest("resnet8", ["resnet18", "vgg16"])
        " (did you mean 'resnet18'?)"

    """
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (valid: {', '.join(names[:20])})" if names else " (there are none)"
