"""A saved run gives the numbers of its callback, and a measurement that was cut short ends as if it had not been."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lit_bump.errors import LitBumpError
from lit_bump.measure import Formation, Profile, Protocol, measure_profile
from lit_bump.measure.extended_ladder import further_etas
from lit_bump.measure.formation import step_file, step_files
from lit_bump.probes import ProbeSet
from lit_bump.runs import SavedRun, measure_run, run_measurement
from lit_bump.runs.run_measurement import chosen_steps
from tests.conftest import RunPython
from tests.runs.tiny_saved_run import Elementwise, saved_by_hand

SHORT = Protocol((0.01, 0.03, 0.1), n_pairs=2, n_jvp=2, estimator="matched")
HALF = ProbeSet.from_tensor(
    0.5 + 1e-3 * torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)), name="half"
)  # where cosine and square are flat
FLIPPED = ProbeSet("flipped", HALF.images.flip(0))


def measured(run: Path, *probes: str | ProbeSet, **options: Any) -> dict[str, Formation]:
    """Return the formations of a run, measured without a bar."""
    return measure_run(run, probes or ["noise2train"], progress=False, **options)


def contents(run: Path) -> dict[str, Any]:
    """Return everything in a run's profiles but the time that it took."""
    found: dict[str, Any] = {}
    for path in sorted((run / "profiles").rglob("*")):
        if path.suffix == ".npz":
            profile = Profile.load(path)
            facts = {name: value for name, value in profile.context.items() if name not in ("seconds", "share")}
            found[str(path.relative_to(run))] = (
                profile.ratio.tobytes(),
                profile.protocol,
                profile.n_forwards.tolist(),
                facts,
            )
        elif path.suffix == ".csv":
            with path.open(newline="") as file:
                found[path.name] = [row | {"seconds": ""} for row in csv.DictReader(file)]
        elif path.is_file():
            found[path.name] = None
    return found


@contextmanager
def count_measurements(fail_at: int | None = None) -> Iterator[list[Protocol]]:
    """Yield a list of the protocols measured; the measurement of that number is interrupted."""
    done: list[Protocol] = []

    def counted(encoder: Any, images: Any, protocol: Protocol, **options: Any) -> Profile:
        if len(done) == fail_at:
            raise KeyboardInterrupt
        done.append(protocol)
        return measure_profile(encoder, images, protocol, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_measurement, "measure_profile", counted)
        yield done


def test_a_checkpoint_gives_the_profile_that_the_callback_saved(run_folder: Path) -> None:
    by_callback = SavedRun.find(run_folder).formations()["noise2train"]
    shutil.rmtree(run_folder / "profiles")
    again = measured(run_folder)["noise2train"]
    assert again.steps == by_callback.steps == (0, 1, 2)
    for old, new in zip(by_callback.profiles, again.profiles, strict=True):
        assert (old.protocol, old.encoder_digest) == (new.protocol, new.encoder_digest)
        np.testing.assert_array_equal(old.ratio, new.ratio)
        for fact in ("step", "epoch", "probe", "probe_source", "probe_digest", "encoder"):
            assert old.context[fact] == new.context[fact]


def test_what_the_callback_saved_is_not_measured_again(run_folder: Path) -> None:
    before = contents(run_folder)
    with count_measurements() as done:
        measured(run_folder)
    assert (done, contents(run_folder)) == ([], before)


def test_the_table_keeps_the_rows_of_other_probe_sets(run_folder: Path) -> None:
    measured(run_folder, "noise2", "shapes2", steps="last")
    rows = contents(run_folder)["formation.csv"]
    labels = [(int(row["step"]), row["probe"]) for row in rows]
    assert labels == [*((n, "noise2train") for n in (0, 1)), (2, "noise2"), (2, "noise2train"), (2, "shapes2")]


