"""Laws of image sets: every kind of file reads right and is counted, and the blur comes before the resize."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from torch import Tensor

from lit_bump.encoders import Preprocessing
from lit_bump.errors import LitBumpError
from lit_bump.probes import ImageSet

KEEP = Preprocessing(8, (8, 8))


def picture(seed: int = 0, size: tuple[int, int] = (8, 8)) -> Image.Image:
    """Make a seeded RGB picture.

    Returns:
        Random bytes.

    """
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), dtype=np.uint8))


def files(folder: Path, n: int, write: Callable[[Path], None] | None = None) -> list[Path]:
    """Write some pictures, and one more with a function of its own.

    Returns:
        Their paths.

    """
    paths = [folder / f"{i}.png" for i in range(n)]
    for i, path in enumerate(paths):
        picture(i).save(path)
    if write is not None:
        paths.append(folder / "last.png")
        write(paths[-1])
    return paths


def made(paths: list[Path], folder: Path) -> ImageSet:
    """Return the set of some files."""
    return ImageSet.from_files(paths, name="mine", root=folder, source="here")


def _sixteen(path: Path) -> None:
    Image.fromarray(np.full((8, 8), 256 * 100 + 77, dtype=np.uint16)).save(path)


def _palette(path: Path) -> None:
    picture().convert("P", palette=Image.Palette.ADAPTIVE).save(path)


def _rgba(path: Path) -> None:
    Image.new("RGBA", (8, 8), (200, 0, 0, 0)).save(path)


def _transparent_palette(path: Path) -> None:
    Image.new("P", (8, 8), 0).save(path, transparency=0)


def _cmyk(path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(path.with_suffix(".tif"))
    path.with_suffix(".tif").rename(path)


def _no_picture(path: Path) -> None:
    path.write_text("no picture")


def _floats(path: Path) -> None:
    Image.fromarray(np.full((8, 8), 0.5, dtype=np.float32)).save(path.with_suffix(".tif"))
    path.with_suffix(".tif").rename(path)


@pytest.mark.parametrize(
    ("write", "kind", "expected"),
    [
        (lambda path: Image.new("L", (8, 8), 51).save(path), "grey", (0.2, 0.2, 0.2)),
        (lambda path: Image.new("1", (8, 8), 1).save(path), "black and white", (1.0, 1.0, 1.0)),
        (_sixteen, "16-bit grey", ((256 * 100 + 77) / 65535,) * 3),
        (_rgba, "transparent, put on white", (1.0, 1.0, 1.0)),
        (_transparent_palette, "transparent, put on white", (1.0, 1.0, 1.0)),
        (_cmyk, "CMYK", (1.0, 0.0, 0.0)),
        (_floats, "grey of floats", (0.5, 0.5, 0.5)),
        (_palette, "of a palette", None),
    ],
)
def test_every_kind_of_file_reads_right_and_is_counted(
    tmp_path: Path, write: Callable[[Path], None], kind: str, expected: tuple[float, ...] | None
) -> None:
    images = made(files(tmp_path, 1, write), tmp_path)
    assert images.notes == (f"1 of 2 images were {kind}, turned into RGB",)
    pixels = images.prepared(KEEP).images[1]
    if expected is not None:
        torch.testing.assert_close(pixels.mean((1, 2)), torch.tensor(expected), atol=1e-6, rtol=0)


def test_a_photograph_is_turned_as_it_says(tmp_path: Path) -> None:
    path, upright = tmp_path / "turned.jpg", picture(size=(8, 6)).resize((80, 60))
    exif = Image.Exif()
    exif[274] = 6  # to be turned by 90 degrees
    upright.save(path, exif=exif, quality=95)
    seen = made([path], tmp_path).prepared(lambda pixels: pixels).images[0]
    assert seen.shape == (3, 80, 60)


@pytest.mark.parametrize(("n_good", "n_bad"), [(9, 1), (18, 2)])
def test_a_few_broken_files_are_left_out_and_said(tmp_path: Path, n_good: int, n_bad: int) -> None:
    paths = files(tmp_path, n_good)
    for i in range(n_bad):
        paths.append(tmp_path / f"broken{i}.png")
        paths[-1].write_bytes(paths[0].read_bytes()[:40])
    images = made(paths, tmp_path)
    assert len(images) == n_good
    assert f"{n_bad} of {n_good + n_bad} files left out" in images.notes[0]
    assert "broken0.png" in images.notes[0]


def test_many_broken_files_are_refused(tmp_path: Path) -> None:
    paths = files(tmp_path, 8, _no_picture)
    with pytest.raises(LitBumpError, match=r"1 of 9 files cannot be read; cannot read image .*last.png"):
        made(paths, tmp_path)


def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files(tmp_path, 1)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(LitBumpError, match=r"cannot read image .* exceeds limit"):
        made(paths, tmp_path)


@pytest.mark.parametrize("values", [np.full((8, 8), 300.0, np.float32), np.full((8, 8), 2**20, np.int32)])
def test_pixels_of_an_unknown_range_are_refused_rather_than_guessed(tmp_path: Path, values: np.ndarray) -> None:
    path = tmp_path / "odd.tif"
    Image.fromarray(values).save(path)
    with pytest.raises(LitBumpError, match="pixels run from"):
        made([path], tmp_path)


@pytest.mark.parametrize("size", [(600, 512), (64, 48)])
def test_blur_is_at_512_pixels_before_the_resize(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "a.png"
    picture(size=size).save(path)
    preprocessing = Preprocessing(64, (64, 64))
    images = made([path], tmp_path)
    blurred = images.blurred(2.0, name="blurred").prepared(preprocessing).images[0]
    large = torch.nn.functional.interpolate(
        torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)[None].double() / 255,
        tuple(round(side * 512 / min(size)) if side != min(size) else 512 for side in size[::-1]),
        mode="bilinear", antialias=True,
    )[0]  # fmt: skip
    by_hand = np.stack([gaussian_filter(channel, 2.0, mode="mirror") for channel in large.numpy()])
    expected = preprocessing(torch.from_numpy(by_hand).float())
    assert (blurred - expected).abs().max() < 5e-3
    assert (blurred - images.prepared(preprocessing).images[0]).abs().max() > 0.01


def test_names_and_digests_do_not_depend_on_where_the_files_lie(tmp_path: Path) -> None:
    sets = []
    for folder in (tmp_path / "a", tmp_path / "deep" / "b"):
        folder.mkdir(parents=True)
        sets.append(made(files(folder, 3), folder))
    assert sets[0].digest == sets[1].digest
    assert sets[0].names == sets[1].names == ("0.png", "1.png", "2.png")
    assert sets[0].blurred(1.0, name="b").digest != sets[0].digest


def test_data_sets_with_images_of_several_sizes_are_taken(tmp_path: Path) -> None:
    dataset = [(picture(i, (8 + i, 9)), i) for i in range(5)]
    images = ImageSet.from_dataset(dataset, name="data", n_images=4, seed=1)
    again = ImageSet.from_dataset(dataset, name="data", n_images=3, seed=1)
    assert images.names[:3] == again.names
    assert images.prepared(KEEP).images.shape == (4, 3, 8, 8)


def test_grey_tensors_get_three_channels() -> None:
    grey: list[Tensor] = [torch.full((1, 8, 8), 0.25), torch.full((8, 8), 0.75)]
    images = ImageSet.from_dataset(grey, name="grey", n_images=2)
    assert images.prepared(KEEP).images.shape == (2, 3, 8, 8)


def test_a_name_that_could_not_name_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"image set name '\.\./x'"):
        ImageSet.from_files(files(tmp_path, 1), name="../x", root=tmp_path, source="")
