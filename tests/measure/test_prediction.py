"""The prediction: products over the first directions estimate the exact trace, tr G / d."""

from __future__ import annotations

import numpy as np

from lit_bump.measure import Protocol, measure_profile
from tests.measure.tiny_encoders import NETS, random_images, seeded
from tests.reference import trace_prediction


def test_prediction_estimates_the_exact_trace() -> None:
    net = seeded(NETS["gelu"])
    images = random_images(1)
    protocol = Protocol(etas=(0.1,), n_pairs=400, n_jvp=400, estimator="matched", precision="float64")
    profile = measure_profile(net, images, protocol)
    exact = trace_prediction(seeded(NETS["gelu"]).eval().double(), images[0])
    error = float(profile.prediction[0]) / np.sqrt(400)  # a relative spread below 1
    assert abs(float(profile.prediction[0]) - exact) < 4 * error