def test_a_name_keeps_another_protocol_apart(run_folder: Path) -> None:
    before = contents(run_folder)
    found = measured(run_folder, name="paper", protocol={"n_pairs": 3, "etas": [0.1, 1.0]}, steps=[1])
    assert list(found) == ["paper-noise2train"]
    assert found["paper-noise2train"].profiles[0].context["probe"] == "paper-noise2train"
    after = contents(run_folder)
    assert {name: after[name] for name in before if name.endswith("npz")} == {
        name: before[name] for name in before if name.endswith("npz")
    }


@pytest.mark.parametrize("fail_at", [0, 1, 2, 5])
def test_an_interrupted_measurement_goes_on_where_it_stood(fail_at: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"protocol": SHORT, "model": Elementwise}
    for folder in (tmp_path / "whole", tmp_path / "cut"):
        for step in (0, 1, 4):
            saved_by_hand(folder, Elementwise(), step=step)
    measured(tmp_path / "whole", HALF, FLIPPED, **options)
    with pytest.raises(KeyboardInterrupt), count_measurements(fail_at):
        measured(tmp_path / "cut", HALF, FLIPPED, **options)
    with count_measurements() as done:
        measured(tmp_path / "cut", HALF, FLIPPED, **options)
    assert len(done) == 6 - fail_at
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
    assert len(contents(tmp_path / "cut")) == 6 + 1


def test_a_killed_process_leaves_nothing_that_the_next_does_not_mend(
    run_folder: Path, tmp_path: Path, run_python: RunPython
) -> None:
    whole = Path(shutil.copytree(run_folder, tmp_path / "whole" / "tiny" / "version_0"))
    measured(whole, "noise2", steps="first and last")
    program = f"""
import os, signal
from lit_bump.callbacks.profile_files import ProfileFiles
from lit_bump.runs import measure_run
ProfileFiles.write_table = lambda self, rows: os.kill(os.getpid(), signal.SIGKILL)  # the profile is saved, its row not
measure_run({str(run_folder)!r}, ["noise2"], steps="first and last", progress=False)
"""
    assert run_python("-c", program).returncode == -9
    assert list(step_files(run_folder / "profiles" / "noise2")) == [0]
    measured(run_folder, "noise2", steps="first and last")
    assert contents(run_folder) == contents(whole)


def test_random_streams_are_as_they_were(run_folder: Path) -> None:
    before = torch.get_rng_state()
    measured(run_folder, "noise1", steps="last")
    assert torch.equal(before, torch.get_rng_state())


# Where the ladder ends before the peak.


def test_a_rising_profile_is_extended_by_at_most_twelve_rungs(tmp_path: Path) -> None:
    saved_by_hand(tmp_path, Elementwise("square"))
    with count_measurements() as done:
        found = measured(tmp_path, HALF, protocol=SHORT, extend=True, model=Elementwise)["half"].profiles[0]
    assert [len(protocol.etas) for protocol in done] == [3, 4, 4, 4]
    assert found.etas.tolist() == [*SHORT.etas, *further_etas(SHORT.etas, 12)]
    assert found.bump().verdict == "rising"
    assert Profile.load(step_file(tmp_path, "half", 3)).etas.tolist() == found.etas.tolist()


