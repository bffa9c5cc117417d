"""The protocol: plain, frozen, hashable, and it refuses what cannot be measured."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from lit_bump.errors import LitBumpError
from lit_bump.measure import Protocol

GOOD: dict[str, Any] = {"etas": (0.1, 1.0), "n_pairs": 8, "n_jvp": 4}

BAD: list[tuple[dict[str, Any], str]] = [
    ({"n_pairs": 0}, "n_pairs is 0; it must be a whole number, at least 1"),
    ({"n_pairs": -3}, "n_pairs is -3"),
    ({"n_jvp": 0}, "n_jvp is 0"),
    ({"n_noise": 0}, "n_noise is 0"),
    ({"n_jvp": 9}, "n_jvp is 9; it cannot exceed n_pairs, 8"),
    ({"etas": ()}, r"etas are \(\); give at least one"),
    ({"etas": (-0.1, 1.0)}, "each positive and finite"),
    ({"etas": (0.0, 1.0)}, "each positive and finite"),
    ({"etas": (0.1, float("nan"))}, "each positive and finite"),
    ({"etas": (0.1, float("inf"))}, "each positive and finite"),
    ({"etas": (1.0, 0.1)}, "in increasing order"),
    ({"etas": (1.0, 1.0)}, "each once"),
    ({"estimator": "matched"}, "'matched' needs n_jvp = n_pairs; they are 4 and 8"),
    ({"noise_tolerance": 0.0}, "noise_tolerance is 0.0"),
    ({"noise_tolerance": float("nan")}, "noise_tolerance is nan"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": 2**32}, "seed is 4294967296; it must be a whole number from 0"),
]


@pytest.mark.parametrize(("values", "message"), BAD)
def test_values_out_of_range_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(LitBumpError, match=message) as caught:
        Protocol.from_dict({**GOOD, **values})
    assert "\n" not in str(caught.value)


def test_unknown_and_missing_names_are_refused() -> None:
    with pytest.raises(LitBumpError, match=r"a protocol has no 'n_pair' \(did you mean 'n_pairs'\?\)"):
        Protocol.from_dict({**GOOD, "n_pair": 3})
    with pytest.raises(LitBumpError, match="a protocol needs etas"):
        Protocol.from_dict({"n_pairs": 3})


def test_the_papers_protocol() -> None:
    protocol = Protocol.paper()
    assert (len(protocol.etas), protocol.n_pairs, protocol.n_jvp) == (17, 1024, 256)
    assert (protocol.estimator, protocol.noise_tolerance, protocol.precision) == ("paper", 0.05, "float32")
    np.testing.assert_allclose(np.log10(protocol.etas), np.linspace(-2.85, 1.15, 17))
    np.testing.assert_allclose(np.log10(Protocol.paper((3, 224, 224)).etas), np.linspace(-2, 2, 17))


def test_the_cheaper_protocols_state_their_standard_error_on_the_same_ladder() -> None:
    for protocol, target in (
        (Protocol.quick((1, 28, 28), n_pairs=5, seed=3), 0.03),
        (Protocol.accurate((1, 28, 28), n_pairs=5, seed=3), 0.01),
    ):
        assert protocol.etas == Protocol.paper((1, 28, 28)).etas
        assert (protocol.n_pairs, protocol.estimator, protocol.seed) == (5, "controlled", 3)
        assert (protocol.target_se, protocol.precision) == (target, "auto")
        assert f"standard error {100 * target:g} %" in str(protocol)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"estimator": "controlled"}, "target_se is None; .* needs a standard error over ratio"),
        ({"estimator": "controlled", "target_se": 0.0}, "target_se is 0.0"),
        ({"target_se": 0.1}, "target_se is 0.1; only estimator 'controlled'"),
        ({"n_sketch": -1}, "n_sketch is -1; .* at least 0"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        Protocol.from_dict({**GOOD, **values})


def test_a_protocol_is_a_value() -> None:
    protocol = Protocol(**GOOD)
    assert Protocol.from_dict(protocol.to_dict()) == protocol
    assert hash(Protocol(**GOOD)) == hash(protocol)
    assert replace(protocol, seed=1) != protocol
    assert "\n" not in str(protocol)
    with pytest.raises(FrozenInstanceError, match="seed"):
        protocol.seed = 1  # type: ignore[misc]


def test_true_is_no_number() -> None:
    with pytest.raises(LitBumpError, match="n_pairs is True"):
        Protocol.from_dict({**GOOD, "n_pairs": True})


def test_more_noise_pairs_than_pairs_are_as_many() -> None:
    assert Protocol((0.1,), n_pairs=1, n_jvp=1, n_noise=4).n_noise == 1
