"""Rungs measured afterwards are those of the long ladder, whatever the portions in which they came."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, measure_profile
from lit_bump.measure.extended_ladder import further_etas, joined_rungs, n_further_rungs
from tests.measure.tiny_encoders import NETS, random_images, seeded

SHORT = Protocol((0.01, 0.1, 1.0), n_pairs=20, n_jvp=5, n_noise=2)  # more pairs than one block of directions
ARRAYS = ("ratio", "response", "prediction", "standard_error", "noise", "n_directions", "reason")


def joined(net: str, *portions: int, first_image: int = 0) -> Profile:
    """Return a profile on the short ladder, with rungs joined in portions."""
    encoder, images = seeded(NETS[net]), random_images(3)
    profile = measure_profile(encoder, images, SHORT, first_image=first_image, chunk=16)
    for n_more in portions:
        n_further = len(profile.etas) - len(SHORT.etas)
        etas = further_etas(SHORT.etas, n_further + n_more)[n_further:]
        further = measure_profile(encoder, images, replace(SHORT, etas=etas), first_image=first_image, chunk=16)
        profile = joined_rungs(profile, further)
    return profile


@pytest.mark.parametrize("net", NETS)
def test_joined_profile_equals_that_of_the_long_ladder(net: str) -> None:
    profile = joined(net, 2, 1, first_image=2)
    long = replace(SHORT, etas=SHORT.etas + further_etas(SHORT.etas, 3))
    expected = measure_profile(seeded(NETS[net]), random_images(3), long, first_image=2, chunk=16)
    assert profile.protocol == expected.protocol
    assert profile.etas.tolist() == list(long.etas)
    for name in ARRAYS:
        tolerance = 0.5 if name == "noise" else 1e-5  # the noise is an estimate on a few directions
        np.testing.assert_allclose(getattr(profile, name), getattr(expected, name), rtol=tolerance, err_msg=name)
    assert profile.bump().verdict == expected.bump().verdict


def test_joined_profile_is_saved_and_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    profile = joined("gelu", 2)
    path = profile.save(tmp_path_factory.mktemp("saved") / "p.npz")
    np.testing.assert_array_equal(Profile.load(path).ratio, profile.ratio)
    short = measure_profile(seeded(NETS["gelu"]), random_images(3), SHORT)
    assert (profile.n_forwards > short.n_forwards).all()


def test_further_rungs_keep_the_spacing_and_do_not_depend_on_their_number() -> None:
    etas = Protocol.paper().etas
    many = further_etas(etas, 12)
    assert further_etas(etas, 4) == many[:4]
    np.testing.assert_allclose(np.diff(np.log10([*etas, *many])), 0.25)


def test_a_ladder_of_one_rung_has_no_spacing() -> None:
    with pytest.raises(LitBumpError, match=r"a ladder of one rung, 0\.5, has no spacing"):
        further_etas((0.5,), 1)
    assert n_further_rungs(Protocol((0.5,)), Protocol((0.5, 1.0))) is None


def test_a_longer_protocol_is_told_from_another() -> None:
    long = replace(SHORT, etas=SHORT.etas + further_etas(SHORT.etas, 4))
    assert n_further_rungs(SHORT, SHORT) == 0
    assert n_further_rungs(SHORT, long) == 4
    assert n_further_rungs(long, SHORT) is None
    for other in (replace(long, seed=1), replace(long, etas=(*SHORT.etas, 20.0)), replace(long, etas=long.etas[1:])):
        assert n_further_rungs(SHORT, other) is None


def test_what_does_not_belong_together_is_not_joined() -> None:
    encoder, images = seeded(NETS["linear"]), random_images(2)
    first = measure_profile(encoder, images, SHORT)
    higher = replace(SHORT, etas=further_etas(SHORT.etas, 1))
    for further in (
        measure_profile(encoder, images, replace(higher, seed=1)),
        measure_profile(encoder, random_images(2, seed=1), higher),
        measure_profile(seeded(NETS["linear"], seed=1), images, higher),
    ):
        with pytest.raises(LitBumpError, match="different protocols, encoders or images"):
            joined_rungs(first, further)
    with pytest.raises(LitBumpError, match=r"rungs from 0\.01 on do not follow a ladder up to 1"):
        joined_rungs(first, first)
