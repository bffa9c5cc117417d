"""Laws of the image folder: alphabetical classes, exactly ten, and every file readable and 32 x 32."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lit_bump.errors import LitBumpError
from lit_bump.images.cifar10_folder import CIFAR10_CLASSES, class_folder_problem, read_image_folder


@pytest.fixture
def home(cifar_folder: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may damage."""
    return Path(shutil.copytree(cifar_folder, tmp_path / "cifar10", ignore=shutil.ignore_patterns("lit_bump-*")))


def test_images_and_labels_are_those_of_the_files(cifar_folder: Path) -> None:
    arrays = read_image_folder(cifar_folder)
    assert arrays["train_images"].shape == (40, 3, 32, 32)
    assert arrays["test_labels"].tolist() == [label for label in range(10) for _ in range(4)]
    with Image.open(cifar_folder / "train" / "cat" / "0002.png") as image:
        expected = np.asarray(image).transpose(2, 0, 1)
    assert (arrays["train_images"][CIFAR10_CLASSES.index("cat") * 4 + 2] == expected).all()


def test_other_files_and_hidden_ones_are_passed_over(home: Path) -> None:
    (home / "train" / "cat" / "notes.txt").touch()
    (home / "train" / "cat" / "._0000.png").touch()
    (home / "train" / ".cache").mkdir()
    (home / "train" / "README").touch()
    assert class_folder_problem(home) is None
    assert len(read_image_folder(home)["train_labels"]) == 40


def test_grey_files_become_rgb(home: Path) -> None:
    Image.new("L", (32, 32), 7).save(home / "test" / "truck" / "0003.png")
    assert (read_image_folder(home)["test_images"][-1] == 7).all()


def test_class_folders_must_be_the_ten(home: Path) -> None:
    assert class_folder_problem(home) is None
    (home / "train" / "frog").rename(home / "train" / "toad")
    assert class_folder_problem(home) == "train/ lacks frog and has toad; the class folders must be CIFAR-10's ten"
    shutil.rmtree(home / "train" / "toad")
    assert class_folder_problem(home) == "train/ lacks frog; the class folders must be CIFAR-10's ten"
    shutil.rmtree(home / "train")
    assert class_folder_problem(home) == "train/ is missing"


def test_bad_images_are_named(home: Path) -> None:
    path = home / "test" / "ship" / "0001.png"
    Image.new("RGB", (32, 31)).save(path)
    with pytest.raises(LitBumpError, match=r"0001\.png' is 32 x 31: CIFAR-10's are 32 x 32"):
        read_image_folder(home)
    path.write_bytes((home / "test" / "ship" / "0000.png").read_bytes()[:700])
    with pytest.raises(LitBumpError, match=r"cannot read image .*0001\.png"):
        read_image_folder(home)
    shutil.rmtree(home / "test" / "ship")
    (home / "test" / "ship").mkdir()
    with pytest.raises(LitBumpError, match=r"no PNG or JPEG image in .*ship"):
        read_image_folder(home)
