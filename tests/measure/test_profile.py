"""The record: it comes back as it was saved, appears whole or not at all, and says what is undefined."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, Reason
from tests.profile_cost import made_up_cost


def _profile(n_images: int = 3, n_rungs: int = 5, seed: int = 0) -> Profile:
    rng = np.random.default_rng(seed)
    shape = (n_images, n_rungs)
    reason = rng.choice([0, 0, 0, 1, 2, 3], shape).astype(np.int8)
    return Profile(
        etas=np.geomspace(0.01, 1.0, n_rungs),
        ratio=np.where(reason == 0, rng.random(shape) + 0.5, np.nan),
        response=rng.random(shape),
        prediction=rng.random(n_images),
        standard_error=rng.random(shape),
        noise=rng.random(shape) * 1e-12,
        n_directions=np.full(shape, 8),
        **made_up_cost(shape),
        reason=reason,
        protocol=Protocol(tuple(np.geomspace(0.01, 1.0, n_rungs)), n_pairs=4, n_jvp=4),
        encoder_digest="ab" * 32,
        image_digests=tuple(f"{seed}-{i}" for i in range(n_images)),
        noise_method="float64 twin",
        seconds=1.5,
        context={"step": 400, "probe": "shapes32", "note": "η"},
    )


def _assert_equal(one: Profile, other: Profile) -> None:
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(other, name))
            assert value.dtype == getattr(other, name).dtype
        else:
            assert value == getattr(other, name)


def test_a_saved_profile_comes_back_equal(tmp_path: Path) -> None:
    profile = _profile()
    path = profile.save(tmp_path / "new" / "folder" / "step_00000400.npz")
    _assert_equal(Profile.load(path), profile)
    assert [file.name for file in path.parent.iterdir()] == ["step_00000400.npz"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_file_holds_no_pickle(tmp_path: Path) -> None:
    path = _profile().save(tmp_path / "profile.npz")
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                np.lib.format.read_array(member, allow_pickle=False)


def test_saving_replaces_an_older_file(tmp_path: Path) -> None:
    path = _profile(seed=0).save(tmp_path / "profile.npz")
    _profile(seed=1).save(path)
    _assert_equal(Profile.load(path), _profile(seed=1))


@pytest.mark.parametrize("failure", [OSError("no space left on device"), KeyboardInterrupt()])
def test_a_save_that_is_cut_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def cut(_descriptor: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(type(failure), match=r"no space|^$"):
        _profile().save(tmp_path / "profile.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_is_cut_off_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _profile(seed=0).save(tmp_path / "profile.npz")

    def cut(_descriptor: int) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="input/output error"):
        _profile(seed=1).save(path)
    _assert_equal(Profile.load(path), _profile(seed=0))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [np.int64(3), np.float32(0.5), torch.tensor(2.0)])
def test_numbers_of_numpy_and_torch_may_stand_in_the_context(tmp_path: Path, value: object) -> None:
    path = _profile().with_context(value=value).save(tmp_path / "profile.npz")
    assert Profile.load(path).context["value"] == float(value)  # type: ignore[arg-type]


def test_anything_else_in_the_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"context holds <object object.*give text and numbers only"):
        _profile().with_context(value=object()).save(tmp_path / "profile.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"there is no saved profile at .*missing\.npz"):
        Profile.load(tmp_path / "missing.npz")
    with pytest.raises(LitBumpError, match="there is no saved profile at"):
        Profile.load(tmp_path)


def _npz(**arrays: np.ndarray) -> bytes:
    import io

    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _pickled() -> bytes:
    import io

    stream = io.BytesIO()
    np.savez(stream, facts=np.array([{"a": object}], dtype=object))
    return stream.getvalue()


def _bare_array() -> bytes:
    import io

    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


FOREIGN = {
    "empty": b"",
    "html": b"<!DOCTYPE html>\n<html><body>\n404: not found\n</body></html>\n",
    "text": b"etas,ratio\n1,2\n",
    "zip": b"PK\x03\x04" + bytes(60),
    "other arrays": _npz(weights=np.zeros(3)),
    "facts that are no json": _npz(facts=np.array("{")),
    "facts that are a list": _npz(facts=np.array("[1]")),
    "bare array": _bare_array(),
    "pickle": _pickled(),
}


@pytest.mark.parametrize("kind", list(FOREIGN))
def test_a_foreign_file_is_named_in_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "profile.npz"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(LitBumpError, match=r"profile\.npz is not a saved profile") as caught:
        Profile.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_named(tmp_path: Path, share: float) -> None:
    path = _profile().save(tmp_path / "profile.npz")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(LitBumpError, match=r"profile\.npz is not a saved profile"):
        Profile.load(path)


def test_a_damaged_byte_is_noticed(tmp_path: Path) -> None:
    profile = _profile()
    path = profile.save(tmp_path / "profile.npz")
    data = bytearray(path.read_bytes())
    at = data.index(profile.response.tobytes())
    data[at + 3] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(LitBumpError, match=r"profile\.npz is not a saved profile"):
        Profile.load(path)


def _rewritten(path: Path, old: str, new: str) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    arrays["facts"] = np.array(str(arrays["facts"]).replace(old, new))
    np.savez(path, **arrays)


def test_a_newer_format_is_said_before_its_unknown_parts(tmp_path: Path) -> None:
    path = _profile().save(tmp_path / "profile.npz")
    _rewritten(path, '"format": 2, "protocol": {', '"format": 3, "protocol": {"temperature": 1, ')
    with pytest.raises(LitBumpError, match=r"profile\.npz.*format is 3, not 2: read it with the version that wrote it"):
        Profile.load(path)


def test_arrays_that_do_not_fit_the_protocol_are_damage(tmp_path: Path) -> None:
    profile = _profile()
    path = profile.save(tmp_path / "profile.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, "etas": arrays["etas"] * 2})
    with pytest.raises(LitBumpError, match=r"profile\.npz.*its etas are not those of its protocol"):
        Profile.load(path)


def test_median_and_quantiles_are_those_of_numpy() -> None:
    profile = replace(_profile(7), ratio=np.random.default_rng(1).random((7, 5)), reason=np.zeros((7, 5), np.int8))
    np.testing.assert_allclose(profile.median(), np.median(profile.ratio, axis=0))
    np.testing.assert_allclose(
        profile.quantiles([0.25, 0.5, 0.75]), np.quantile(profile.ratio, [0.25, 0.5, 0.75], axis=0)
    )
    assert profile.n_kept().tolist() == [7] * 5


def test_discarded_ratios_are_left_out_and_counted() -> None:
    profile = _profile(9)
    ratio = profile.ratio.copy()
    ratio[:, 1] = np.nan
    profile = replace(profile, ratio=ratio)
    np.testing.assert_allclose(profile.quantiles([0.5])[0], profile.median())
    assert np.isnan(profile.median()[1])
    assert np.isnan(profile.quantiles([0.1, 0.9])[:, 1]).all()
    assert profile.n_kept()[1] == 0
    assert sum(profile.reasons().values()) == int((profile.reason != Reason.KEPT).sum())
    assert "noise" in str(profile)


def test_parts_join_in_order() -> None:
    parts = [_profile(2, seed=1), _profile(3, seed=2)]
    joined = Profile.concatenate(parts)
    assert joined.n_images == 5
    np.testing.assert_array_equal(joined.ratio, np.concatenate([part.ratio for part in parts]))
    assert joined.image_digests == parts[0].image_digests + parts[1].image_digests
    assert (joined.n_forwards.tolist(), joined.n_jvps.tolist(), joined.seconds) == ([10] * 5, [12] * 5, 1.5)
    assert joined.forward_equivalents.tolist() == [34.0] * 5
    assert joined.images_digest != parts[0].images_digest


def test_parts_of_different_measurements_are_refused() -> None:
    one = _profile()
    for other in (replace(one, encoder_digest="cd"), replace(one, protocol=replace(one.protocol, seed=1))):
        with pytest.raises(LitBumpError, match="different protocols or encoders cannot be joined"):
            Profile.concatenate([one, other])
    with pytest.raises(LitBumpError, match="there are no profiles to join"):
        Profile.concatenate([])


def test_context_grows_without_changing_the_original() -> None:
    profile = _profile()
    assert profile.with_context(step=5).context == {**profile.context, "step": 5}
    assert profile.context["step"] == 400
