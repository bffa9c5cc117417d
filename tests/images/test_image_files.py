"""Laws of reading image files: every kind of file becomes RGB in [0, 1], and a bad one is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lit_bump.errors import LitBumpError
from lit_bump.images.image_files import image_files, image_pixels, read_image


def test_rgb_is_divided_by_255(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    expected = torch.from_numpy(pixels).permute(2, 0, 1) / 255
    assert torch.equal(read_image(tmp_path / "a.png"), expected)


def test_grey_images_get_three_equal_channels() -> None:
    grey = np.array([[0, 51], [102, 255]], dtype=np.uint8)
    for mode in ("L", "LA", "P", "RGB", "RGBA"):
        pixels = image_pixels(Image.fromarray(grey).convert(mode))
        assert torch.equal(pixels, torch.from_numpy(grey / np.float32(255)).expand(3, 2, 2)), mode


def test_16_bit_grey_keeps_its_depth(tmp_path: Path) -> None:
    deep = np.array([[0, 1], [30000, 65535]], dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    pixels = read_image(tmp_path / "deep.png")
    np.testing.assert_allclose(pixels[0].numpy(), deep / 65535, rtol=1e-6)
    assert torch.equal(pixels[0], pixels[2])
    assert read_image(tmp_path / "deep.png", 6).shape == (3, 6, 6)
    assert (
        0 <= float(read_image(tmp_path / "deep.png", 6).min()) <= float(read_image(tmp_path / "deep.png", 6).max()) <= 1
    )


def test_transparent_parts_are_white(tmp_path: Path) -> None:
    pixels = np.zeros((1, 3, 4), dtype=np.uint8)
    pixels[0, :, 3] = (0, 51, 255)
    Image.fromarray(pixels).save(tmp_path / "clear.png")
    np.testing.assert_allclose(read_image(tmp_path / "clear.png")[:, 0].numpy(), [[1, 0.8, 0]] * 3, atol=1e-6)


def test_a_size_takes_the_middle_of_the_image(tmp_path: Path) -> None:
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, 10:20] = 255
    Image.fromarray(wide).save(tmp_path / "wide.png")
    assert torch.equal(read_image(tmp_path / "wide.png", 10), torch.ones(3, 10, 10))
    assert read_image(tmp_path / "wide.png", (4, 12)).shape == (3, 4, 12)
    with pytest.raises(LitBumpError, match="size=0 of the images"):
        read_image(tmp_path / "wide.png", 0)


def test_photographs_are_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    Image.new("RGB", (8, 4)).save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(tmp_path / "turned.jpg").shape == (3, 8, 4)


def test_files_are_found_below_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.png", "a/z.JPG", "a/y.jpeg", "a/notes.txt", ".hidden/x.png", "a/.y.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in image_files(tmp_path)] == ["a/y.jpeg", "a/z.JPG", "b.png"]


def test_folders_without_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"no image in .*\.jpeg, \.jpg, \.png"):
        image_files(tmp_path)
    with pytest.raises(LitBumpError, match=r"no folder .*nowhere"):
        image_files(tmp_path / "nowhere")


@pytest.mark.parametrize("suffix", ["png", "jpg"])
@pytest.mark.parametrize("damage", ["cut", "text", "empty"])
def test_a_damaged_file_is_named_in_one_line(tmp_path: Path, suffix: str, damage: str) -> None:
    path = tmp_path / f"bad.{suffix}"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(path)
    content = {"cut": path.read_bytes()[:600], "text": b"hello", "empty": b""}[damage]
    path.write_bytes(content)
    with pytest.raises(LitBumpError, match=rf"cannot read image '.*bad\.{suffix}': ") as error:
        read_image(path)
    assert "\n" not in str(error.value)
