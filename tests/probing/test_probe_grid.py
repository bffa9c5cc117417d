"""Laws of the grid: numbers do not depend on interruptions or processes, and nothing is mixed up or measured twice."""

from __future__ import annotations

import csv
import importlib
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, measure_profile
from lit_bump.probes import image_set
from lit_bump.probing import IncompleteProbeError, is_probe_folder, load_results, probe
from lit_bump.probing.probe_cell import ProbeCell
from lit_bump.probing.results import slug

SMALL, OTHER, BROKEN = (f"import:tests.probing.tiny_encoders.{name}" for name in ("small", "other", "broken"))
IMAGES = "shapes32@n=20"  # three blocks
FEW: dict[str, Any] = {"estimator": "matched", "n_pairs": 3, "etas": [0.01, 0.1, 1.0, 4.0]}
ROOT = Path(__file__).resolve().parent.parent.parent


def measured(out: Path, encoders: list[str] | None = None, **options: Any) -> Any:
    """Measure with little work.

    Returns:
        The results.

    """
    return probe(encoders or [SMALL], [IMAGES], out=out, **{"protocol": FEW, "progress": False, **options})


def same(first: Profile, second: Profile) -> None:
    """Compare two profiles bit by bit."""
    for name in ("ratio", "response", "prediction", "standard_error", "noise", "n_directions"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.image_digests == second.image_digests


def command(out: Path, *more: str) -> list[str]:
    """Return the command line of the same measurement."""
    protocol = [f"--protocol.{name}={value}" for name, value in FEW.items()]
    return [
        sys.executable, "-m", "lit_bump", "probe", "--encoder", SMALL, "--images", IMAGES, "--out", str(out), *protocol,
        "--figures", "false", *more,
    ]  # fmt: skip


def test_the_profile_is_that_of_a_plain_measurement(tmp_path: Path) -> None:
    from lit_bump.encoders import load_encoder

    (result,) = measured(tmp_path)
    encoder = load_encoder(SMALL)
    images = image_set(IMAGES).prepared(encoder.preprocessing).images
    plain = measure_profile(encoder, images, result.profile.protocol, progress=False)
    np.testing.assert_allclose(result.profile.ratio, plain.ratio, rtol=1e-4)
    assert result.profile.image_digests == plain.image_digests
    assert result.facts["weights_digest"] == encoder.weights_digest


def test_files_are_tidy(tmp_path: Path) -> None:
    (result,) = measured(tmp_path)
    rows = list(csv.DictReader((tmp_path / "profiles.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == result.profile.ratio.size
    row = rows[4 * 3 + 2]
    assert (row["image"], row["rung"], row["file"]) == ("3", "2", "item 3")
    assert float(row["ratio"]) == pytest.approx(result.profile.ratio[3, 2], rel=1e-6)
    assert float(row["eta_per_pixel"]) == pytest.approx(1.0 / math.sqrt(3 * 8 * 8), rel=1e-6)
    (summary,) = csv.DictReader((tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines())
    assert summary["verdict"] == str(result.profile.bump().verdict)
    assert (tmp_path / "manifests" / "shapes20.json").is_file()
    assert not list((tmp_path / "parts").rglob("*.npz"))
    assert is_probe_folder(tmp_path)


def test_nothing_is_measured_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(tmp_path)
    monkeypatch.setattr(ProbeCell, "measure", lambda *_args, **_options: pytest.fail("measured again"))
    (result,) = measured(tmp_path)
    assert result.encoder == "small"


@pytest.mark.slow
def test_a_killed_command_goes_on_with_the_same_numbers(tmp_path: Path) -> None:
    whole = measured(tmp_path / "whole")[0].profile
    out, environment = tmp_path / "killed", {**os.environ, "LIT_BUMP_TEST_KILL": str(tmp_path / "killed")}
    killed = subprocess.run(command(out), cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    parts = {path: path.stat().st_mtime_ns for path in out.rglob("images_*.npz")}
    assert len(parts) == 2
    with pytest.raises(LitBumpError, match="no finished profile"):
        load_results(out)
    calls: list[Any] = []
    measure = ProbeCell.measure

    def counted(self: ProbeCell, blocks: Any, **options: Any) -> None:
        calls.append(blocks)
        measure(self, blocks, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProbeCell, "measure", counted)
        again = measured(out)[0].profile
    assert calls == [[(16, 20)]]
    same(again, whole)


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(tmp_path: Path) -> None:
    one = measured(tmp_path / "one")[0].profile
    out = tmp_path / "two"
    more = ("--devices", "2", "--accelerator", "cpu")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command(out, *more), cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr
    same(load_results(out)[0].profile, one)


def test_other_weights_images_or_protocol_are_refused_and_replaced_when_told(tmp_path: Path) -> None:
    measured(tmp_path)
    with pytest.raises(LitBumpError, match=r"is of other protocol \(.*\): give --overwrite true or another --out"):
        measured(tmp_path, protocol={**FEW, "n_pairs": 4})
    (result,) = measured(tmp_path, protocol={**FEW, "n_pairs": 4}, overwrite=True)
    assert result.profile.protocol.n_pairs == 4


def test_profiles_of_two_protocols_are_not_mixed_unless_told(tmp_path: Path) -> None:
    measured(tmp_path)
    with pytest.raises(LitBumpError, match=r"holds another protocol .*--allow_mixed_protocols true"):
        measured(tmp_path, [OTHER], protocol={**FEW, "n_pairs": 4})
    measured(tmp_path, [OTHER], protocol={**FEW, "n_pairs": 4}, allow_mixed_protocols=True)
    assert [result.encoder for result in load_results(tmp_path)] == ["small", "other"]


def test_blocks_of_another_measurement_are_not_taken(tmp_path: Path) -> None:
    from lit_bump.callbacks.protocol_choice import chosen_protocol
    from lit_bump.encoders import load_encoder

    images = image_set(IMAGES)
    keys = set()
    for spec in (SMALL, OTHER):
        for blurred in (images, images.blurred(1.0, name=images.name)):
            for n_pairs in (3, 4):
                encoder = load_encoder(spec)
                protocol = chosen_protocol({**FEW, "n_pairs": n_pairs}, encoder.input_size)
                keys.add(ProbeCell(encoder, blurred, protocol, tmp_path).key)
    assert len(keys) == 8


def test_an_edited_function_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for power in (1, 3):
        (tmp_path / "own_code.py").write_text(f"def encoder():\n    return lambda x: (x ** {power}).flatten(1)\n")
        sys.modules.pop("own_code", None)
        importlib.invalidate_caches()
        options: dict[str, Any] = {"out": tmp_path / "out", "protocol": FEW, "progress": False}
        if power == 1:
            (first,) = probe(["import:own_code.encoder@size=8"], ["shapes32@n=2"], **options)
            continue
        with pytest.raises(LitBumpError, match="is of other weights"):
            probe(["import:own_code.encoder@size=8"], ["shapes32@n=2"], **options)
        (second,) = probe(["import:own_code.encoder@size=8"], ["shapes32@n=2"], overwrite=True, **options)
    assert not np.allclose(first.profile.ratio, second.profile.ratio)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LitBumpError, match=r"is a file: give a folder|cannot be written to"):
        measured(tmp_path / "file" / "out")


def test_one_bad_encoder_costs_only_itself(tmp_path: Path) -> None:
    with pytest.raises(
        IncompleteProbeError, match=r"1 of 2 profiles could not be measured; broken on .*a fault of its own"
    ) as caught:
        measured(tmp_path, [BROKEN, SMALL], protocol={**FEW, "etas": [0.01, 1.0, 500.0]})
    assert [result.encoder for result in caught.value.results] == ["small"]
    assert [result.encoder for result in load_results(tmp_path)] == ["small"]


def test_what_is_wrong_is_said_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProbeCell, "measure", lambda *_args, **_options: pytest.fail("measured"))
    for encoders, images, says in (
        ([SMALL, "timmm:x"], [IMAGES], "did you mean 'timm'"),
        ([SMALL], [IMAGES, "val46:x"], "did you mean 'val64'"),
        ([], [IMAGES], "no encoder given"),
        ([SMALL], [], "no image set given"),
    ):
        with pytest.raises(LitBumpError, match=says):
            probe(encoders, images, out=tmp_path, progress=False)
    with pytest.raises(LitBumpError, match="no CUDA device"):
        measured(tmp_path, accelerator="gpu")


def test_two_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"two different image sets are called 'shapes2'.*@name=OTHER"):
        probe([SMALL], ["shapes32@n=2", "shapes32@n=2,seed=1"], out=tmp_path, protocol=FEW, progress=False)


def test_a_profile_of_images_that_are_no_longer_the_set_is_left_out(tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path, "protocol": FEW, "progress": False}
    probe([SMALL, OTHER], ["shapes32@n=2"], **options)
    probe([SMALL], ["shapes32@n=2,seed=1"], overwrite=True, **options)
    assert [result.encoder for result in load_results(tmp_path)] == ["small"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "no record of a probe|cannot be read"),
        ("junk", "cannot be read"),
        ('{"format": 1, "encoders": [{"slug": "../x", "label": "", "facts": {}}], "images": []}', "no record"),
    ],
)
def test_a_foreign_record_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "probe.json").write_text(text)
    with pytest.raises(LitBumpError, match=says):
        load_results(tmp_path)


@pytest.mark.parametrize("spec", ["ckpt:/a/b.ckpt", "ckpt:/a-b.ckpt", "timm:x@layer=a", "x" * 300, "ckpt:../../etc"])
def test_slugs_name_one_folder_each(spec: str) -> None:
    found = slug(spec)
    assert Path(found).name == found
    assert 0 < len(found) <= 80
    assert found != slug(spec + "/")
