"""A protocol by name or by fields follows the size of the images; a protocol as such is taken as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lit_bump.callbacks.protocol_choice import chosen_protocol, rehearsal_protocol
from lit_bump.errors import LitBumpError
from lit_bump.measure import Protocol

SIZE = (3, 64, 64)


def test_names_and_fields() -> None:
    assert chosen_protocol(None, SIZE) == chosen_protocol("quick", SIZE) == Protocol.quick(SIZE)
    assert chosen_protocol("paper", SIZE) == Protocol.paper(SIZE)
    assert chosen_protocol({"seed": 3}, SIZE) == Protocol.quick(SIZE, seed=3)
    assert chosen_protocol({"n_pairs": 4}, SIZE) == Protocol.quick(SIZE, n_pairs=4)
    assert chosen_protocol("accurate", SIZE) == Protocol.accurate(SIZE)
    assert chosen_protocol({"target_se": 0.02}, SIZE) == replace(Protocol.quick(SIZE), target_se=0.02)
    assert chosen_protocol({"estimator": "matched", "n_jvp": 4}, SIZE).n_pairs == 4
    assert chosen_protocol({"preset": "paper", "n_pairs": 64}, SIZE) == replace(
        Protocol.paper(SIZE), n_pairs=64, n_jvp=64
    )
    mine = Protocol((0.5, 1.0), n_pairs=3, n_jvp=2)
    assert chosen_protocol(mine, SIZE) is mine


def test_etas_given_are_not_moved() -> None:
    assert chosen_protocol({"etas": [0.1, 1.0]}, SIZE).etas == (0.1, 1.0)


def test_estimator_can_be_changed_alone() -> None:
    paper = chosen_protocol({"estimator": "paper", "n_pairs": 64, "n_jvp": 16}, SIZE)
    assert (paper.estimator, paper.n_pairs, paper.n_jvp) == ("paper", 64, 16)
    assert (paper.target_se, paper.precision) == (None, "float32")
    matched = chosen_protocol({"preset": "paper", "estimator": "matched"}, SIZE)
    assert (matched.n_pairs, matched.n_jvp) == (256, 256)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"preset": "papr"}, "no protocol 'papr'.*'paper'"),
        ({"n_pair": 3}, "no 'n_pair'.*'n_pairs'"),
        ({"n_pairs": 0}, "n_pairs is 0"),
    ],
)
def test_what_is_no_protocol_is_refused(choice: dict[str, object], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        chosen_protocol(choice, SIZE)


def test_a_rehearsal_keeps_ladder_and_estimator() -> None:
    for protocol in (Protocol.paper(), Protocol.quick()):
        short = rehearsal_protocol(protocol)
        assert (short.etas, short.estimator) == (protocol.etas, protocol.estimator)
        assert (short.n_pairs, short.n_jvp) == (2, 2)
