"""Image files read as raw RGB pixels in [0, 1].

Paper: A.2 "Protocol" (perturbations live in raw [0, 1] pixels). Needs torch, NumPy and Pillow.
Pillow's own conversion of 16-bit grey to RGB clips at 255 and that of transparent images shows hidden colours; both
are done here instead.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32
from PIL import Image, ImageOps
from torch import Tensor

from lit_bump.errors import LitBumpError

IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
# Modes of Pillow that are changed on the way to RGB, and what to call them.
_CONVERTED = {
    "1": "black and white", "L": "grey", "P": "of a palette", "CMYK": "CMYK", "YCbCr": "YCbCr", "LAB": "LAB",
    "HSV": "HSV", "I": "16-bit grey", "I;16": "16-bit grey", "I;16B": "16-bit grey", "I;16L": "16-bit grey",
    "F": "grey of floats",
}  # fmt: skip
_TRANSPARENT = ("RGBA", "LA", "PA", "RGBa", "La")
# What Pillow raises for a broken file, and for one that unpacks to far more than its size.
UNREADABLE = (
    OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning, ArithmeticError,
    EOFError, LookupError, MemoryError, RuntimeError, TypeError, AttributeError, AssertionError, struct.error,
    zlib.error,
)  # fmt: skip
# What Pillow may take a file for, whatever its name; for PostScript it would start another program.
FORMATS = ("BMP", "JPEG", "PNG", "TIFF", "WEBP")


def image_files(folder: Path) -> list[Path]:
    """Return the image files in a folder and below, in the order of their paths; hidden ones are left out.

    Args:
        folder: where to look.

    Returns:
        At least one path.

    Raises:
        LitBumpError: if there is no such folder, or no image in it.

    """
    if not folder.is_dir():
        raise LitBumpError(f"no folder {str(folder)!r} to read images from")
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise LitBumpError(f"no image in {str(folder)!r}: files of these kinds are read: {', '.join(IMAGE_SUFFIXES)}")
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def read_image(path: Path, size: int | tuple[int, int] | None = None) -> Float32[Tensor, "3 height width"]:
    """Read one image file.

    Args:
        path: a PNG or JPEG file.
        size: height and width, or one number for both: the middle of the image in that aspect, resized.

    Returns:
        Pixels in [0, 1], axes (channel, height, width).

    Raises:
        LitBumpError: if the file cannot be read as an image; the message names it.

    """
    return read_image_and_kind(path, size=size)[0]


def read_image_and_kind(
    path: Path, *, data: bytes | None = None, size: int | tuple[int, int] | None = None
) -> tuple[Float32[Tensor, "3 height width"], str]:
    """Read one image file, and say what kind it was.

    Args:
        path: an image file.
        data: its bytes, where they were read already.
        size: as for ``read_image``.

    Returns:
        Pixels in [0, 1], axes (channel, height, width); and in words what was converted, empty for plain RGB.

    Raises:
        LitBumpError: if the file cannot be read as an image, or unpacks to far more than its size; the message names
            it.

    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what lies beside the pixels
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path if data is None else io.BytesIO(data), formats=FORMATS) as image:
                kind = "transparent, put on white" if _is_transparent(image) else _CONVERTED.get(image.mode, "")
                return image_pixels(ImageOps.exif_transpose(image), size), kind
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise LitBumpError(f"cannot read image {str(path)!r}: {reason}") from error


def image_pixels(image: Image.Image, size: int | tuple[int, int] | None = None) -> Float32[Tensor, "3 height width"]:
    """Turn a Pillow image of any mode into RGB pixels.

    Args:
        image: grey, palette, RGB, transparent (put on white) or 16-bit grey (keeps its depth).
        size: height and width, or one number for both.

    Returns:
        Pixels in [0, 1], axes (channel, height, width).

    Raises:
        LitBumpError: if the size has an entry below 1.

    """
    highest = 255.0
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image).astype(np.float32)
        highest = _highest(values, of_floats=image.mode == "F")
        image = Image.fromarray(values)
    else:
        image = _opaque(image)
    if size is not None:
        height, width = (size, size) if isinstance(size, int) else size
        if min(height, width) < 1:
            raise LitBumpError(f"size={size} of the images: give at least 1")
        image = ImageOps.fit(image, (width, height), Image.Resampling.BICUBIC)
    pixels = np.asarray(image).astype(np.float32) / np.float32(highest)
    pixels = np.clip(pixels, 0, 1)  # bicubic resizing of floating-point pixels may overshoot
    rgb = np.stack([pixels] * 3) if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))
    return torch.from_numpy(rgb)


def _highest(values: np.ndarray, *, of_floats: bool) -> float:
    """Return the value of white in an image of more than 8 bits.

    Raises:
        LitBumpError: if the range is none of the usual ones: to guess would change every number.

    """
    low, high = float(values.min()), float(values.max())
    if of_floats and low >= 0 and high <= 1:
        return 1.0
    if not of_floats and low >= 0 and high <= 65535:
        return 65535.0
    raise LitBumpError(
        f"its pixels run from {low:.3g} to {high:.3g}: give floats in [0, 1], or integers of 8 or 16 bits"
    )


def _is_transparent(image: Image.Image) -> bool:
    return image.mode in _TRANSPARENT or "transparency" in image.info


def _opaque(image: Image.Image) -> Image.Image:
    """Return an RGB image, transparent parts on white.

    Args:
        image: of an 8-bit mode.

    Returns:
        An image of mode RGB.

    """
    if _is_transparent(image):
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
