"""Floating-point noise energy of a displacement, for the rule that discards rungs which it could fake.

Paper: A.2 ("rungs where estimated floating-point noise exceeds 5 % of the measured energy are discarded per image"; how
to estimate it is ours). Needs torch and NumPy.
Without the rule a narrow VGG-16 at initialisation, whose response is 1e-17 at the smallest rung, reads as a bump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.measure.directions import directions
from lit_bump.measure.displacement import Rows, base_features, differences, squared_length
from lit_bump.measure.frozen_encoder import FrozenEncoder, OutOfMemoryError

FloatArray = np.ndarray
FINE_STEP = 1e-6  # L2; per pixel it is below the last place of a float32 pixel


def float64_twin(
    encoder: FrozenEncoder, images: Float[Tensor, "image channel height width"]
) -> tuple[FrozenEncoder | None, str]:
    """Return the same computation in float64, or None and the reason where the encoder cannot do that.

    Args:
        encoder: the encoder as it is measured.
        images: images in its dtype; the first one is tried.

    Returns:
        The twin or None, and how the noise will be estimated, in words for the record.

    Raises:
        OutOfMemoryError: if one image in float64 does not fit.

    """
    if encoder.dtype == torch.float64:
        return None, "repeatability (measured in float64: there is no twin)"
    if encoder.is_scripted or encoder.device.type == "mps":
        return None, "repeatability (scripted module or a device without float64)"
    twin = FrozenEncoder(encoder.module, torch.float64, encoder.device, channels_last=False)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        features = twin(images[:1].double())
        resolves = features.dtype == torch.float64 and _resolves_float64(twin, images)
    except OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:  # NotImplementedError is a RuntimeError
        cause = (str(error).strip() or type(error).__name__).splitlines()[0][:120]
        return None, f"repeatability (no float64 twin: {cause})"
    finally:
        torch.set_default_dtype(default)
    if features.dtype != torch.float64:
        return None, f"repeatability (no float64 twin: the encoder returns {features.dtype} for float64 images)"
    if not resolves:
        return None, f"repeatability (no float64 twin: steps of {FINE_STEP:g} are lost inside the encoder)"
    return twin, "float64 twin"


def _resolves_float64(twin: FrozenEncoder, images: Tensor) -> bool:
    # A part that casts to float32 and back rounds in the twin as it does in the encoder, and hides the noise. Over a
    # step below float32 resolution a true twin is linear: twice the step, twice the difference (kinks included).
    direction = directions(0, 1, images[0].numel(), seed=0, image=0).to(twin.device).double().view(1, *images.shape[1:])
    for image in torch.split(images[:4].double(), 1):
        base, once, twice = (twin(image + n * FINE_STEP * direction).clone() for n in (0, 1, 2))
        double = squared_length(twice - base)
        if bool(double > 0):
            return bool(squared_length(twice - base - 2 * (once - base)) <= 0.01 * double)
    return False


def noise_energy(
    encoder: FrozenEncoder,
    twin: FrozenEncoder | None,
    images: Float[Tensor, "image channel height width"],
    etas: tuple[float, ...],
    n_pairs: int,
    *,
    seed: int,
    chunk: int,
    first_image: int = 0,
    signs: tuple[float, ...] = (1.0, -1.0),
    base: Float[Tensor, "image feature"] | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Float[FloatArray, "image rung"]:
    r"""Return the estimated noise energy in the displacement of every image and rung.

    With a twin: the mean of :math:`\|\delta_{32} - \delta_{64}\|^2` over a few pairs, :math:`\delta` being the feature
    difference; this includes the rounding of :math:`x + \eta u`. Without: the same between two runs whose batch shapes
    differ and whose images differ by one unit in the last place. Never below the rounding of the features themselves:
    :math:`2 \sum ulp(z)^2 / 12`.

    Args:
        encoder: the encoder as it is measured.
        twin: its float64 twin, or None.
        images: images in the encoder's dtype, on its device.
        etas: the ladder.
        n_pairs: pairs an image and rung that the estimate uses.
        seed: seed of the directions.
        chunk: perturbed images a batch.
        first_image: number of ``images[0]`` in its probe set.
        signs: of the steps that the estimate uses.
        base: ``base_features`` of the encoder, where they are there already.
        advance: called with the number of perturbed images done.

    Returns:
        Energies, float64.

    """
    rows = Rows.grid(len(images), n_pairs, len(etas))
    same: dict[str, Any] = {"seed": seed, "chunk": chunk, "first_image": first_image, "signs": signs}
    base = base_features(encoder, images, chunk) if base is None else base
    measured = differences(encoder, images, etas, rows, **same, base=base)
    if twin is not None:
        other, shown, least = twin, images.double(), 1  # float64 is dear, and exact enough in any batch shape
    else:
        other, shown, least = encoder, _one_ulp_away(images), chunk + 1 if chunk > 1 else 1
    repeated = differences(other, shown, etas, rows, **same, least=least)
    parts = []
    for difference in measured:
        reference = _next_with_default_dtype(repeated, other.dtype)
        parts.append(squared_length(difference.to(reference.dtype) - reference))
        advance(2 * len(difference))
    energy = torch.cat(parts).cpu().numpy().reshape(len(images), n_pairs, len(etas), len(signs)).mean(axis=(1, 3))
    return np.asarray(np.maximum(energy, rounding_energy(base)[:, None]))


def thinned_noise_energy(
    encoder: FrozenEncoder,
    twin: FrozenEncoder | None,
    images: Float[Tensor, "image channel height width"],
    etas: tuple[float, ...],
    *,
    seed: int,
    chunk: int,
    first_image: int = 0,
    base: Float[Tensor, "image feature"] | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Float[FloatArray, "image rung"]:
    """Return the noise energy at a quarter of the cost: one sign of one pair, on every second rung.

    Noise changes slowly along the ladder: it is the rounding of features and activations. A rung between two others
    gets the larger energy of the two.

    Args:
        encoder: the encoder as it is measured.
        twin: its float64 twin, or None.
        images: images in the encoder's dtype, on its device.
        etas: the ladder.
        seed: seed of the directions.
        chunk: perturbed images a batch.
        first_image: number of ``images[0]`` in its probe set.
        base: ``base_features`` of the encoder, where they are there already.
        advance: called with the number of perturbed images done.

    Returns:
        Energies, float64.

    """
    kept = thinned_rungs(len(etas))
    measured = noise_energy(
        encoder, twin, images, tuple(etas[rung] for rung in kept), 1,
        seed=seed, chunk=chunk, first_image=first_image, signs=(1.0,), base=base, advance=advance,
    )  # fmt: skip
    below = np.searchsorted(kept, np.arange(len(etas)), side="right") - 1
    above = np.searchsorted(kept, np.arange(len(etas)), side="left")
    return np.asarray(np.maximum(measured[:, below], measured[:, above]))


def thinned_rungs(n_rungs: int) -> list[int]:
    """Return every second rung, and the last.

    Args:
        n_rungs: of the ladder.

    Returns:
        Their numbers.

    Example:
        >>> thinned_rungs(4)
        [0, 2, 3]

    """
    return sorted({*range(0, n_rungs, 2), n_rungs - 1})


def rounding_energy(features: Float[Tensor, "image feature"]) -> Float[FloatArray, " image"]:
    """Return the energy of rounding two feature vectors of this size: 2 sum(ulp^2 / 12).

    Args:
        features: base features in the dtype in which the encoder returns them.

    Returns:
        One energy an image.

    """
    _, exponent = torch.frexp(features.float() if features.dtype != torch.float64 else features)
    ulp = torch.finfo(features.dtype).eps * torch.exp2(exponent.double().cpu() - 1)
    ulp = torch.where(features.cpu() == 0, 0.0, ulp)
    return np.asarray((2.0 * ulp.square() / 12.0).sum(dim=1).numpy())


def _one_ulp_away(images: Tensor) -> Tensor:
    """Return images whose pixels are moved by one unit in the last place, up and down in turn."""
    up = torch.arange(images[0].numel(), device=images.device).view(images.shape[1:]) % 2 == 0
    floor = images.abs().clamp(min=2.0**-6)  # the last place of a black pixel is far below the sum x + eta u
    step = torch.nextafter(floor, torch.full_like(floor, 2.0)) - floor
    return torch.where(up, images + step, images - step)


def _next_with_default_dtype(parts: Iterator[Tensor], dtype: torch.dtype) -> Tensor:
    """Return the next part, made under the default dtype that the encoder's own tensors need."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return next(parts)
    finally:
        torch.set_default_dtype(default)
