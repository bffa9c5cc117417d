"""Frozen encoders: torchvision, timm, published checkpoints, one's own, each by a spec of one line.

Paper: A.2 "Encoders". Every encoder holds its normalisation, says what its features are, how images are prepared, and
proves that its weights were loaded. Needs torch; the libraries of models load on first use.
"""

from lit_bump.encoders.encoder_spec import ENCODERS, EncoderSpec
from lit_bump.encoders.frozen_image_encoder import Encoder
from lit_bump.encoders.load_encoder import load_encoder, load_encoders
from lit_bump.encoders.preprocessing import Preprocessing
from lit_bump.encoders.weight_file import read_weights
from lit_bump.encoders.weight_match import Match, load_matched

__all__ = [
    "ENCODERS",
    "Encoder",
    "EncoderSpec",
    "Match",
    "Preprocessing",
    "load_encoder",
    "load_encoders",
    "load_matched",
    "read_weights",
]
