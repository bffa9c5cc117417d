"""Measure frozen encoders on sets of images: a grid, on one device or on many, that can go on where it was interrupted.

Paper: figs. 1a, 1b, 3 to 5. Needs encoders and image sets; several processes need Lightning Fabric.
"""

from lit_bump.probing.probe_grid import probe
from lit_bump.probing.results import ProbeResult, is_probe_folder, load_results

__all__ = ["ProbeResult", "is_probe_folder", "load_results", "probe"]
