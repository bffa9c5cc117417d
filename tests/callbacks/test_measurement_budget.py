"""All measurements together keep to their share of the training time, on made-up clocks; ample time costs nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import nn

from lit_bump.callbacks.measurement_budget import (
    LEAST_BUDGET,
    START_UP,
    MeasurementBudget,
    Moment,
    Stopwatch,
    allowed_seconds,
    least_seconds,
    shared_out,
    stopped,
    whole_training,
)
from lit_bump.measure import Profile, Protocol, measure_profile
from lit_bump.schedules import LogSteps
from tests.callbacks.tiny_run import SIZE, tiny_probe


@dataclass
class Clock:
    """A clock that moves only when told."""

    seconds: float = 0.0

    def __call__(self) -> float:  # noqa: D102
        return self.seconds


@dataclass
class Run:
    """What a made-up run has measured: step, what was planned, what it took, and what was left out."""

    share: float
    planned: dict[int, float] = field(default_factory=dict)
    took: dict[int, float] = field(default_factory=dict)
    left_out: list[int] = field(default_factory=list)


FULL, LEAST = 4.0, 1.0


def run_of(
    total: int,
    step_seconds: Callable[[int], float],
    *,
    max_share: float = 0.05,
    full: float = FULL,
    least: float = LEAST,
    warm_up: float = 0.0,
    known: bool = True,
) -> Run:
    """Train by a made-up clock, each measurement taking what it is granted, between the least and the full cost.

    Returns:
        What was planned and measured.

    """
    clock, schedule, length = Clock(), LogSteps(), total if known else None
    budget, run = MeasurementBudget(max_share, None, clock), Run(0.0)
    budget.begin(0)
    last, spent = -1, 0.0
    for step in range(total + 1):
        if step:
            clock.seconds += step_seconds(step)
            budget.note(step)
        target = schedule.next_target(last, length)
        if not (target is not None and target <= step) and step < total:
            continue
        last = step
        n_later = 0 if step == total else schedule.n_targets_above(step, length)
        planned = budget.planned(step, length or (total if step == total else None), 1 + (n_later or 0), spent)
        granted = budget.granted(planned, {"p": 1.0}, must=step in (0, total))
        run.planned[step] = planned
        if granted is None:
            run.left_out.append(step)
            continue
        cost = max(least, min(full, granted.get("p", math.inf))) + (warm_up if step == 0 else 0.0)
        with stopped([budget.training]):
            clock.seconds += cost
        spent += cost
        run.took[step] = cost
        budget.least = min(budget.least or math.inf, least + (warm_up if step == 0 else 0.0))
    run.share = spent / clock.seconds
    return run


PACES: dict[str, Callable[[int], float]] = {
    "even": lambda step: 0.1,
    "slow start": lambda step: 30.0 if step == 1 else 0.05,
    "tenfold start": lambda step: 1.0 if step == 1 else 0.1,
    "hiccups": lambda step: 2.0 if step % 97 == 0 else 0.05,
    "validation": lambda step: 10.1 if step % 500 == 0 else 0.1,
    "slower and slower": lambda step: 1e-4 * step,
    "very quick": lambda step: 1e-3,
}


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("total", [1, 20, 3000])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("costs", [(4.0, 1.0, 0.0), (4.0, 4.0, 0.0), (4.0, 1.0, 5.0), (0.3, 0.1, 0.0)])
def test_the_share_is_kept_but_for_the_first_and_the_last(
    pace: str, total: int, known: bool, costs: tuple[float, float, float]
) -> None:
    full, least, warm_up = costs
    run = run_of(total, PACES[pace], full=full, least=least, warm_up=warm_up, known=known)
    assert {0, total} <= run.took.keys()
    training = sum(PACES[pace](step) for step in range(1, total + 1))
    between = sum(seconds for step, seconds in run.took.items() if step not in (0, total))
    # What the first step foretells is too much in "slow start"; that costs one measurement at most.
    slack = full if pace == "slow start" else 1e-9
    assert between == 0 or run.took[0] + between <= allowed_seconds(training, 0.05) + slack
    assert run.share <= 0.05 + (run.took[0] + run.took[total] + slack) / (training + sum(run.took.values()))


def test_a_pace_that_nobody_could_foretell_is_made_good_as_soon_as_it_is_seen() -> None:
    run = run_of(5000, lambda step: 0.5 if step <= 20 else 0.01)
    early = sum(seconds for step, seconds in run.took.items() if step <= 20)
    assert early > allowed_seconds(20 * 0.5 + 4980 * 0.01, 0.05)
    assert sum(run.took.values()) <= early + 2 * FULL  # the last, and one before the new pace weighs enough
    assert {1000, 1778, 3162} <= set(run.left_out)


def test_with_ample_time_nothing_is_given_up() -> None:
    run = run_of(20_000, lambda step: 1.0)
    assert not run.left_out
    assert set(run.took.values()) == {FULL}
    assert run.share < 0.05


def test_budgets_shrink_with_the_time_there_is() -> None:
    slow, quick, quicker = (run_of(1000, lambda step, pace=pace: pace) for pace in (1.0, 0.5, 0.1))  # type: ignore[misc]
    for step in (1, 3, 10, 32):
        assert slow.planned[step] > quick.planned[step] > quicker.planned[step]
    assert sum(slow.took.values()) > sum(quick.took.values()) > sum(quicker.took.values())
    assert len(slow.left_out) <= len(quick.left_out) <= len(quicker.left_out)


def test_early_steps_are_paid_for_by_what_is_still_to_come() -> None:
    run = run_of(4000, lambda step: 0.25)  # step 10 is there after 2.5 s, when 5 % would not pay for anything
    assert {2, 3, 6, 10} <= run.took.keys()
    assert all(LEAST < run.took[step] <= FULL for step in (2, 3, 6, 10))


def test_what_is_saved_goes_to_later_measurements() -> None:
    run = run_of(5000, PACES["even"], warm_up=5.0)
    planned = [run.planned[step] for step in sorted(run.planned) if step > 1]
    assert run.left_out
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(planned[: len(run.left_out)]))


def test_the_first_step_s_time_does_not_foretell_the_others() -> None:
    start, first = Moment(0, 0.0), Moment(1, 60.0)
    assert whole_training(start, first, first, 1001) == pytest.approx(60.0 + 1000 * 60.0 / START_UP)
    assert whole_training(start, first, Moment(3, 60.2), 1001) == pytest.approx(60.0 + 1000 * 0.1)


def test_an_unknown_length_shares_out_what_has_passed() -> None:
    assert whole_training(Moment(0, 0.0), Moment(1, 1.0), Moment(5, 9.0), None) == 9.0


@pytest.mark.parametrize("share", [0.01, 0.05, 0.25, 0.5])
def test_allowed_seconds_are_that_share_of_all_time(share: float) -> None:
    allowed = allowed_seconds(300.0, share)
    assert allowed / (300.0 + allowed) == pytest.approx(share)
    assert allowed_seconds(300.0, 1.0) == math.inf


def test_no_limit_is_no_limit() -> None:
    budget = MeasurementBudget(None, None)
    budget.begin(0)
    assert not budget.has_limit
    assert budget.granted(budget.planned(5, 10, 3, 100.0), {"p": 1.0}, must=False) == {}


def test_the_smaller_of_two_limits_holds_and_seconds_alone_leave_nothing_out() -> None:
    budget = MeasurementBudget(0.05, 2.0)
    budget.least = 3.0
    assert budget.granted(10.0, {"p": 1.0}, must=False) == {"p": 2.0}
    assert budget.granted(1.0, {"p": 1.0}, must=True) == {"p": 1.0}
    assert budget.granted(1.0, {"p": 1.0}, must=False) is None
    assert budget.granted(math.inf, {"p": 1.0}, must=True) == {"p": 2.0}  # before training
    assert str(budget) == "5 % of training and 2 s a measurement"


def test_what_must_be_measured_without_time_gets_the_least() -> None:
    budget = MeasurementBudget(0.05, None)
    assert budget.granted(-3.0, {"p": 1.0}, must=True) == {"p": LEAST_BUDGET}
    assert budget.granted(0.0, {"p": 1.0}, must=False) is None


def test_probe_sets_share_by_their_cost() -> None:
    shares = shared_out(6.0, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert shares == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_a_stopwatch_counts_only_while_it_runs() -> None:
    clock = Clock()
    watch, still = Stopwatch(clock), Stopwatch(clock)
    watch.start()
    clock.seconds = 2.0
    with stopped([watch, still]):
        clock.seconds = 5.0
    clock.seconds = 6.0
    assert (watch.seconds(), still.seconds()) == (3.0, 0.0)
    assert (watch.runs, still.runs) == (True, False)


def test_a_resumed_plan_goes_on_as_the_straight_one() -> None:
    def trained(clock: Clock, budget: MeasurementBudget, steps: range) -> None:
        for step in steps:
            clock.seconds += 3.0 if step == 1 else 0.5
            budget.note(step)

    clock = Clock()
    straight = MeasurementBudget(0.05, None, clock)
    straight.begin(0)
    trained(clock, straight, range(1, 41))

    before = MeasurementBudget(0.05, None, first_clock := Clock(7.0))
    before.begin(0)
    trained(first_clock, before, range(1, 21))
    before.least = 1.5
    after = MeasurementBudget(0.05, None, second_clock := Clock(1000.0))
    after.load_state_dict(before.state_dict())
    after.begin(20)
    trained(second_clock, after, range(21, 41))
    assert after.planned(40, 100, 4, 0.5) == pytest.approx(straight.planned(40, 100, 4, 0.5))
    assert after.least == 1.5


def of_quick(target_se: float) -> Profile:
    protocol = replace(Protocol.quick(SIZE), target_se=target_se, precision="float32")
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.Tanh())
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(0))
    return measure_profile(encoder, tiny_probe().images, protocol, progress=False)


def test_the_least_cost_is_that_without_the_pairs_beyond_the_pilot() -> None:
    costly, least = of_quick(0.01), of_quick(0.99)
    assert costly.n_directions.sum() > least.n_directions.sum()
    assert least_seconds(least, 3.0) == 3.0
    expected = float(least.forward_equivalents.sum() / costly.forward_equivalents.sum())
    assert least_seconds(costly, 1.0) == pytest.approx(expected, rel=0.2)


def test_a_protocol_of_fixed_pairs_has_no_lesser_cost() -> None:
    protocol = Protocol((0.1, 1.0), n_pairs=2, n_jvp=2, estimator="matched", n_noise=1)
    profile = measure_profile(nn.Flatten(), tiny_probe().images, protocol, progress=False)
    assert least_seconds(profile, 3.0) == 3.0
    budget = MeasurementBudget(0.05, None)
    for seconds in (3.0, 2.0, 5.0):
        budget.learn([profile.with_context(seconds=seconds), profile.with_context(seconds=1.0)])
    assert budget.least == 3.0  # the cheapest of the three, of both sets
    assert math.isinf(budget.planned(0, 10, 2, 0.0))  # training has not begun
