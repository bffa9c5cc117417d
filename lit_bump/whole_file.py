"""A file that appears whole or not at all, also where an interrupt or a full disk ends the writing.

Needs the standard library alone. Tables, pictures and copies of profiles are written so; profiles do it themselves.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write to, which becomes the file once the block has ended well; else nothing stays.

    Args:
        path: the file; its folder is made where it does not exist, and an older file stays until the new one is whole.

    Yields:
        A path in the same folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_file(Path(folder, "deep", "a.txt")) as partial:
        ...         _ = partial.write_text("all")
        ...     [file.name for file in Path(folder, "deep").iterdir()]
        ['a.txt']

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")  # another process may write the same file
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        with suppress(OSError):  # where even that is not allowed, the first error is the one that tells
            partial.unlink(missing_ok=True)
