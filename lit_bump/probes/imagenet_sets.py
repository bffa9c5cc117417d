"""The paper's sets at ImageNet resolution, drawn from the folders that these data sets are published in.

Paper: A.2 "Evaluation sets": val64, a64, o64, sd64, blur64. Needs the image sets. Each takes a folder of class folders,
as ImageNet's validation images are usually laid out (``n01440764/...``); classes and images are drawn in the order of
their names, so the order in which a file system lists them does not matter.
"""

from __future__ import annotations

from pathlib import Path

from lit_bump.errors import LitBumpError
from lit_bump.images.image_files import IMAGE_SUFFIXES, image_files
from lit_bump.images.random_words import random_order
from lit_bump.probes.image_set import ImageSet
from lit_bump.probes.probe_set import drawn_order

N_IMAGES = 64
BLUR_SIGMA = 2.0  # at 512 px: about 1 in the measured frame


def one_a_class(
    folder: Path, *, name: str, n: int = N_IMAGES, seed: int = 0, classes: list[str] | None = None
) -> ImageSet:
    """Take the lexicographically first image of each of some seeded classes (val64; sd64).

    Args:
        folder: of class folders.
        name: of the set.
        n: classes to draw.
        seed: of the draw of classes.
        classes: names of the classes to take instead, such as those of val64.

    Returns:
        The set, in the order of the classes' names.

    Raises:
        LitBumpError: if there are no class folders, too few, or one that was named is missing or empty.

    """
    present = class_folders(folder)
    if classes is None:
        classes = sorted(present[i] for i in _draw(len(present), n, seed, f"classes in {str(folder)!r}"))
    missing = [one for one in classes if one not in set(present)]
    if missing:
        shown = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
        raise LitBumpError(f"{str(folder)!r} has no folder for {len(missing)} of {len(classes)} classes: {shown}")
    files = [image_files(folder / one)[0] for one in classes]
    source = f"first image of each of {len(classes)} classes of {folder.name}, seed {seed}"
    return ImageSet.from_files(files, name=name, root=folder, source=source)


def drawn_images(folder: Path, *, name: str, n: int = N_IMAGES, seed: int = 0) -> ImageSet:
    """Draw images from all classes (a64, o64).

    Args:
        folder: of class folders, or of images.
        name: of the set.
        n: images to draw.
        seed: of the draw.

    Returns:
        The set, in the order of the draw.

    Raises:
        LitBumpError: if there is no such folder, or too few images.

    """
    files = image_files(folder)
    chosen = [files[i] for i in _draw(len(files), n, seed, f"images in {str(folder)!r}")]
    return ImageSet.from_files(chosen, name=name, root=folder, source=f"{n} images of {folder.name}, seed {seed}")


def class_folders(folder: Path) -> list[str]:
    """Return the names of the class folders in a folder.

    Args:
        folder: where to look.

    Returns:
        Names in order, at least one.

    Raises:
        LitBumpError: if there is no such folder, or none in it; a flat folder of images is named as such.

    """
    if not folder.is_dir():
        raise LitBumpError(f"no folder {str(folder)!r} to read images from")
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if found:
        return found
    flat = any(entry.suffix.lower() in IMAGE_SUFFIXES for entry in folder.iterdir())
    hint = "images lie in it without their classes; sort them into folders" if flat else "it holds none"
    raise LitBumpError(f"{str(folder)!r} must hold a folder for each class, such as n01440764: {hint}")


def _draw(n_total: int, n: int, seed: int, what: str) -> list[int]:
    if n_total < n:
        raise LitBumpError(f"there are only {n_total} {what}, not {n}: take fewer with @n={n_total}")
    drawn_order(n_total, n, seed, what)  # refuses a wrong number in its own words
    return [int(i) for i in random_order(n_total, seed=seed, stream="image set")[:n]]
