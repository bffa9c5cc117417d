"""The formation of a run: its steps in order, each once, read from whole files alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import Formation, Profile, Protocol, load_formation, measure_profile
from lit_bump.measure.formation import step_file, step_files


def tiny_profile(etas: tuple[float, ...] = (0.1, 1.0, 2.0)) -> Profile:
    images = torch.rand(2, 1, 3, 3, generator=torch.Generator().manual_seed(0))
    protocol = Protocol(etas, n_pairs=2, n_jvp=2, estimator="matched", n_noise=1)
    return measure_profile(nn.Flatten(), images, protocol, progress=False)


def test_saved_profiles_come_back_by_probe_set_in_order_of_their_steps(tmp_path: Path) -> None:
    profile = tiny_profile()
    for step in (1000, 0, 31):
        profile.with_context(step=step).save(step_file(tmp_path, "a", step))
    profile.save(step_file(tmp_path, "b", 7))
    formations = load_formation(tmp_path)
    assert list(formations) == ["a", "b"]
    assert formations["a"].steps == (0, 31, 1000)
    assert [p.context["step"] for p in formations["a"].profiles] == [0, 31, 1000]
    np.testing.assert_array_equal(formations["b"].profiles[0].ratio, profile.ratio)


def test_unfinished_and_foreign_files_are_passed_over(tmp_path: Path) -> None:
    path = step_file(tmp_path, "a", 3)
    tiny_profile().save(path)
    for name in (".step_00000004.npz.x.partial", "step_4.npz", "step_00000005.npz.tmp", "formation.png"):
        (path.parent / name).write_bytes(b"half")
    assert list(step_files(path.parent)) == [3]
    assert load_formation(tmp_path)["a"].steps == (3,)


def test_steps_beyond_eight_digits_sort_as_numbers(tmp_path: Path) -> None:
    for step in (999_999_999, 1_000):
        tiny_profile().save(step_file(tmp_path, "a", step))
    assert load_formation(tmp_path)["a"].steps == (1_000, 999_999_999)


def test_a_folder_without_profiles_names_the_runs_beneath_it(tmp_path: Path) -> None:
    tiny_profile().save(step_file(tmp_path / "logs" / "version_0", "a", 0))
    with pytest.raises(FileNotFoundError, match=r"holds no profiles.*did you mean .*version_0"):
        load_formation(tmp_path / "logs")
    with pytest.raises(FileNotFoundError, match=r"no such folder.*version_0"):
        load_formation(tmp_path / "logs" / "version_1")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = step_file(tmp_path, "a", 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a file")
    with pytest.raises(LitBumpError, match=r"step_00000000\.npz"):
        load_formation(tmp_path)


def test_medians_and_bumps_have_one_entry_a_step() -> None:
    profile = tiny_profile()
    formation = Formation((0, 5), (profile, profile))
    assert len(formation) == 2
    np.testing.assert_array_equal(formation.medians(), np.stack([profile.median()] * 2))
    assert [bump.verdict for bump in formation.bumps()] == [profile.bump().verdict] * 2
    assert Formation((), ()).medians().shape == (0, 0)


@pytest.mark.parametrize(
    ("steps", "message"),
    [((0,), "1 steps and 2 profiles"), ((3, 3), "3 before 3"), ((3, 1), "3 before 1"), ((-1, 1), "begin at -1")],
)
def test_steps_out_of_order_are_refused(steps: tuple[int, ...], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        Formation(steps, (tiny_profile(),) * 2)


def test_medians_of_different_ladders_are_refused() -> None:
    formation = Formation((0, 5), (tiny_profile(), tiny_profile((0.1, 1.0))))
    with pytest.raises(LitBumpError, match="step 5 was measured on another ladder than step 0"):
        formation.medians()
