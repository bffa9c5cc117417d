"""The benchmarks run, on the smallest of everything; what they measure is never asserted here, least of all times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.__main__ import main
from benchmarks.naive import naive_profile
from benchmarks.shared import Setting, Table, update_results
from lit_bump.measure import Protocol, measure_profile
from lit_bump.measure.directions import directions


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("engine", "| ResNet-18 width 4 | obvious |"),
        ("everything", "| ResNet-18 width 4 | 2 steps on shapes"),
        ("denominators", "| exact, torch.func.jacrev | 0 |"),
        ("tab", "| answer with all points, ms | 1 |"),
        ("overhead", "| the step itself |"),
    ],
)
def test_part_writes_its_table(part: str, row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "RESULTS.md"
    main([part, "--budget", "tiny", "--repeats", "1", "--cache", str(tmp_path), "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    assert f"## {part}" in text
    assert row in text
    assert text.split(f"## {part}")[1].strip() in capsys.readouterr().out


def test_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["engines"])
    assert "no part 'engines'" in capsys.readouterr().err


def test_section_is_replaced_and_others_stay(tmp_path: Path) -> None:
    out = tmp_path / "RESULTS.md"
    for part, section in (("b", "old"), ("a", "first"), ("b", "new")):
        update_results(out, part, section)
    text = out.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.index("## a\n\nfirst") < text.index("## b\n\nnew")


def test_table_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("title", ("name", "value"))
    table.add("x", 1234.5)
    assert table.markdown() == "**title**\n\n| name | value |\n|---|---|\n| x | 1,234 |\n"
    assert capsys.readouterr().out == ""
    assert Setting("tiny").pick(1, 2, 3) == 1


def test_obvious_code_agrees_with_the_paper_protocol() -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.Tanh(), nn.Linear(16, 8)).eval()
    image = torch.rand(3, 4, 4)
    protocol = Protocol(etas=(0.1, 1.0, 3.0), n_pairs=64, n_jvp=16)
    profile = measure_profile(encoder, image[None], protocol, progress=False)
    half = directions(0, 64, 48, seed=0, image=0).view(-1, 3, 4, 4)
    obvious = naive_profile(encoder, image, protocol.etas, half, 16)
    np.testing.assert_allclose(obvious.ratio.numpy(), profile.ratio[0], rtol=1e-4)
    np.testing.assert_allclose(
        obvious.relative_error(64, 16).numpy(), profile.standard_error[0] / profile.ratio[0], rtol=1e-3
    )
