"""Render one image for each class of val64 with Stable Diffusion 1.4, as the image set sd64 takes them.

Paper: A.2 "Evaluation sets" ("one Stable Diffusion 1.4 render per val64 class"). Needs diffusers, transformers and a
GPU (pip install diffusers transformers accelerate): ``python scripts/make_sd64.py --val DIR --names FILE --out DIR``.
Classes that are there already are not rendered again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from lit_bump.errors import LitBumpError
from lit_bump.probes import image_set
from lit_bump.whole_file import whole_file

MODEL = "CompVis/stable-diffusion-v1-4"


def class_names(path: Path) -> dict[str, str]:
    """Return what ImageNet's classes are called.

    Args:
        path: JSON by class, such as ``{"n01440764": "tench"}``, or text with a class and its name a line.

    Returns:
        Names by class.

    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return {str(key): str(value) for key, value in json.loads(text).items()}
    return dict(line.strip().split(maxsplit=1) for line in text.splitlines() if line.strip())


def main() -> None:
    """Render the classes that are missing.

    Raises:
        LitBumpError: if a class has no name.

    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--val", required=True, help="ImageNet's validation images, a folder a class")
    parser.add_argument("--names", required=True, type=Path, help="names of the classes: JSON, or a line each")
    parser.add_argument("--out", required=True, type=Path, help="folder of the renders")
    parser.add_argument("--seed", type=int, default=0, help="of the classes of val64, and of the renders")
    parser.add_argument("--prompt", default="a photo of a {}", help="with {} for the class's name")
    parser.add_argument("--steps", type=int, default=50, help="of the sampler")
    options = parser.parse_args()
    classes = [Path(name).parts[0] for name in image_set(f"val64:{options.val}", seed=options.seed).names]
    names = class_names(options.names)
    missing = [one for one in classes if one not in names]
    if missing:
        raise LitBumpError(f"{options.names} has no name for {', '.join(missing[:3])}")
    import torch
    from diffusers import StableDiffusionPipeline  # type: ignore[import-not-found,unused-ignore]
    from tqdm import tqdm

    pipeline = StableDiffusionPipeline.from_pretrained(MODEL).to("cuda" if torch.cuda.is_available() else "cpu")
    for number, one in enumerate(tqdm(classes, unit="render")):
        path = options.out / one / "render.png"
        if path.is_file():
            continue
        generator = torch.Generator().manual_seed(options.seed * 1000 + number)
        name = names[one].split(",")[0]
        render = pipeline(options.prompt.format(name), num_inference_steps=options.steps, generator=generator).images[0]
        with whole_file(path) as partial:
            render.save(partial, format="PNG")


if __name__ == "__main__":
    main()
