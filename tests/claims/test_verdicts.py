"""Each claim holds for what the paper saw, does not hold for the contrary, and is undecided where nothing can tell."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lit_bump.claims.evidence import Evidence
from lit_bump.claims.finding import Finding
from lit_bump.claims.verdicts import judge
from tests.claims.made_up_evidence import (
    SETS,
    as_in_the_paper,
    changed,
    ended,
    made_up_formation,
    made_up_profile,
)

CLAIMS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7")


def verdicts(evidence: Evidence) -> dict[str, str]:
    return {finding.claim: finding.verdict for finding in judge(evidence, SETS)}


def finding(evidence: Evidence, claim: str) -> Finding:
    return next(one for one in judge(evidence, SETS) if one.claim == claim)


def test_all_hold_for_what_the_paper_saw() -> None:
    assert verdicts(as_in_the_paper()) == dict.fromkeys(CLAIMS, "holds")
    assert all(not one.reason for one in judge(as_in_the_paper(), SETS))


def test_nothing_is_decided_without_evidence() -> None:
    assert verdicts(Evidence({}, {})) == dict.fromkeys(CLAIMS, "undecided")
    assert all(one.reason for one in judge(Evidence({}, {}), SETS))


def test_an_earlier_step_never_stands_for_the_last() -> None:
    evidence = as_in_the_paper()
    facts = {name: {"steps": 1000} for name in evidence.formations}
    assert verdicts(Evidence(evidence.formations, evidence.metrics, facts)) == dict.fromkeys(CLAIMS, "holds")
    facts["resnet18_clean"] = {"steps": 1200}
    assert verdicts(Evidence(evidence.formations, evidence.metrics, facts))["C2"] == "undecided"


def test_a_peak_at_initialisation_breaks_c1_and_a_rise_to_the_end_does_not() -> None:
    evidence = changed(as_in_the_paper(), "vgg16_clean", SETS.test, made_up_formation(4.0, 4.0, 5.0, 8.0))
    assert verdicts(evidence)["C1"] == "does not hold"
    assert "vgg16, step 0: bump" in finding(evidence, "C1").reason
    rising = replace(made_up_formation(1.0, 1.0, 5.0, 8.0))
    profiles = (made_up_profile(3.0, eta=20.0), *rising.profiles[1:])
    assert (
        verdicts(changed(as_in_the_paper(), "wrn_clean", SETS.test, replace(rising, profiles=profiles)))["C1"]
        == "holds"
    )


@pytest.mark.parametrize("probe", [SETS.test, SETS.train])
def test_a_flat_trained_network_breaks_c2(probe: str) -> None:
    flat = made_up_formation(1.0, 1.0, 1.0, 1.0)
    evidence = changed(as_in_the_paper(), "resnet18_clean", probe, flat)
    assert verdicts(evidence)["C2"] == "does not hold"
    assert f"resnet18, {probe}: none" in finding(evidence, "C2").reason


def test_a_peak_beyond_the_ladder_or_a_missing_set_leaves_c2_undecided() -> None:
    rising = ended(made_up_profile(9.0, eta=20.0))
    assert verdicts(changed(as_in_the_paper(), "wrn_clean", SETS.train, rising))["C2"] == "undecided"
    assert verdicts(changed(as_in_the_paper(), "wrn_clean", SETS.train, None))["C2"] == "undecided"


def test_one_network_that_contradicts_outweighs_one_that_is_missing() -> None:
    evidence = changed(as_in_the_paper(), "wrn_clean", SETS.train, None)
    evidence = changed(evidence, "vgg16_clean", SETS.test, made_up_formation(1.0, 1.0, 1.0, 1.0))
    assert verdicts(evidence)["C2"] == "does not hold"


@pytest.mark.parametrize(("claim", "condition"), [("C2", "resnet18_clean"), ("C6", "resnet18_randlabel")])
def test_a_peak_in_half_of_the_images_is_neither_there_nor_absent(claim: str, condition: str) -> None:
    high, flat = made_up_profile(8.0), made_up_profile(1.0)
    ratio = np.concatenate([high.ratio[:3], flat.ratio[3:]])
    mixed = replace(high, ratio=ratio)
    assert mixed.bump().verdict == "none"
    assert verdicts(changed(as_in_the_paper(), condition, SETS.train, ended(mixed)))[claim] == "undecided"


def test_a_rise_to_the_end_is_no_peak_at_initialisation_but_undecided_for_the_controls() -> None:
    rising = ended(made_up_profile(5.0, eta=20.0))
    assert verdicts(changed(as_in_the_paper(), "resnet18_noise", SETS.noise, rising))["C7"] == "undecided"


def test_a_rising_random_network_has_not_formed_a_bump() -> None:
    profiles = (made_up_profile(30.0, eta=20.0), *made_up_formation(1.0, 1.0, 5.0, 8.0).profiles[1:])
    formation = replace(made_up_formation(1.0, 1.0, 5.0, 8.0), profiles=profiles)
    found = finding(changed(as_in_the_paper(), "wrn_clean", SETS.test, formation), "C3")
    assert found.verdict == "holds"
    assert any("wrn" in line and "at step 100" in line for line in found.measured)


def test_late_or_lost_bumps_break_c3_and_the_share_is_stated() -> None:
    late = changed(as_in_the_paper(), "wrn_clean", SETS.test, made_up_formation(1.0, 1.0, 1.2, 8.0))
    assert verdicts(late)["C3"] == "does not hold"
    lost = changed(as_in_the_paper(), "wrn_clean", SETS.test, made_up_formation(1.0, 6.0, 1.1, 8.0))
    assert verdicts(lost)["C3"] == "does not hold"
    assert "below it again at 100" in finding(lost, "C3").reason
    kept = (
        "resnet18: an interior peak from step 100 on, 10.0% of 1,000; "
        "half of the log height at eta 2.51 at step 100, 10.0%; kept"
    )
    assert kept in finding(lost, "C3").measured
    there = changed(as_in_the_paper(), "wrn_clean", SETS.test, made_up_formation(7.0, 7.0, 7.0, 8.0))
    assert verdicts(there)["C3"] == "does not hold"


def test_c3_is_undecided_where_there_is_no_bump_at_the_end() -> None:
    flat = changed(as_in_the_paper(), "wrn_clean", SETS.test, made_up_formation(1.0, 1.0, 1.0, 1.0))
    assert verdicts(flat)["C3"] == "undecided"


@pytest.mark.parametrize(
    ("eta", "prediction", "expected"),
    [
        (8.0, 0.01, "holds"),
        (0.5, 0.01, "does not hold"),  # inward
        (8.0, 5.0, "does not hold"),  # a greater prediction
        (2.0, 0.01, "undecided"),  # where it was
        (20.0, 0.01, "holds"),  # beyond the ladder: further out than any of it
    ],
)
def test_c4_asks_for_a_peak_further_out_and_a_lower_prediction(eta: float, prediction: float, expected: str) -> None:
    robust = ended(made_up_profile(12.0, eta=eta, prediction=prediction))
    assert verdicts(changed(as_in_the_paper(), "resnet18_adv", SETS.test, robust))["C4"] == expected


def test_c4_states_the_factors() -> None:
    measured = finding(as_in_the_paper(), "C4").measured
    assert re.search(r"; ([34]\.\d+|4) \[[\d.]+, [\d.]+\] times outward of the clean", "\n".join(measured))
    assert any("prediction 100 [100, 100] times lower" in line for line in measured)


def test_an_adversarial_network_without_a_rise_leaves_c4_undecided() -> None:
    flat = ended(made_up_profile(1.0, prediction=0.01))
    assert verdicts(changed(as_in_the_paper(), "resnet18_adv", SETS.test, flat))["C4"] == "undecided"


def test_c5_counts_the_comparisons() -> None:
    measured = finding(as_in_the_paper(), "C5").measured
    assert measured[1:] == (
        "grows with evaluation blur in 6 [6, 6] of 6 comparisons",
        "shrinks with training blur in 6 [6, 6] of 6 comparisons",
    )
    evidence = as_in_the_paper()
    for regime in ("clean", "blur1", "blur2"):  # the same height everywhere: it neither grows nor shrinks
        for probe in SETS.blurs:
            evidence = changed(evidence, f"resnet18_{regime}", probe, ended(made_up_profile(6.0)))
    assert verdicts(evidence)["C5"] == "does not hold"


@pytest.mark.parametrize("height", [1.0, 1.02])
def test_c5_is_undecided_without_a_bump_to_compare(height: float) -> None:
    evidence = as_in_the_paper()
    for regime in ("clean", "blur1", "blur2"):
        for number, probe in enumerate(SETS.blurs):
            profile = made_up_profile(height + 0.001 * number)
            evidence = changed(evidence, f"resnet18_{regime}", probe, ended(profile))
    assert verdicts(evidence)["C5"] == "undecided"
    rising = ended(made_up_profile(20.0, eta=20.0))
    assert verdicts(changed(as_in_the_paper(), "resnet18_clean", SETS.blur2, rising))["C5"] == "undecided"


def test_c4_takes_a_bound_only_from_a_profile_that_rises_to_its_last_kept_rung() -> None:
    robust = made_up_profile(12.0, eta=0.3, prediction=0.01)
    ratio = robust.ratio.copy()
    ratio[:, robust.etas > 0.3] = np.nan  # the peak itself is on the last kept rung, further in than the clean one
    inward = ended(replace(robust, ratio=ratio))
    assert inward.profiles[0].bump().verdict == "rising"
    found = finding(changed(as_in_the_paper(), "resnet18_adv", SETS.test, inward), "C4")
    assert found.verdict == "undecided"
    assert not any("more than 6" in line for line in found.measured)


def test_c4_is_undecided_where_the_images_disagree_on_the_prediction() -> None:
    mixed = made_up_profile(12.0, eta=8.0)
    uneven = replace(mixed, prediction=np.array([0.01, 0.01, 0.01, 5.0, 5.0, 5.0]))
    assert verdicts(changed(as_in_the_paper(), "resnet18_adv", SETS.test, ended(uneven)))["C4"] == "undecided"


def test_c4_compares_the_same_images_alone() -> None:
    other = replace(made_up_profile(12.0, eta=8.0, prediction=0.01), image_digests=tuple("abcdef"))
    assert verdicts(changed(as_in_the_paper(), "resnet18_adv", SETS.test, ended(other)))["C4"] == "undecided"


@pytest.mark.parametrize("claim", ["C6", "C7"])
def test_a_peak_on_any_set_breaks_the_controls(claim: str) -> None:
    condition = {"C6": "resnet18_randlabel", "C7": "resnet18_noise"}[claim]
    for probe in (*SETS.blurs, SETS.train, SETS.noise, SETS.noise_train):
        evidence = changed(as_in_the_paper(), condition, probe, ended(made_up_profile(3.0)))
        assert verdicts(evidence)[claim] == "does not hold", probe


@pytest.mark.parametrize(
    ("train", "test", "expected"),
    [(0.5, 0.1, "undecided"), (0.99, 0.3, "does not hold"), (0.86, 0.15, "holds"), (0.99, np.nan, "undecided")],
)
def test_c6_needs_memorisation_and_chance(train: float, test: float, expected: str) -> None:
    evidence = as_in_the_paper()
    metrics = {**evidence.metrics, "resnet18_randlabel": {"train/accuracy": train, "val/accuracy": test}}
    assert verdicts(Evidence(evidence.formations, metrics))["C6"] == expected


def test_all_nan_profiles_leave_everything_undecided_and_nothing_raises() -> None:
    evidence = as_in_the_paper()
    for condition, formations in evidence.formations.items():
        for probe, formation in formations.items():
            unknown = tuple(
                replace(profile, ratio=np.full_like(profile.ratio, np.nan)) for profile in formation.profiles
            )
            evidence = changed(evidence, condition, probe, replace(formation, profiles=unknown))
    found = verdicts(evidence)
    assert {found[claim] for claim in ("C1", "C2", "C3", "C5", "C6", "C7")} == {"undecided"}
