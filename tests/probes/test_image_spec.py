"""Laws of naming image sets: the paper's draws, seeds and folders, manifests, and the nearest name for a wrong one."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lit_bump.errors import LitBumpError
from lit_bump.probes import IMAGE_SETS, image_set
from lit_bump.probes.image_manifest import from_manifest, save_manifest


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of 70 class folders with two images each."""
    root = tmp_path_factory.mktemp("val")
    for i in np.random.default_rng(0).permutation(70):
        folder = root / f"n{1440000 + i:08d}"
        folder.mkdir()
        for j in (1, 0):
            values = np.random.default_rng(2 * i + j).integers(0, 256, (9, 8, 3), dtype=np.uint8)
            Image.fromarray(values).save(folder / f"ILSVRC2012_val_{j:08d}.JPEG", "JPEG")
    return root


def test_val64_holds_the_first_image_of_64_seeded_classes(imagenet: Path) -> None:
    images = image_set(f"val64:{imagenet}")
    assert (len(images), images.name) == (64, "val64")
    assert all(name.endswith("val_00000000.JPEG") for name in images.names)
    assert len({Path(name).parent for name in images.names}) == 64
    assert image_set(f"val64:{imagenet}").digest == images.digest
    assert image_set(f"val64:{imagenet}@seed=1").names != images.names
    assert image_set(f"val64:{imagenet}", seed=1).names == image_set(f"val64:{imagenet}@seed=1").names


def test_the_order_in_a_file_system_does_not_matter(imagenet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [image_set(f"{kind}:{imagenet}").names for kind in ("val64", "a64")]
    listed, walked = Path.iterdir, Path.rglob
    monkeypatch.setattr(Path, "iterdir", lambda self: reversed(list(listed(self))))
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: reversed(list(walked(self, pattern))))
    assert [image_set(f"{kind}:{imagenet}").names for kind in ("val64", "a64")] == expected


def test_blur64_holds_the_images_of_val64(imagenet: Path) -> None:
    clear, blurred = image_set(f"val64:{imagenet}"), image_set(f"blur64:{imagenet}")
    assert (blurred.names, blurred.blur_sigma, blurred.name) == (clear.names, 2.0, "blur64")


def test_a64_and_o64_are_seeded_draws(imagenet: Path) -> None:
    a, o = image_set(f"a64:{imagenet}"), image_set(f"o64:{imagenet}@seed=3")
    assert (len(a), a.name, len(o), o.name) == (64, "a64", 64, "o64")
    assert a.names != o.names
    assert len(set(a.names)) == 64


def test_sd64_holds_a_render_for_each_class_of_val64(imagenet: Path, tmp_path: Path) -> None:
    classes = [Path(name).parts[0] for name in image_set(f"val64:{imagenet}").names]
    for name in [*classes, "n00000001"]:
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "render.png")
    images = image_set(f"sd64:{tmp_path}:{imagenet}")
    assert [Path(name).parts[0] for name in images.names] == classes
    for path in (tmp_path / classes[0]).iterdir():
        path.unlink()
    (tmp_path / classes[0]).rmdir()
    with pytest.raises(LitBumpError, match=f"no folder for 1 of 64 classes: {classes[0]}"):
        image_set(f"sd64:{tmp_path}:{imagenet}")


def test_a_folder_is_taken_whole_or_drawn_from(imagenet: Path) -> None:
    folder = sorted(imagenet.iterdir())[0]
    assert image_set(str(folder)).names == image_set(f"folder:{folder}").names
    assert len(image_set(f"{folder}@n=1")) == 1
    assert image_set(f"{folder}@name=cats").name == "cats"


def test_a_list_of_files_is_taken_in_its_order(imagenet: Path, tmp_path: Path) -> None:
    chosen = [next(folder.iterdir()) for folder in sorted(imagenet.iterdir())[:3]][::-1]
    (tmp_path / "list.txt").write_text("# mine\n" + "\n".join(map(str, chosen)) + "\n")
    images = image_set(f"files:{tmp_path / 'list.txt'}")
    assert [Path(name).parent.name for name in images.names] == [path.parent.name for path in chosen]


