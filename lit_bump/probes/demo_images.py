"""Six photographs that come inside scikit-image, for a measurement without a download.

Needs the extra ``lit-bump[demo]``. Photographs of things that ImageNet has classes for: a cat, an espresso, a rocket.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from lit_bump.errors import LitBumpError
from lit_bump.probes.image_set import ImageSet

PHOTOGRAPHS = ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")
INSTALL = "pip install 'lit-bump[demo]'"


def demo_images() -> ImageSet:
    """Return the photographs.

    Returns:
        Six images of several sizes.

    Raises:
        LitBumpError: if scikit-image is not installed, or comes without them.

    """
    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise LitBumpError(f"image set 'demo' takes its photographs from scikit-image: {INSTALL}")
    folder = Path(found.origin).parent / "data"
    files = [folder / name for name in PHOTOGRAPHS]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise LitBumpError(f"the installed scikit-image comes without {', '.join(missing)}: {INSTALL} --upgrade")
    return ImageSet.from_files(files, name="demo", root=folder, source="photographs inside scikit-image")
