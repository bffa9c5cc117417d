"""Laws of the variants: what changes, what stays, and which seed decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonargparse import ArgumentParser
from scipy.ndimage import gaussian_filter

from lit_bump import datamodules
from lit_bump.datamodules import (
    BlurredShapesDataModule,
    NoiseShapesDataModule,
    PermutedLabelsShapesDataModule,
    ShapesDataModule,
)
from lit_bump.errors import LitBumpError
from lit_bump.images.drawn_shapes import draw_shapes
from lit_bump.images.uniform_noise import noise_images

SMALL: dict[str, Any] = {"n_train": 60, "n_test": 20}


def training_set(data: ShapesDataModule) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is trained on, as it is stored."""
    data.setup("fit")
    return data._sets["train"].images, data._sets["train"].labels


@pytest.mark.parametrize("sigma", [1, 2.0])
def test_training_images_are_blurred_once_and_not_quantised(sigma: float) -> None:
    images, labels = training_set(BlurredShapesDataModule(sigma=sigma, **SMALL))
    clean, clean_labels = draw_shapes(60, seed=0)
    expected = gaussian_filter(clean.double().numpy() / 255, sigma, mode="mirror", axes=(2, 3))
    np.testing.assert_allclose(images.numpy(), expected, atol=1e-6)
    assert float((images * 255 - (images * 255).round()).abs().max()) > 0.4
    assert torch.equal(labels, clean_labels)


def test_test_images_are_clean_unless_asked() -> None:
    clean, _ = draw_shapes(20, seed=0, split="test")
    for blur_test in (False, True):
        ((images, _),) = BlurredShapesDataModule(sigma=1, blur_test=blur_test, **SMALL).test_dataloader()
        assert torch.equal(images, clean / 255) != blur_test


def test_training_blur_is_probe_blur() -> None:
    data = BlurredShapesDataModule(sigma=2, blur_test=True, **SMALL)
    ((images, _),) = data.test_dataloader()
    assert torch.equal(images, data.probe_set("shapes20b2").images)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), subset=st.integers(10, 60))
def test_permuting_keeps_counts_and_images(seed: int, subset: int) -> None:
    plain = training_set(ShapesDataModule(subset=subset, **SMALL))
    permuted = training_set(PermutedLabelsShapesDataModule(permutation_seed=seed, subset=subset, **SMALL))
    assert torch.equal(permuted[0], plain[0])
    assert torch.equal(permuted[1].bincount(minlength=10), plain[1].bincount(minlength=10))


def test_permuted_labels_are_unrelated_to_the_true_ones() -> None:
    _, labels = training_set(PermutedLabelsShapesDataModule(n_train=2000, n_test=1))
    assert float((labels == torch.arange(2000) % 10).float().mean()) == pytest.approx(0.1, abs=0.03)


def test_only_their_own_seed_decides_labels_and_noise() -> None:
    def labels(**options: Any) -> list[int]:
        return training_set(PermutedLabelsShapesDataModule(**SMALL, **options))[1].tolist()

    assert labels() == labels(seed=9, num_workers=2, batch_size=3) != labels(permutation_seed=1)

    def noise(**options: Any) -> torch.Tensor:
        return training_set(NoiseShapesDataModule(**SMALL, **options))[0]

    assert torch.equal(noise(), noise(seed=9, num_workers=2, shapes_seed=4))
    assert not torch.equal(noise(), noise(noise_seed=1))


def test_noise_replaces_training_images_alone() -> None:
    data = NoiseShapesDataModule(noise_seed=4, **SMALL)
    images, labels = training_set(data)
    assert torch.equal(images, noise_images(range(60), seed=4))
    assert torch.equal(labels, torch.arange(60) % 10)
    ((test, _),) = data.test_dataloader()
    assert torch.equal(test, draw_shapes(20, seed=0, split="test")[0] / 255)


@pytest.mark.parametrize("options", [{}, {"subset": 40}, {"n_val": 10}])
def test_training_noise_probes_are_training_images(options: dict[str, Any]) -> None:
    data = NoiseShapesDataModule(noise_seed=4, **SMALL, **options)
    probe = data.probe_set("noise32train").images
    assert torch.equal(training_set(data)[0][:32], probe)
    assert float((data.probe_set("noise32").images - probe).abs().flatten(1).max(1).values.min()) > 0.5


def test_held_out_images_keep_their_labels_and_pixels() -> None:
    plain = ShapesDataModule(n_val=20, **SMALL)
    for kind in (BlurredShapesDataModule, PermutedLabelsShapesDataModule, NoiseShapesDataModule):
        ((images, labels),) = kind(n_val=20, **SMALL).val_dataloader()
        ((expected, expected_labels),) = plain.val_dataloader()
        assert torch.equal(images, expected)
        assert torch.equal(labels, expected_labels)


def test_only_the_two_controls_turn_augmentation_off() -> None:
    assert ShapesDataModule().augment
    assert BlurredShapesDataModule().augment
    assert not PermutedLabelsShapesDataModule().augment
    assert not NoiseShapesDataModule().augment
    assert PermutedLabelsShapesDataModule(augment=True).augment


@pytest.mark.parametrize("name", [name for name in datamodules.__all__ if name != "ImageDataModule"])
def test_the_command_line_shows_and_sets_every_option(name: str) -> None:
    parser = ArgumentParser()
    parser.add_class_arguments(getattr(datamodules, name), "data")
    shown = parser.format_help()
    expected: dict[str, Any] = {"batch_size": 3, "num_workers": 1, "subset": 2, "n_val": 1, "augment": True, "seed": 4}
    expected |= {"data_dir": "here", "download": True} if "CIFAR10" in name else {"n_train": 9, "shapes_seed": 5}
    own: dict[str, dict[str, Any]] = {
        "Blurred": {"sigma": 2.0, "blur_test": True},
        "Permuted": {"permutation_seed": 6},
        "Noise": {"noise_seed": 7},
    }
    expected |= next((options for prefix, options in own.items() if name.startswith(prefix)), {})
    arguments = [f"--data.{option}={str(value).lower()}" for option, value in expected.items()]
    parsed = parser.parse_args(arguments)
    for option, value in expected.items():
        assert f"--data.{option} " in shown
        assert parsed.data[option] == value
    data = getattr(datamodules, name)(**parsed.data)
    assert {option: str(getattr(data, option)) for option in expected} == {
        o: str(value) for o, value in expected.items()
    }
    for line in ("images a batch and device", "seed of the shuffling"):
        assert line in " ".join(shown.split())


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (BlurredShapesDataModule, {"sigma": -1.0}, "sigma=-1.0 of the Gaussian blur"),
        (PermutedLabelsShapesDataModule, {"permutation_seed": -1}, "permutation_seed=-1 is not a seed"),
        (NoiseShapesDataModule, {"noise_seed": -1}, "noise_seed=-1 is not a seed"),
    ],
)
def test_bad_options_are_refused_at_once(kind: type[ShapesDataModule], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        kind(**options)