def test_a_probe_set_goes_in_as_it_is() -> None:
    images = image_set("shapes32@n=3")
    assert (len(images), images.name) == (3, "shapes3")


def test_a_manifest_gives_the_same_set_and_finds_every_change(imagenet: Path, tmp_path: Path) -> None:
    images = image_set(f"blur64:{imagenet}@n=3")
    path = save_manifest(images, tmp_path / "m.json")
    again = image_set(f"manifest:{path}:{imagenet}")
    assert (again.digest, again.names, again.source) == (images.digest, images.names, images.source)
    with pytest.raises(LitBumpError, match=r"of 3 images 3 missing \(n"):
        from_manifest(path)
    described = json.loads(path.read_text())
    described["images"][1]["sha256"] = "0"
    path.write_text(json.dumps(described))
    with pytest.raises(LitBumpError, match=r"of 3 images 1 changed"):
        from_manifest(path, imagenet)
    described["images"][0]["name"] = "../outside.png"
    path.write_text(json.dumps(described))
    with pytest.raises(LitBumpError, match="outside of its folder"):
        from_manifest(path, imagenet)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1, "name": "x", "images": []}', "[" * 10**5])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(LitBumpError, match="is no manifest"):
        from_manifest(path)


def test_a_manifest_of_no_files_says_so(tmp_path: Path) -> None:
    path = save_manifest(image_set("shapes32@n=2"), tmp_path / "m.json")
    with pytest.raises(LitBumpError, match="were no files"):
        from_manifest(path)


def test_a_function_of_the_users_gives_a_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("users_data")
    module.pictures = lambda: [Image.new("RGB", (8, 8), (i, 0, 0)) for i in range(5)]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "users_data", module)
    assert len(image_set("import:users_data.pictures")) == 5
    assert len(image_set("import:users_data.pictures@n=2")) == 2


def test_demo_holds_photographs() -> None:
    pytest.importorskip("skimage")
    images = image_set("demo")
    assert len(images) == 6
    assert "chelsea.png" in images.names


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "names nothing"),
        ("val46:x", "did you mean 'val64'"),
        ("val64", "needs a place, such as val64:DIR"),
        ("shapse32", "did you mean 'shapes32'"),
        ("shapes32@sede=1", "did you mean 'seed'"),
        ("shapes32@n=0", "n is 0"),
        ("shapes32@n=x", "n is 'x'; give a whole number"),
        ("nowhere/images", "no folder 'nowhere/images'"),
        ("folder:nowhere", "no folder 'nowhere'"),
        ("files:nowhere.txt", "no list of images"),
        ("manifest:nowhere.json", "no manifest"),
        ("torchvision:CIFR10:x", "did you mean 'CIFAR10'"),
        ("import:nowhere.data", "cannot be used as a data set"),
        ("cifar32", "needs CIFAR-10"),
    ],
)
def test_a_wrong_spec_ends_in_one_line(spec: str, says: str) -> None:
    with pytest.raises(LitBumpError, match=says) as caught:
        image_set(spec)
    assert "\n" not in str(caught.value)


def test_layouts_that_do_not_fit_are_named(tmp_path: Path, imagenet: Path) -> None:
    with pytest.raises(LitBumpError, match=r"only 70 classes in .*: take fewer with @n=70"):
        image_set(f"val64:{imagenet}@n=71")
    Image.new("RGB", (8, 8)).save(tmp_path / "ILSVRC2012_val_00000001.JPEG")
    with pytest.raises(LitBumpError, match="images lie in it without their classes"):
        image_set(f"val64:{tmp_path}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LitBumpError, match="no image in"):
        image_set(f"folder:{tmp_path / 'empty'}")


def test_every_kind_is_listed() -> None:
    from lit_bump.probes.image_spec import _KINDS

    assert {pattern.split(":")[0] for pattern in IMAGE_SETS} >= set(_KINDS)
