"""Measure frozen encoders on sets of images: a grid, on one device or on many, that can go on where it was interrupted.

Paper: figs. 1a, 1b, 3 to 5. Needs encoders, image sets and Lightning Fabric; reading results needs none of them, so the
names of the grid load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lit_bump.probing.results import ProbeResult, is_probe_folder, load_results

if TYPE_CHECKING:
    from lit_bump.probing.probe_grid import IncompleteProbeError, probe

__all__ = ["IncompleteProbeError", "ProbeResult", "is_probe_folder", "load_results", "probe"]


def __getattr__(name: str) -> Any:
    """Load a name of the grid.

    Args:
        name: what is asked for.

    Returns:
        The function or class.

    Raises:
        AttributeError: if there is no such name.

    """
    if name in ("IncompleteProbeError", "probe"):
        from lit_bump.probing import probe_grid

        return getattr(probe_grid, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