def test_an_extended_profile_is_that_of_the_long_ladder_and_stops_beyond_the_peak(tmp_path: Path) -> None:
    saved_by_hand(tmp_path, Elementwise("cosine"))
    found = measured(tmp_path, HALF, protocol=SHORT, extend=True, model=Elementwise)["half"].profiles[0]
    assert (found.bump().verdict, len(found.etas)) == ("bump", 3 + 4)
    expected = measure_profile(Elementwise("cosine").forward_features, HALF.images, found.protocol)
    np.testing.assert_allclose(found.ratio, expected.ratio, rtol=1e-5)
    assert found.context["seconds"] == pytest.approx(found.seconds, abs=0.1)


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_an_extension_that_was_cut_short_goes_on(fail_at: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"protocol": SHORT, "extend": True, "model": Elementwise}
    for folder in (tmp_path / "whole", tmp_path / "cut"):
        saved_by_hand(folder, Elementwise("square"))
    measured(tmp_path / "whole", HALF, **options)
    with pytest.raises(KeyboardInterrupt), count_measurements(fail_at):
        measured(tmp_path / "cut", HALF, **options)
    with count_measurements() as done:
        measured(tmp_path / "cut", HALF, **options)
    assert len(done) == 4 - fail_at
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_profile_on_the_plain_ladder_is_extended_later(tmp_path: Path) -> None:
    saved_by_hand(tmp_path, Elementwise("square"))
    measured(tmp_path, HALF, protocol=SHORT, model=Elementwise)
    with count_measurements() as done:
        measured(tmp_path, HALF, protocol=SHORT, extend=True, model=Elementwise)
    assert len(done) == 3
    with pytest.raises(LitBumpError, match=r"12 further rungs, which --extend true takes"):
        measured(tmp_path, HALF, protocol=SHORT, model=Elementwise)


# Which steps.


@pytest.mark.parametrize(
    ("steps", "expected"),
    [("all", [0, 1, 2]), ("last", [2]), ("first and last", [0, 2]), ([2, 1, 2], [1, 2]), ((0,), [0])],
)
def test_steps_are_chosen_in_order_and_once(steps: Any, expected: list[int], run_folder: Path) -> None:
    assert list(chosen_steps(SavedRun.find(run_folder), steps)) == expected


@pytest.mark.parametrize(
    ("steps", "message"),
    [("lst", r"steps is 'lst' \(did you mean 'last'\?\)"), ([0, 5], "no checkpoint of step 5"), ([], "empty list")],
)
def test_wrong_steps_are_refused(steps: Any, message: str, run_folder: Path) -> None:
    with pytest.raises(LitBumpError, match=message):
        chosen_steps(SavedRun.find(run_folder), steps)


# What cannot be measured.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "../x"}, r"name is '\.\./x'"),
        ({"device": "gpu"}, "device 'gpu' cannot be used"),
        ({"encoder": "netwrk"}, r"no submodule or method 'netwrk' \(did you mean 'network'\?\)"),
        ({"protocol": {"n_pair": 3}}, r"a protocol has no 'n_pair'"),
    ],
)
def test_a_wrong_option_is_refused_before_a_file_is_touched(
    options: dict[str, Any], message: str, run_folder: Path
) -> None:
    before = contents(run_folder)
    with pytest.raises(LitBumpError, match=message):
        measured(run_folder, overwrite=True, **options)
    assert contents(run_folder) == before


def test_images_that_do_not_fit_are_named(run_folder: Path) -> None:
    grey = ProbeSet.from_tensor(torch.rand(1, 1, 8, 8), name="grey")
    with pytest.raises(LitBumpError, match=r"probe set 'grey' \(1x8x8\) cannot be measured: "):
        measured(run_folder, grey, steps="last")


def test_an_encoder_without_a_name_has_to_be_named(run_folder: Path) -> None:
    config = run_folder / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("encoder: network.forward_features", "encoder: {class_path: x}"), encoding="utf-8")
    with pytest.raises(LitBumpError, match="has no name in its config: give one"):
        measured(run_folder)


def test_other_weights_are_not_taken_for_the_same(run_folder: Path) -> None:
    path = step_file(run_folder, "noise2train", 2)
    replace(Profile.load(path), encoder_digest="another").save(path)
    with pytest.raises(LitBumpError, match=r"step_00000002\.npz was measured with other weights; give --name"):
        measured(run_folder)
    measured(run_folder, overwrite=True, steps="last")
    assert Profile.load(path).encoder_digest != "another"
    assert Profile.load(run_folder / "profiles.1" / "noise2train" / path.name).encoder_digest == "another"


def test_the_bar_says_what_is_measured(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure_run(run_folder, ["noise2"], steps="last")
    text = capsys.readouterr().err
    assert "tiny/version_0 noise2 step 2 (1 of 1)" in text
    assert "100%" in text
