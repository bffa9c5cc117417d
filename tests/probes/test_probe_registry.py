"""Laws of the named sets: one name, one set of images, on every machine; train and test never meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from lit_bump.errors import LitBumpError
from lit_bump.images import load_cifar10
from lit_bump.images.drawn_shapes import draw_shapes
from lit_bump.images.uniform_noise import noise_images
from lit_bump.probes import PROBE_SETS, ProbeSet, named_probe_set


def pictures(probe: ProbeSet) -> set[bytes]:
    """Return the images as hashable things."""
    return {image.numpy().tobytes() for image in probe.images}


def named(name: str, folder: Path, **options: Any) -> ProbeSet:
    """Return a named set; the fake CIFAR-10 is small, so ask for fewer images."""
    return named_probe_set(name.replace("cifar32", "cifar20"), data_dir=folder, **options)


@pytest.mark.parametrize("name", PROBE_SETS)
def test_every_listed_name_makes_its_set(name: str, cifar_folder: Path) -> None:
    probe = named(name, cifar_folder)
    assert len(probe) == (20 if name.startswith("cifar") else 32)
    assert len(pictures(probe)) == len(probe)
    assert probe == named(name, cifar_folder)
    assert "\n" not in PROBE_SETS[name]


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("shapes32", "e57ec81ec8bb027d42185d08d3676addcf52bfd96d86c3985197465894b24fb8"),
        ("shapes32train", "03f77ca5f7851856950dbaae2674a8b99992746a706021bb53e70986927e7c02"),
        ("shapes32b1", "a03a95daae4fc5a7a4c61125fb1372a5f3e77121f2310ccc4cf07d438f648d19"),
        ("shapes32b2", "135de41d3c39bd9773cfe55b143535d20f6cbe6a4f749b9828275823ac2f0b93"),
        ("noise32", "9b7b11b49f48550116ab2c2d02ecba1c7d2b4847e2bc62acaf3528f27016072b"),
        ("noise32train", "34f2b9708d4bf0a5d30cd0a2d6d4012f7ad053c7b7ce5086b660b179f6c0677e"),
    ],
)
def test_images_are_the_same_on_every_machine(name: str, digest: str) -> None:
    assert named_probe_set(name).digest == digest


@pytest.mark.parametrize("family", ["cifar", "shapes", "noise"])
def test_training_and_test_sets_are_disjoint(family: str, cifar_folder: Path) -> None:
    test, train = (named(f"{family}32{split}", cifar_folder) for split in ("", "train"))
    assert not pictures(test) & pictures(train)


@pytest.mark.parametrize(
    "name", ["cifar{}", "cifar{}train", "cifar{}b1", "shapes{}", "shapes{}b2", "noise{}", "noise{}train"]
)
def test_a_smaller_set_is_the_beginning_of_a_larger_one(name: str, cifar_folder: Path) -> None:
    few, many = (named_probe_set(name.format(n), data_dir=cifar_folder, seed=1).images for n in (8, 30))
    assert torch.equal(few, many[:8])


@pytest.mark.parametrize(
    ("family", "sigma"), [("cifar32", "1"), ("cifar32", "2"), ("shapes32", "2"), ("shapes4", "1.5")]
)
def test_blurred_sets_are_the_same_images_blurred(family: str, sigma: str, cifar_folder: Path) -> None:
    clean, blurred = (named(name, cifar_folder).images for name in (family, f"{family}b{sigma}"))
    expected = gaussian_filter(clean.double().numpy(), float(sigma), mode="mirror", axes=(2, 3))
    np.testing.assert_allclose(blurred.numpy(), expected, atol=1e-6)


def test_sets_come_from_their_split(cifar_folder: Path) -> None:
    for split, name in (("test", "cifar40"), ("train", "cifar40train")):
        images, _ = load_cifar10(cifar_folder, "test" if split == "test" else "train")
        assert pictures(named(name, cifar_folder)) == {(image / 255).numpy().tobytes() for image in images}
    test, _ = draw_shapes(32, seed=0, split="test")
    assert torch.equal(named_probe_set("shapes32").images, test / 255)
    train, _ = draw_shapes(32, seed=7)
    assert torch.equal(named_probe_set("shapes32train", shapes_seed=7).images, train / 255)


def test_small_sets_hold_each_class_equally(cifar_folder: Path) -> None:
    images, labels = load_cifar10(cifar_folder, "test")
    label_of = {(image / 255).numpy().tobytes(): int(label) for image, label in zip(images, labels, strict=True)}
    drawn = [label_of[image.numpy().tobytes()] for image in named("cifar20", cifar_folder).images]
    assert sorted(drawn) == sorted(list(range(10)) * 2)


def test_training_noise_follows_its_own_seed() -> None:
    train = named_probe_set("noise32train", noise_seed=5)
    assert torch.equal(train.images, noise_images(range(32), seed=5))
    assert named_probe_set("noise32train", noise_seed=5, seed=9) == train
    assert named_probe_set("noise32", noise_seed=5) == named_probe_set("noise32")


@pytest.mark.parametrize("name", ["cifar32", "cifar32train", "shapes32", "shapes32train", "noise32"])
def test_the_seed_decides_the_draw(name: str, cifar_folder: Path) -> None:
    zero, one = (named(name, cifar_folder, seed=seed) for seed in (0, 1))
    assert zero.digest != one.digest


def test_cifar_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match="probe set 'cifar32b1' needs CIFAR-10: give data_dir"):
        named_probe_set("cifar32b1")
    with pytest.raises(LitBumpError, match="no CIFAR-10 in "):
        named_probe_set("cifar32", data_dir=tmp_path)


def test_too_many_images_are_refused(cifar_folder: Path) -> None:
    with pytest.raises(LitBumpError, match="'cifar41': the test split has only 40 images"):
        named_probe_set("cifar41", data_dir=cifar_folder)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cifar32blur1", "did you mean 'cifar32b1'"),
        ("shape32", "did you mean 'shapes32'"),
        ("noise32b1", "did you mean 'noise32'"),
        ("cifar32trainb1", "did you mean 'cifar32train'"),
        ("cifar0", "did you mean"),
        ("shapes32b0", "did you mean 'shapes32"),
        ("cifar", "did you mean 'cifar32'"),
        ("imagenet", "valid: cifar32, "),
        ("", "valid: cifar32, "),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(LitBumpError, match=rf"no probe set '{name}' \({hint}"):
        named_probe_set(name)
