"""Figures of probe results: each holds what its name says, and what is missing is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lit_bump.__main__ import main
from lit_bump.cli_figure_choice import Look
from lit_bump.cli_probe_figures import PROBE_DRAWINGS, overview
from lit_bump.errors import LitBumpError
from lit_bump.probing import ProbeResult
from lit_bump.probing.results import profile_path, write_record
from tests.figures.drawn_profiles import drawn_profile

SIZE = [3, 224, 224]


def result(label: str, images: str = "val64", height: float = 5.0, **facts: Any) -> ProbeResult:
    """Return a made-up result."""
    return ProbeResult(
        label, images, drawn_profile(height), {"kind": "timm", "input_size": SIZE, "spec": label, **facts}
    )


TRAINED = [result("ResNet-50"), result("ViT-S"), result("ResNet-50", "a64"), result("ViT-S", "a64")]
RANDOM = [result("ResNet-50 (random)", height=0.0, kind="random"), result("ViT-S (random)", height=0.0, kind="random")]
ROBUST = [result(f"eps {eps}", kind="robust", eps=eps, norm="l2") for eps in (3.0, 0.0, 0.05)]
ALL = [*TRAINED, *RANDOM, *ROBUST]


def titles(name: str, results: list[ProbeResult], images: str | None = None) -> list[str]:
    """Return the titles of a figure's panels."""
    (drawing,) = PROBE_DRAWINGS[name](results, images, Look())
    return [axes.get_title(loc="left") for axes in drawing.figure.axes if axes.get_visible()]


def test_each_figure_holds_its_encoders() -> None:
    assert titles("1a", TRAINED + RANDOM) == ["ResNet-50", "ViT-S"]
    assert titles("3", ALL) == ["ResNet-50\nval64", "ResNet-50\na64", "ViT-S\nval64", "ViT-S\na64"]
    assert titles("4", ALL) == ["ResNet-50 (random)\nval64", "ViT-S (random)\nval64"]
    assert titles("5", ALL) == ["eps 0.0\nval64", "eps 0.05\nval64", "eps 3.0\nval64"]
    assert titles("3", ALL, "a64") == ["ResNet-50\na64", "ViT-S\na64"]


def test_trained_and_random_share_one_panel() -> None:
    (drawing,) = PROBE_DRAWINGS["1b"](TRAINED + RANDOM, None, Look())
    lines = [line for line in drawing.figure.axes[0].lines if np.size(line.get_xdata()) == 17]
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--", "--"]
    assert drawing.notes == ("on val64",)


@pytest.mark.parametrize(
    ("name", "results", "says"),
    [
        ("1a", RANDOM, "no trained encoder"),
        ("1b", TRAINED, "no random encoder was measured on val64"),
        ("1b", RANDOM, "no trained encoder was measured on val64"),
        ("4", TRAINED, "no random encoder"),
        ("5", TRAINED, "no adversarially trained encoder"),
    ],
)
def test_what_is_missing_is_named(name: str, results: list[ProbeResult], says: str) -> None:
    with pytest.raises(LitBumpError, match=says):
        PROBE_DRAWINGS[name](results, None, Look())


def test_a_wrong_set_gets_the_nearest_name() -> None:
    with pytest.raises(LitBumpError, match="did you mean 'val64'"):
        PROBE_DRAWINGS["compare"](TRAINED, "val46", Look())


def test_a_profile_of_unknown_size_is_not_compared() -> None:
    with pytest.raises(LitBumpError, match="does not tell the size of its images"):
        PROBE_DRAWINGS["compare"]([result("old", input_size=None)], None, Look())


def folder_of(results: list[ProbeResult], out: Path) -> Path:
    """Write results as probe does.

    Returns:
        The folder.

    """
    for one in results:
        slug = one.encoder.replace(" ", "_").replace("(", "").replace(")", "")
        profile = one.profile.with_context(encoder_facts={**one.facts, "label": one.encoder}, images_digest="d")
        profile.save(profile_path(out, slug, one.images))
        entry = {"slug": slug, "label": one.encoder, "facts": dict(one.facts)}
        write_record(out, [entry], [{"name": one.images, "digest": "d"}])
    return out


def test_the_command_draws_what_the_folder_allows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = folder_of(TRAINED + RANDOM, tmp_path / "probe")
    assert main(["figures", str(out), "--out", str(tmp_path / "figures")]) == 0
    said = capfd.readouterr()
    assert [Path(line).stem for line in said.out.splitlines()] == [
        "figure_1a",
        "figure_1b",
        "figure_3",
        "figure_4",
        "compare",
    ]
    assert "left out 5: no adversarially trained encoder" in said.err
    assert main(["figures", str(out), "--figure", "1c"]) == 2
    assert "figure 1c: it needs a run" in capfd.readouterr().err


def test_probe_draws_an_overview(tmp_path: Path) -> None:
    written = overview(folder_of(TRAINED + RANDOM, tmp_path))
    assert [path.stem for path in written] == ["compare_val64", "compare_a64", "figure_3", "figure_4"]


def test_two_encoders_of_one_label_are_told_apart() -> None:
    from lit_bump.probing.results import distinct

    two = [result("resnet50", spec=f"torchvision:resnet50:V{n}") for n in (1, 2)]
    assert [one.encoder for one in distinct(two)] == ["torchvision:resnet50:V1", "torchvision:resnet50:V2"]
    again = distinct([result("resnet50"), result("resnet50")])  # of two folders
    assert [one.encoder for one in again] == ["resnet50", "resnet50 (2)"]
