"""Laws of the schedule: increasing, once each, 0 and the last step, first boundary at or after the target."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lit_bump.errors import LitBumpError
from lit_bump.schedules import LogSteps

TOTALS = [0, 1, 2, 3, 9, 10, 11, 800, 1778, 39100]
WAYS = [LogSteps(), LogSteps(per_decade=1), LogSteps(per_decade=12), LogSteps(n_points=2), LogSteps(n_points=24)]


def measured_steps(schedule: LogSteps, boundaries: list[int], total: int | None) -> list[int]:
    """Return the steps at which a run with these step boundaries is measured."""
    labels: list[int] = []
    last = -1
    for step in boundaries:
        target = schedule.next_target(last, total)
        if target is not None and step >= target:
            labels.append(step)
            last = step
    return labels


@pytest.mark.parametrize("schedule", WAYS, ids=str)
@pytest.mark.parametrize("total", TOTALS)
def test_targets_increase_from_zero_to_the_last_step(schedule: LogSteps, total: int) -> None:
    targets = schedule.targets(total)
    assert targets[0] == 0
    assert targets[-1] == total
    assert list(targets) == sorted(set(targets))


@pytest.mark.parametrize("schedule", [*WAYS, LogSteps(steps=(0, 1, 3, 10))], ids=str)
@pytest.mark.parametrize("total", [10, 11, 800])
def test_next_target_is_the_smallest_above(schedule: LogSteps, total: int) -> None:
    targets = schedule.targets(total)
    for step in range(-1, total + 2):
        assert schedule.next_target(step, total) == min((t for t in targets if t > step), default=None)


def test_density_is_even_in_log_step() -> None:
    assert LogSteps().targets(100) == (0, 1, 2, 3, 6, 10, 18, 32, 56, 100)
    assert LogSteps(per_decade=1).targets(12345) == (0, 1, 10, 100, 1000, 10000, 12345)


@pytest.mark.parametrize("per_decade", [1, 2, 3, 4, 7, 10, 30])
def test_unknown_length_goes_on_forever_through_the_same_targets(per_decade: int) -> None:
    schedule = LogSteps(per_decade=per_decade)
    targets: list[int] = []
    step = -1
    while len(targets) < 150:
        following = schedule.next_target(step, total=None)
        assert following is not None
        assert following > step
        targets.append(step := following)
        if step > 10**9:
            break
    known = [t for t in schedule.targets(10**9) if t < 10**9]
    assert targets[: len(known)] == known[: len(targets)]


def test_unknown_length_grows_by_the_ratio() -> None:
    schedule = LogSteps(per_decade=4)
    assert schedule.next_target(10**6, total=None) == round(10 ** (25 / 4))
    assert schedule.next_target(10**6 - 1, total=None) == 10**6


@pytest.mark.parametrize("n_points", [2, 3, 10, 24, 100])
@pytest.mark.parametrize("total", TOTALS)
def test_number_of_points_is_exact_where_there_are_enough_steps(n_points: int, total: int) -> None:
    assert len(LogSteps(n_points=n_points).targets(total)) == min(n_points, total + 1)


def test_points_are_evenly_spaced_in_log_step() -> None:
    targets = LogSteps(n_points=24).targets(39100)
    ratios = [math.log(b / a) for a, b in itertools.pairwise(t for t in targets if t > 10)]
    assert max(ratios) < 1.05 * min(ratios)


@settings(max_examples=200, deadline=None)
@given(n_points=st.integers(2, 300), total=st.integers(0, 10**7))
def test_any_number_of_points_in_any_run(n_points: int, total: int) -> None:
    targets = LogSteps(n_points=n_points).targets(total)
    assert targets[0] == 0
    assert targets[-1] == total
    assert all(b > a for a, b in itertools.pairwise(targets))
    assert len(targets) == min(n_points, total + 1)


def test_listed_steps_are_taken_as_they_are() -> None:
    schedule = LogSteps(steps=(5, 7))
    assert schedule.targets(total=100) == schedule.targets(total=None) == (5, 7)
    assert not schedule.includes_last
    assert LogSteps().includes_last


@pytest.mark.parametrize("total", [16, None])
def test_steps_that_advance_by_two_meet_each_target_once(total: int | None) -> None:
    schedule = LogSteps(steps=(1, 2, 4, 8, 16))
    assert measured_steps(schedule, [0, *range(2, 18, 2)], total) == [2, 4, 8, 16]


def test_several_targets_passed_at_once_are_met_by_one_measurement() -> None:
    assert measured_steps(LogSteps(), [0, 7, 14, 21, 28, 35], 35) == [0, 7, 14, 21, 35]


def test_every_boundary_measures_exactly_the_targets() -> None:
    assert measured_steps(LogSteps(), list(range(51)), 50) == list(LogSteps().targets(50))


def test_schedule_is_frozen_hashable_and_prints_as_itself() -> None:
    for schedule in [*WAYS, LogSteps(steps=(0, 4)), LogSteps(steps=(3,))]:
        assert eval(str(schedule)) == schedule
        assert hash(eval(str(schedule))) == hash(schedule)
    with pytest.raises(AttributeError, match="per_decade"):
        LogSteps().per_decade = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((), r"steps=\(\): list at least one"),
        ((-1, 2), "steps hold -1: give steps from 0 up"),
        ((0, 4, 2), "steps hold 4 before 2: give them in increasing order"),
        ((1, 1), "steps hold 1 before 1: .* each once"),
    ],
)
def test_bad_lists_are_refused(steps: tuple[int, ...], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        LogSteps(steps=steps)


def test_a_step_beyond_the_run_is_refused() -> None:
    schedule = LogSteps(steps=(0, 100))
    with pytest.raises(LitBumpError, match="step 100 is scheduled, but the run ends at step 99"):
        schedule.targets(99)
    with pytest.raises(LitBumpError, match="step 100 is scheduled, but the run ends at step 99"):
        schedule.next_target(-1, 99)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(LitBumpError, match="per_decade=0: give at least 1"):
        LogSteps(per_decade=0)
    with pytest.raises(LitBumpError, match="n_points=1: give at least 2"):
        LogSteps(n_points=1)
    with pytest.raises(LitBumpError, match="give only one of per_decade, n_points and steps"):
        LogSteps(n_points=5, steps=(1, 2))
    with pytest.raises(LitBumpError, match="total=-1: the last step of a run is at least 0"):
        LogSteps().targets(-1)


@pytest.mark.parametrize("schedule", [LogSteps(), LogSteps(n_points=5), LogSteps(steps=(0, 3, 40))])
def test_targets_above_a_step_are_those_that_next_target_will_name(schedule: LogSteps) -> None:
    step: int | None = -1
    for n_left in reversed(range(len(schedule.targets(50)) + 1)):
        assert step is not None
        assert schedule.n_targets_above(step, 50) == n_left
        step = schedule.next_target(step, 50)
    assert step is None
    assert LogSteps().n_targets_above(3, None) is None


def test_what_needs_the_length_says_so() -> None:
    with pytest.raises(
        LitBumpError, match=r"LogSteps\(n_points=5\) has no end in a run of unknown length: set trainer"
    ):
        LogSteps(n_points=5).next_target(-1, None)
    with pytest.raises(LitBumpError, match=r"LogSteps\(per_decade=4\) has no end"):
        LogSteps().targets(None)
