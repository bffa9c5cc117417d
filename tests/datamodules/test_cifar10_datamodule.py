"""Laws of CIFAR-10 as a data module: any copy, the right splits, its own probes, and no surprise download."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lit_bump.datamodules import (
    BlurredCIFAR10DataModule,
    CIFAR10DataModule,
    NoiseCIFAR10DataModule,
    PermutedLabelsCIFAR10DataModule,
)
from lit_bump.errors import LitBumpError
from lit_bump.images import CIFAR10_CLASSES, load_cifar10
from lit_bump.probes import named_probe_set


def test_it_serves_the_images_of_the_folder(cifar_folder: Path) -> None:
    data = CIFAR10DataModule(cifar_folder, augment=False)
    data.prepare_data()
    data.setup("fit")
    train, test = load_cifar10(cifar_folder, "train"), load_cifar10(cifar_folder, "test")
    assert torch.equal(data._sets["train"].images, train[0])
    assert torch.equal(data._sets["train"].labels, train[1])
    ((images, labels),) = data.predict_dataloader()
    assert torch.equal(images, test[0] / 255)
    assert torch.equal(labels, test[1])
    assert (data.num_classes, data.class_names, data.input_size) == (10, CIFAR10_CLASSES, (3, 32, 32))


def test_a_subset_is_balanced_and_holds_the_training_probes(cifar_folder: Path) -> None:
    data = CIFAR10DataModule(cifar_folder, subset=20, n_val=10)
    data.setup("fit")
    assert data._sets["train"].labels.bincount().tolist() == [2] * 10
    stored = {(image / 255).numpy().tobytes() for image in data._sets["train"].images}
    assert {image.numpy().tobytes() for image in data.probe_set("cifar20train").images} == stored
    assert not stored & {(image / 255).numpy().tobytes() for image in data._sets["val"].images}


@pytest.mark.parametrize("kind", [BlurredCIFAR10DataModule, PermutedLabelsCIFAR10DataModule, NoiseCIFAR10DataModule])
def test_variants_take_the_folder_and_validate_on_real_images(
    kind: type[CIFAR10DataModule], cifar_folder: Path
) -> None:
    data = kind(cifar_folder, batch_size=7)
    data.setup("fit")
    assert len(data.train_dataloader()) == 6
    assert torch.equal(next(iter(data.val_dataloader()))[0], load_cifar10(cifar_folder, "test")[0][:7] / 255)
    assert not torch.equal(data._sets["train"].images, load_cifar10(cifar_folder, "train")[0]) or (
        not torch.equal(data._sets["train"].labels, load_cifar10(cifar_folder, "train")[1])
    )


def test_probes_come_from_its_folder_and_seeds(cifar_folder: Path) -> None:
    data = NoiseCIFAR10DataModule(str(cifar_folder), noise_seed=3)
    assert data.probe_set("cifar8b1") == named_probe_set("cifar8b1", data_dir=cifar_folder)
    assert data.probe_set("noise8train") == named_probe_set("noise8train", noise_seed=3)


def test_a_missing_folder_is_reported_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"no CIFAR-10 in .*nowhere.*--data.download true"):
        CIFAR10DataModule(tmp_path / "nowhere").prepare_data()
