"""The measurement: how far an encoder's response departs from its local linear prediction, scale by scale.

Symbols of the paper and their names here, everywhere: x ``image(s)``, Phi ``encoder``, u ``direction(s)``, eta
``eta``/``etas``, D ``displacement``, m ``response``, m-tilde per unit eta^2 ``prediction``, r ``ratio``; axes ``image,
rung, pair, direction, channel, height, width, feature``. Imports torch and NumPy alone: no Lightning, no data sets.
"""

from lit_bump.measure.bump import Bump, describe_bump
from lit_bump.measure.directions import antipodal_directions
from lit_bump.measure.encoder import MethodEncoder, NormalisedEncoder, SubmoduleEncoder, as_encoder
from lit_bump.measure.formation import Formation, load_formation
from lit_bump.measure.ladder import ladder, logarithmic_etas
from lit_bump.measure.measurement import image_digests, measure_parts, measure_profile
from lit_bump.measure.no_trace import no_trace
from lit_bump.measure.paired_difference import PairedDifference, paired_difference
from lit_bump.measure.profile import Profile, Reason
from lit_bump.measure.protocol import Protocol

__all__ = [
    "Bump",
    "Formation",
    "MethodEncoder",
    "NormalisedEncoder",
    "PairedDifference",
    "Profile",
    "Protocol",
    "Reason",
    "SubmoduleEncoder",
    "antipodal_directions",
    "as_encoder",
    "describe_bump",
    "image_digests",
    "ladder",
    "load_formation",
    "logarithmic_etas",
    "measure_parts",
    "measure_profile",
    "no_trace",
    "paired_difference",
]
