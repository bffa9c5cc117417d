"""Every argument of the callback can be given in a config or on the command line."""

from __future__ import annotations

from typing import Any

import pytest
from jsonargparse import ArgumentParser

from lit_bump.callbacks import RProfileCallback
from lit_bump.callbacks.protocol_choice import chosen_protocol
from lit_bump.schedules import LogSteps


def parsed(*arguments: str) -> RProfileCallback:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(RProfileCallback, "rprofile")
    callback: RProfileCallback = parser.instantiate(parser.parse_args(list(arguments))).rprofile
    return callback


def test_nothing_given_is_the_default() -> None:
    callback = parsed()
    assert (callback.probes, callback.protocol, callback.encoder) == ((), None, None)
    assert callback.schedule == LogSteps()
    assert (callback.max_share, callback.budget_seconds) == (0.05, None)


@pytest.mark.parametrize(
    ("argument", "name", "expected"),
    [
        ("--rprofile.probes=cifar32", "probes", ("cifar32",)),
        ("--rprofile.probes=[cifar32, noise32]", "probes", ("cifar32", "noise32")),
        ("--rprofile.protocol=paper", "protocol", "paper"),
        ("--rprofile.protocol.n_pairs=4", "protocol", {"n_pairs": 4}),
        ("--rprofile.protocol={preset: paper, n_jvp: 8}", "protocol", {"preset": "paper", "n_jvp": 8}),
        ("--rprofile.schedule.per_decade=8", "schedule", LogSteps(per_decade=8)),
        ("--rprofile.schedule={steps: [0, 5]}", "schedule", LogSteps(steps=(0, 5))),
        ("--rprofile.encoder=backbone.4", "encoder", "backbone.4"),
        ("--rprofile.enable=false", "enable", False),
        ("--rprofile.max_share=0.1", "max_share", 0.1),
        ("--rprofile.max_share=null", "max_share", None),
        ("--rprofile.budget_seconds=2.5", "budget_seconds", 2.5),
        ("--rprofile.protocol=accurate", "protocol", "accurate"),
        ("--rprofile.on_error=warn", "on_error", "warn"),
    ],
)
def test_an_argument_arrives_as_it_was_meant(argument: str, name: str, expected: Any) -> None:
    assert getattr(parsed(argument), name) == expected


def test_fields_of_a_protocol_are_those_of_quick() -> None:
    protocol = chosen_protocol(parsed("--rprofile.protocol={etas: [1e-1, 1.0], n_pairs: 4}").protocol, (3, 8, 8))
    assert (protocol.etas, protocol.n_pairs, protocol.target_se, protocol.estimator) == (
        (0.1, 1.0),
        4,
        0.03,
        "controlled",
    )
