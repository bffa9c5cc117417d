"""Which runs make which figure: like is compared with like, under the right labels, and what is missing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lit_bump import LitBumpError
from lit_bump.cli_figure_choice import DRAWINGS, Drawing, Look, MeasuredRun
from lit_bump.cli_help import FIGURES
from tests.drawn_runs import drawn_run
from tests.figures.drawn_profiles import drawn_profile
from tests.figures.printed_text import assert_readable, legend_labels


class Runs:
    """Make runs in a folder, and draw them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[MeasuredRun] = []

    def add(self, name: str, *args: Any, **options: Any) -> None:
        """Write a run."""
        run = drawn_run(self.folder, name, *args, **options)
        self.made.append(MeasuredRun(run, run.formations()))

    def draw(self, figure: str, probe: str | None = None) -> list[Drawing]:
        """Return a figure's drawings of all runs so far."""
        return DRAWINGS[figure](self.made, probe, Look(per_image=False))


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Return a maker of runs."""
    return Runs(tmp_path)


def titles(drawing: Drawing) -> list[str]:
    return [axes.get_title(loc="left") for axes in drawing.figure.axes if axes.get_title(loc="left")]


def test_the_help_names_every_figure() -> None:
    assert list(DRAWINGS) == list(FIGURES)


def test_formation_has_a_panel_a_network(runs: Runs) -> None:
    for network in ("resnet18", "vgg16", "wide_resnet28x10"):
        runs.add(network, network=network)
    (drawing,) = runs.draw("1c")
    assert titles(drawing) == [f"{name}, width 8" for name in ("ResNet-18", "VGG-16", "WRN-28-10")]
    assert drawing.notes == ("on shapes6",)
    assert_readable(drawing.figure)


def test_runs_of_one_kind_are_told_apart_by_their_names(runs: Runs) -> None:
    runs.add("a")
    runs.add("b")
    runs.add("c", "noise")
    (drawing,) = runs.draw("1c")
    assert titles(drawing) == ["clean\na/version_0", "clean\nb/version_0", "noise"]


def test_formation_needs_two_steps(runs: Runs) -> None:
    runs.add("a", probes={"shapes6": [1.0]})
    with pytest.raises(LitBumpError, match="no run holds profiles of two steps"):
        runs.draw("1c")


def test_plain_test_images_are_taken_where_no_probe_set_is_named(runs: Runs) -> None:
    both = [0.0, 9.0]
    runs.add("a", probes={"noise6": both, "shapes6": both, "shapes6b1": both, "shapes6train": both})
    runs.add("b", "blur 1", probes={"noise6": both, "shapes6b1": both, "shapes6train": both})
    (drawing,) = runs.draw("1c")
    assert drawing.notes == ("on shapes6", "without b/version_0: not measured on shapes6")
    (drawing,) = runs.draw("1c", "noise6")
    assert drawing.notes == ("on noise6",)


def test_budgets_go_from_clean_outward(runs: Runs) -> None:
    for name, eps in (("five", 5), ("clean", None), ("quarter", 0.25), ("one", 1.0)):
        runs.add(name, eps=eps)
    runs.add("noise", "noise")
    (drawing,) = runs.draw("2a")
    assert drawing.stem == "figure_2a"
    assert [label.split(":")[0] for label in legend_labels(drawing.figure)] == ["clean", "L2 0.25", "L2 1", "L2 5"]


def test_budgets_are_compared_within_a_network(runs: Runs) -> None:
    for network in ("resnet18", "vgg16"):
        runs.add(f"{network}_clean", network=network)
        runs.add(f"{network}_l2", network=network, eps=0.5)
    runs.add("lonely", network="wide_resnet28x10", eps=0.5)
    assert [drawing.stem for drawing in runs.draw("2a")] == ["figure_2a_resnet_18_width_8", "figure_2a_vgg_16_width_8"]


def test_budgets_need_an_adversarial_run(runs: Runs) -> None:
    runs.add("a")
    runs.add("b")
    with pytest.raises(LitBumpError, match="no network has an adversarially trained run"):
        runs.draw("2a")


def test_blur_has_a_panel_a_training_blur_and_a_curve_an_evaluation_blur(runs: Runs) -> None:
    for name, regime in (("two", "blur 2"), ("clean", "clean"), ("one", "blur 1"), ("labels", "permuted labels")):
        runs.add(name, regime, probes={"shapes6b2": [9.0], "shapes6": [3.0], "shapes6b1": [6.0], "noise6": [0.0]})
    (drawing,) = runs.draw("2b")
    assert titles(drawing) == ["trained on clean images", "trained on blur 1", "trained on blur 2"]
    images = ("clean images", "blur 1", "blur 2")
    assert legend_labels(drawing.figure) == [f"evaluated on {name}" for name in images]
    curves = [line for line in drawing.figure.axes[0].lines if line.get_linewidth() > 1.5]
    heights = [float(np.max(np.asarray(line.get_ydata()))) for line in curves]
    assert sorted(heights) == heights  # the curves are those of their labels
    assert_readable(drawing.figure)


def test_blur_needs_a_blurred_probe_set(runs: Runs) -> None:
    runs.add("a", probes={"shapes6": [1.0], "shapes6b1": [2.0]})
    with pytest.raises(LitBumpError, match="measured on noise6b1"):
        runs.draw("2b", "noise6")
    runs.made.clear()
    runs.add("b", "noise", probes={"shapes6": [1.0], "shapes6b1": [2.0]})
    with pytest.raises(LitBumpError, match="measured on blurred ones"):
        runs.draw("2b")


def test_memorising_has_a_panel_a_regime_and_a_curve_a_probe_set(runs: Runs) -> None:
    probes = {"noise6": [0.0], "shapes6": [0.0], "shapes6train": [0.0]}
    for name, regime in (("n", "noise"), ("c", "clean"), ("p", "permuted labels")):
        runs.add(name, regime, probes=probes)
    (drawing,) = runs.draw("2c")
    assert titles(drawing) == ["permuted labels", "noise"]
    assert legend_labels(drawing.figure) == ["shapes6", "noise6", "shapes6train"]
    (drawing,) = runs.draw("2c", "noise6")
    assert legend_labels(drawing.figure) == ["noise6"]


def test_memorising_needs_such_a_run(runs: Runs) -> None:
    runs.add("a")
    with pytest.raises(LitBumpError, match="no run was trained on permuted labels or on noise"):
        runs.draw("2c")


def test_profiles_are_a_grid_of_runs_and_probe_sets(runs: Runs) -> None:
    runs.add("a", probes={"shapes6": [9.0], "noise6": [0.0]})
    runs.add("b", "noise", probes={"noise6": [0.0]})
    (drawing,) = runs.draw("profile")
    assert titles(drawing) == ["clean\nshapes6", "clean\nnoise6", "noise\nshapes6", "noise\nnoise6"]
    assert [[text.get_text() for text in axes.texts] for axes in drawing.figure.axes][2] == ["not measured"]
    with pytest.raises(LitBumpError, match=r"no run was measured on 'shapes7' \(did you mean 'shapes6'\?\)"):
        runs.draw("profile", "shapes7")


def test_the_last_step_is_drawn(runs: Runs) -> None:
    runs.add("a", probes={"shapes6": [1.0, 30.0, 9.0]})
    (drawing,) = runs.draw("profile")
    (curve,) = (line for line in drawing.figure.axes[0].lines if line.get_linewidth() > 1.5)
    np.testing.assert_array_equal(curve.get_ydata(), drawn_profile(9.0).median())


def test_a_note_says_what_cannot_be_compared(runs: Runs) -> None:
    runs.add("a")
    runs.add("b", network="vgg16", n_images=5)
    (drawing,) = runs.draw("1c")
    assert drawing.notes[1:] == ("its profiles are not of the same images, though of one name",)
