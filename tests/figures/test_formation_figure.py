"""The cumulative figure: every step in one panel, the newest black, and nothing else in the process disturbed."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from subprocess import CompletedProcess

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from lit_bump.figures import formation_figure, rgb_array
from lit_bump.measure import Formation
from tests.figures.drawn_profiles import drawn_formation


def n_points(line: Line2D) -> int:
    return len(np.asarray(line.get_xdata()))


def test_every_step_is_a_curve_and_the_newest_is_black() -> None:
    formation = drawn_formation(0.0, 0.0, 0.1, 2.0, 9.0)
    axes = formation_figure(formation).axes[0]
    curves = [line for line in axes.lines if n_points(line) == 17 and line.get_linestyle() == "-"]
    assert len(curves) == 5
    np.testing.assert_array_equal(curves[-1].get_ydata(), formation.profiles[-1].median())
    black = to_rgba("black")
    assert [to_rgba(line.get_color()) == black for line in curves] == [False] * 4 + [True]
    assert len({to_rgba(line.get_color()) for line in curves}) == 5


def test_size_axes_and_line_at_one() -> None:
    figure = formation_figure(drawn_formation(0.0, 3.0))
    axes = figure.axes[0]
    assert tuple(figure.get_size_inches()) == (5.0, 3.0)
    assert rgb_array(figure).shape == (360, 600, 3)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert any(list(np.unique(line.get_ydata())) == [1.0] and n_points(line) == 2 for line in axes.lines)
    assert axes.get_title(loc="left") == "drawn6, step 1"
    assert len(figure.axes) == 2  # panel and colour bar


def test_a_flat_formation_looks_flat() -> None:
    axes = formation_figure(drawn_formation(0.0, 0.01)).axes[0]
    assert axes.get_ylim() == (0.5, 2.0)


def test_one_step_needs_no_colour_bar() -> None:
    assert len(formation_figure(drawn_formation(0.0)).axes) == 1


def test_discarded_rungs_are_marked() -> None:
    axes = formation_figure(drawn_formation(0.0, 3.0, n_lost=2)).axes[0]
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [n_points(line) for line in crosses] == [2]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white" and n_points(line)]
    assert [n_points(line) for line in hollow] == [1]


def test_nothing_at_all_kept_can_still_be_drawn() -> None:
    figure = formation_figure(drawn_formation(0.0, 3.0, n_lost=16))
    assert rgb_array(figure).std() > 0


def test_a_formation_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no step"):
        formation_figure(Formation((), ()))


def test_many_figures_from_any_thread_leave_rc_parameters_alone() -> None:
    formation, before = drawn_formation(0.0, 1.0), dict(mpl.rcParams)
    drawn: list[np.ndarray] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=lambda: drawn.extend(rgb_array(formation_figure(formation)) for _ in range(3)))
        thread.start()
        thread.join()
    assert len(drawn) == 3
    assert dict(mpl.rcParams) == before


def test_drawing_needs_neither_pyplot_nor_a_display(run_python: Callable[..., CompletedProcess[str]]) -> None:
    code = (
        "import sys; from tests.figures.drawn_profiles import drawn_formation;"
        "from lit_bump.figures import formation_figure, profile_figure, rgb_array;"
        "f = drawn_formation(0.0, 1.0); rgb_array(formation_figure(f)); rgb_array(profile_figure(f.profiles[0]));"
        "assert 'matplotlib.pyplot' not in sys.modules; assert 'lightning' not in sys.modules"
    )
    done = run_python("-c", code, MPLBACKEND="TkAgg", DISPLAY="")
    assert done.returncode == 0, done.stderr
