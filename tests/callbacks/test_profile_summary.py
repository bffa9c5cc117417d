"""The table at the end: a line a measurement, a peak only where there is one, the cost below."""

from __future__ import annotations

import math

import pytest

from lit_bump.callbacks.formation_table import formation_row
from lit_bump.callbacks.profile_summary import final_metrics, print_summary
from tests.figures.drawn_profiles import drawn_profile


def test_a_line_a_measurement_and_the_cost_below(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        formation_row(drawn_profile(height, step=step).with_context(seconds=2.0))
        for height, step in ((0, 0), (9, 5000))
    ]
    limits = "5 % of training"
    print_summary(rows, seconds=12.34, share=0.056, skipped=3, limits=limits, metrics={"val/accuracy": 0.98765})
    lines = capsys.readouterr().out.splitlines()
    (flat,) = [line for line in lines if "none" in line]
    (high,) = [line for line in lines if "5,000" in line]
    assert " - " in flat
    assert "[" in flat  # the interval survives rich's own brackets
    assert "bump" in high
    assert lines[-2] == "val/accuracy 0.9877"
    assert lines[-1] == "12.3 seconds, 5.6 % of training; 3 left out, to keep to 5 % of training"


def test_what_a_budget_has_raised_is_said_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [formation_row(drawn_profile(9, step=step).with_context(seconds=2.0)) for step in (0, 5, 5, 9)]
    for row, error in zip(rows, (math.nan, 0.05, 0.081, 0.04), strict=True):
        row["thinned_se"] = error
    print_summary(rows, seconds=1.0, share=0.01, skipped=2, limits="1 % of training")
    said = "; 2 left out, standard error up to 8.1 % at 2 steps, to keep to 1 % of training"
    assert capsys.readouterr().out.splitlines()[-1].endswith(said)
    print_summary(rows[:1], seconds=1.0, share=0.01, limits="1 % of training")
    assert capsys.readouterr().out.splitlines()[-1] == "1.0 seconds, 1.0 % of training"


def test_a_height_without_interval_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    row = formation_row(drawn_profile(9, step=5000).with_context(seconds=2.0))
    print_summary([{**row, "max_r": 3.25, "max_r_low": math.nan, "max_r_high": math.nan}], seconds=1.0, share=0.1)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "5,000" in line]
    assert "3.25" in line
    assert "[" not in line
    assert "bump (no interval)" in line  # the verdict rests on the curve alone


def test_nothing_measured_is_nothing_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary([], seconds=0.0, share=0.0)
    assert capsys.readouterr().out == ""


def test_final_metrics_are_the_module_s_own_of_whole_epochs() -> None:
    logged = {
        "bump/max_r/p": 3.0,
        "loss": 1.0,
        "loss_step": 2.0,
        "loss_epoch": 1.5,
        "val/accuracy": 0.5,
        "odd": float("nan"),
    }
    assert final_metrics(logged) == {"loss_epoch": 1.5, "val/accuracy": 0.5}
