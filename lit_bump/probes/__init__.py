"""Probe sets: the named, seeded, hashed, fixed collections of images that are measured.

Paper: A.2 "Protocol". Needs torch, NumPy, Pillow and the image sources; never Lightning.
Images are in raw [0, 1] pixels: the normalisation belongs to the encoder.
"""

from lit_bump.probes.probe_registry import PROBE_SETS, named_probe_set
from lit_bump.probes.probe_set import ProbeSet

__all__ = ["PROBE_SETS", "ProbeSet", "named_probe_set"]
