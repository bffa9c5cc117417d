"""Laws of a probe set: raw images, copied and hashed; anything that is not is refused with what was found."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor
from torch.utils.data import TensorDataset

from lit_bump.errors import LitBumpError
from lit_bump.probes import ProbeSet


def some_bytes(n: int = 3, seed: int = 0) -> Tensor:
    """Return seeded uint8 images."""
    return torch.randint(0, 256, (n, 3, 6, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def test_bytes_and_unit_floats_are_the_same_set() -> None:
    of_bytes = ProbeSet.from_tensor(some_bytes(), name="a")
    for floats in (some_bytes() / 255, (some_bytes().double() / 255)):
        assert ProbeSet.from_tensor(floats, name="a") == of_bytes
    assert of_bytes.images.dtype == torch.float32
    assert of_bytes.input_size == (3, 6, 5)
    assert len(of_bytes) == 3


def test_the_digest_depends_on_pixels_and_shape_alone() -> None:
    images = some_bytes()
    one = ProbeSet.from_tensor(images, name="a")
    assert one.digest == ProbeSet("b", images, "elsewhere").digest
    assert one.digest != ProbeSet.from_tensor(images.reshape(3, 3, 5, 6), name="a").digest
    assert one.digest != ProbeSet.from_tensor(images.flip(0), name="a").digest
    assert one.digest == ProbeSet.from_tensor(images.to(memory_format=torch.channels_last), name="a").digest
    zeros = torch.zeros(1, 1, 2, 2)
    assert ProbeSet("z", zeros).digest == "7cc26815d536c6bc3b4db825bf9382ad3820b276b68ba51423fea50a7b7b125a"


def test_sets_are_equal_by_name_and_pixels() -> None:
    one, same, other = ProbeSet("a", some_bytes()), ProbeSet("a", some_bytes(), "there"), ProbeSet("b", some_bytes())
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "a"
    assert len({one, same, other}) == 2


def test_a_set_is_fixed() -> None:
    images = some_bytes() / 255
    probe = ProbeSet.from_tensor(images, name="a")
    images.zero_()
    assert probe == ProbeSet.from_tensor(some_bytes() / 255, name="a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        probe.name = "b"  # type: ignore[misc]


def test_copies_are_equal() -> None:
    probe = ProbeSet.from_tensor(some_bytes(), name="a")
    for other in (copy.deepcopy(probe), pickle.loads(pickle.dumps(probe)), replace(probe, source="copy")):
        assert other == probe


def test_it_shows_itself_in_one_line() -> None:
    text = repr(ProbeSet.from_tensor(some_bytes(), name="mine"))
    assert text.startswith("ProbeSet(mine: 3 images 3x6x5, tensor, ")


def test_images_born_in_inference_mode_or_with_gradients_can_be_differentiated_later() -> None:
    with torch.inference_mode():
        probe = ProbeSet.from_tensor(torch.rand(2, 3, 4, 4), name="a")
    assert not probe.images.is_inference()
    assert not ProbeSet.from_tensor(torch.rand(2, 3, 4, 4, requires_grad=True), name="a").images.requires_grad


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "é", "x" * 65, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(LitBumpError, match=r"probe set name .*give 1 to 64 letters"):
        ProbeSet.from_tensor(some_bytes(), name=name)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (some_bytes() * 1.0, r"pixels from \d.* to 25\d, not in \[0, 1\]: divide by 255"),
        (some_bytes() / 50 - 2, r"pixels from -2 to 3.\d+, not in \[0, 1\]: give raw images, and mean= and std="),
        (torch.full((1, 3, 4, 4), 1.2), r"to 1.2, not in \[0, 1\]: give raw images"),
        (torch.full((1, 3, 4, 4), torch.nan), "NaN or infinite pixels"),
        (torch.full((1, 3, 4, 4), torch.inf), "NaN or infinite pixels"),
        (some_bytes().long(), "torch.int64 pixels: give uint8"),
        (some_bytes()[0], r"shape \(3, 6, 5\): give at least one image"),
        (some_bytes()[:0], r"shape \(0, 3, 6, 5\): give at least one image"),
    ],
)
def test_other_images_are_refused_with_what_was_found(images: Tensor, message: str) -> None:
    with pytest.raises(
        LitBumpError, match=f"probe set 'a' (has|holds) .*{message}|probe set 'a' (has|holds) {message}"
    ):
        ProbeSet.from_tensor(images, name="a")


def test_rounding_beyond_the_range_is_clipped() -> None:
    probe = ProbeSet.from_tensor(torch.tensor([-1e-7, 1 + 1e-6]).reshape(1, 1, 1, 2), name="a")
    assert probe.images.flatten().tolist() == [0, 1]


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 20), seed=st.integers(0, 50))
def test_a_draw_is_without_replacement_and_begins_a_longer_one(n: int, seed: int) -> None:
    dataset = TensorDataset(torch.arange(20).to(torch.uint8).reshape(20, 1, 1, 1), torch.zeros(20))
    drawn = ProbeSet.from_dataset(dataset, name="a", n_images=n, seed=seed).images
    everything = ProbeSet.from_dataset(dataset, name="a", n_images=20, seed=seed).images
    assert torch.equal(drawn, everything[:n])
    assert sorted((everything * 255).round().int().flatten().tolist()) == list(range(20))


def test_the_seed_decides_the_draw_and_the_global_seed_does_not() -> None:
    dataset = TensorDataset(some_bytes(40))
    torch.manual_seed(1)
    one = ProbeSet.from_dataset(dataset, name="a", n_images=8)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert ProbeSet.from_dataset(dataset, name="a", n_images=8) == one
    assert torch.equal(torch.get_rng_state(), before)
    assert ProbeSet.from_dataset(dataset, name="a", n_images=8, seed=1) != one


def test_items_may_be_images_tuples_or_mappings() -> None:
    image = some_bytes(1)[0]
    pillow = Image.fromarray(image.permute(1, 2, 0).numpy())
    for item in (image, (image, 1), [image], {"image": image}, pillow, (pillow, 1)):
        assert torch.equal(ProbeSet.from_dataset([item], name="a", n_images=1).images[0], image / 255)


def test_other_data_sets_are_refused() -> None:
    with pytest.raises(LitBumpError, match=r"generator has no length to draw 'a' from"):
        ProbeSet.from_dataset((i for i in range(3)), name="a")
    with pytest.raises(LitBumpError, match="n_images=32 from TensorDataset for 'a': give 1 to 3"):
        ProbeSet.from_dataset(TensorDataset(some_bytes()), name="a")
    with pytest.raises(LitBumpError, match="item 0 of the data set is a dict of label, without 'image'"):
        ProbeSet.from_dataset([{"label": 1}], name="a", n_images=1)
    with pytest.raises(LitBumpError, match="images of list differ in size or type"):
        ProbeSet.from_dataset([some_bytes()[0], some_bytes()[0, :, :4]], name="a", n_images=2)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    images = some_bytes(4)
    for i, image in enumerate(images):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / f"{i}.png")
    assert torch.equal(ProbeSet.from_folder(tmp_path, name="a").images, images / 255)
    drawn = ProbeSet.from_folder(tmp_path, name="a", n_images=2, seed=3)
    assert len(drawn) == 2
    assert torch.equal(drawn.images, ProbeSet.from_folder(str(tmp_path), name="a", n_images=4, seed=3).images[:2])
    assert ProbeSet.from_folder(tmp_path, name="a", size=8).input_size == (3, 8, 8)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match="no image in "):
        ProbeSet.from_folder(tmp_path, name="a")
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "0.png")
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "1.png")
    with pytest.raises(LitBumpError, match=r"images differ in size, 4x4 and 4x5 \('.*1\.png'\): give a size"):
        ProbeSet.from_folder(tmp_path, name="a")
    assert ProbeSet.from_folder(tmp_path, name="a", size=(2, 3)).input_size == (3, 2, 3)
    with pytest.raises(LitBumpError, match=r"n_images=3 from folder .*: give 1 to 2"):
        ProbeSet.from_folder(tmp_path, name="a", n_images=3)
    (tmp_path / "1.png").write_bytes(b"no")
    with pytest.raises(LitBumpError, match=r"cannot read image .*1\.png"):
        ProbeSet.from_folder(tmp_path, name="a")
