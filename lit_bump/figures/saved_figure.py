"""A figure as files, in the formats that papers and pages take.

Needs Matplotlib, without pyplot. Every file is written whole or not at all; the same figure gives the same bytes, so
that a figure under version control changes only where its data do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from lit_bump.errors import LitBumpError, nearest
from lit_bump.figures.curve_style import PRINT_DPI
from lit_bump.whole_file import whole_file

_UNDATED: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
FORMATS = tuple(_UNDATED)


def save_figure(
    figure: Figure, path_without_suffix: str | os.PathLike[str], formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Write a figure.

    Args:
        figure: any figure.
        path_without_suffix: where to; the folder is made where it does not exist. Older files are replaced.
        formats: some of ``png`` (200 dots an inch), ``svg`` and ``pdf``.

    Returns:
        The files, in the order of the formats.

    Raises:
        LitBumpError: if a format is not one of these; nothing is written then.

    """
    checked_formats(formats)
    base = Path(path_without_suffix)
    paths = [base.with_name(f"{base.name}.{kind}") for kind in dict.fromkeys(formats)]
    # Random ids would make each SVG another one; fonts of type 42 are what printers and journals accept in a PDF.
    with mpl.rc_context({"svg.hashsalt": "lit_bump", "pdf.fonttype": 42}):
        for path, kind in zip(paths, dict.fromkeys(formats), strict=True):
            with whole_file(path) as partial:
                figure.savefig(partial, format=kind, dpi=PRINT_DPI, metadata=_UNDATED[kind])
    return paths


def checked_formats(formats: Sequence[str]) -> None:
    """Refuse a format that figures are not written in.

    Args:
        formats: as a user gave them.

    Raises:
        LitBumpError: with the wrong one and the nearest right one.

    """
    for kind in formats:
        if kind not in FORMATS:
            raise LitBumpError(f"no format {kind!r} for figures{nearest(kind, FORMATS)}")
