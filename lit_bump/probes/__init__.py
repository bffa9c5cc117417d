"""Probe sets: the named, seeded, hashed, fixed collections of images that are measured.

Paper: A.2 "Protocol". Needs torch, NumPy, Pillow and the image sources; never Lightning.
Images are in raw [0, 1] pixels: the normalisation belongs to the encoder.
"""

from lit_bump.probes.image_set import ImageSet
from lit_bump.probes.image_spec import IMAGE_SETS, image_set
from lit_bump.probes.probe_registry import PROBE_SETS, named_probe_set
from lit_bump.probes.probe_set import ProbeSet

__all__ = ["IMAGE_SETS", "PROBE_SETS", "ImageSet", "ProbeSet", "image_set", "named_probe_set"]
