"""What the controlled estimator's answer must not depend on: chunk, company, low precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.coverage import low_precision
from lit_bump.measure import Profile, Protocol, Reason, measure_profile
from tests.measure.tiny_encoders import NETS, random_images, seeded

PROTOCOL = Protocol(
    etas=(0.1, 1.0, 6.0), estimator="controlled", target_se=0.03, n_pairs=128, n_sketch=4, precision="float32"
)


class Amplified(nn.Module):
    """A net that leaves its plateau within the ladder."""

    def __init__(self) -> None:
        super().__init__()
        self.net = NETS["gelu"]()

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        features: Tensor = self.net(4 * images)
        return features


@pytest.mark.parametrize("n_sketch", [0, 4, 32])
def test_controlled_ratio_does_not_depend_on_chunk(n_sketch: int) -> None:
    net, images = seeded(Amplified), random_images(2)
    protocol = replace(PROTOCOL, n_sketch=n_sketch, n_pairs=48)
    whole = measure_profile(net, images, protocol)
    assert whole.n_directions.max() > 2 * protocol.n_pilot
    for chunk in (1, 64):
        other = measure_profile(net, images, protocol, chunk=chunk)
        np.testing.assert_array_equal(other.n_directions, whole.n_directions)
        np.testing.assert_allclose(other.ratio, whole.ratio, rtol=1e-4)
        np.testing.assert_allclose(other.standard_error, whole.standard_error, rtol=1e-3, atol=1e-5)


def test_controlled_ratio_does_not_depend_on_company() -> None:
    net, images = seeded(Amplified), random_images(4)
    whole = measure_profile(net, images, PROTOCOL)
    parts = [
        measure_profile(net, images[start:stop], PROTOCOL, first_image=start)
        for start, stop in ((0, 1), (1, 2), (2, 4))
    ]
    joined = Profile.concatenate(parts)
    np.testing.assert_array_equal(joined.n_directions, whole.n_directions)
    np.testing.assert_allclose(joined.ratio, whole.ratio, rtol=1e-4)
    np.testing.assert_allclose(joined.prediction, whole.prediction, rtol=1e-5)


def test_low_precision_agrees_with_full_within_the_stated_errors() -> None:
    net, images = seeded(Amplified), random_images(4)
    with low_precision(True):
        low = measure_profile(net, images, replace(PROTOCOL, precision="auto"))
    full = measure_profile(net, images, PROTOCOL)
    assert (low.n_coarse > 0).any()
    assert (low.coarse_dtype, full.coarse_dtype) == ("bfloat16", "")
    assert (full.n_coarse == 0).all()
    both = np.hypot(low.standard_error, full.standard_error)
    assert (np.abs(low.ratio - full.ratio) < 3 * both + 1e-4).all()


def test_two_controlled_measurements_are_bit_equal() -> None:
    net, images = seeded(Amplified), random_images(2)
    first, second = (measure_profile(net, images, PROTOCOL, chunk=48) for _ in range(2))
    for name in ("ratio", "response", "prediction", "standard_error", "noise", "n_directions"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_a_smaller_target_has_a_smaller_error_and_takes_more_pairs() -> None:
    net, images = seeded(Amplified), random_images(2)
    rough, fine = (measure_profile(net, images, replace(PROTOCOL, target_se=t, n_pairs=2048)) for t in (0.1, 0.02))
    assert (fine.n_directions >= rough.n_directions).all()
    assert (fine.standard_error <= 0.021 * fine.ratio).all()
    assert (rough.standard_error <= 0.1 * rough.ratio).all()


def test_features_that_overflow_beyond_the_pilot_have_their_reason() -> None:
    """A ratio is never NaN without a reason, also where the pilot was finite."""
    calls: list[int] = []

    def late(images: Tensor) -> Tensor:
        features = images.flatten(1).square() * (1 + 5 * images.flatten(1)[:, :1])
        if images.dtype == torch.float32 and len(images) > 1 and not torch.equal(images[0], images[-1]):
            calls.append(len(images))
            if len(calls) > 20:
                features = features + torch.inf
        return features

    protocol = replace(Protocol.accurate((3, 4, 4), n_pairs=64), etas=(0.5, 2.0, 6.0), precision="float32")
    profile = measure_profile(late, random_images(1, (3, 4, 4)), protocol, chunk=8, progress=False)
    assert (np.isfinite(profile.ratio) == (profile.reason == Reason.KEPT)).all()
    assert (profile.reason == Reason.NOT_FINITE).any()


def test_a_ratio_of_a_few_pairs_is_positive() -> None:
    def saturating(images: Tensor) -> Tensor:
        return torch.tanh(50 * images.flatten(1)[:, :2])

    for n_pairs in (1, 2, 3, 5):
        for seed in range(5):
            protocol = replace(Protocol.quick((3, 4, 4), n_pairs=n_pairs, seed=seed), etas=(1.0, 3.0, 30.0))
            ratio = measure_profile(saturating, random_images(1, (3, 4, 4)) * 0.02, protocol, progress=False).ratio
            assert (ratio[np.isfinite(ratio)] > 0).all()
