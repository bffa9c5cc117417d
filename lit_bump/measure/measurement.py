"""One measurement: encoder, images and protocol in, profile out.

Paper: section 2, A.1, A.2. Needs torch and NumPy; a progress bar comes from tqdm where one is shown.
The order of the checks matters: images, then the encoder's repeatability, then the derivative (cheap, may be missing),
then the many perturbed images. Nothing of the encoder or of the process is changed afterwards.
"""

from __future__ import annotations

import hashlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure.displacement import displacements
from lit_bump.measure.encoder import Encoder, as_encoder
from lit_bump.measure.frozen_encoder import FrozenEncoder, OutOfMemoryError
from lit_bump.measure.no_trace import no_trace
from lit_bump.measure.noise import float64_twin, noise_energy
from lit_bump.measure.numerics import exact_numerics
from lit_bump.measure.prediction import sensitivities
from lit_bump.measure.profile import Profile, Reason
from lit_bump.measure.protocol import Protocol
from lit_bump.measure.standard_error import ratio_standard_error
from lit_bump.measure.validation import check_encoder, validated_images

Progress = bool | Callable[[int, int], None] | None
_CHUNK_FLOATS = {"cpu": 2**20, "cuda": 2**24}  # input floats a batch: 256 images of 32 px or 8 of 224 px on a CPU
_CHUNK_LIMIT = 4096
_OF_SIZES = ("size", "shape", "should contain")  # in torch's messages; the last is BatchNorm's


def measure_profile(
    encoder: Encoder,
    images: Float[Tensor, "image channel height width"],
    protocol: Protocol,
    *,
    chunk: int | None = None,
    progress: Progress = None,
    first_image: int = 0,
) -> Profile:
    r"""Measure the response profile of every image: :math:`r_\eta(x)` over the protocol's ladder (paper, eq. 1).

    The encoder runs in evaluation mode, in the protocol's precision, without autocast, TF32 or compiled regions. Left
    as it was, also after an exception: weights, buffers, modes, gradients, hooks, cached attributes, global random
    streams, backend switches.

    Args:
        encoder: module or callable images -> features, its input normalisation inside.
        images: float images in [0, 1] pixels.
        protocol: what to measure.
        chunk: perturbed images a forward; the answer does not depend on it. Chosen by itself when None, and halved when
            memory runs out.
        progress: None shows a bar on a terminal when it lasts over a second, True always, False never; a callable gets
            (done, total) in perturbed images.
        first_image: number of ``images[0]`` in its probe set, where a set is measured in parts.

    Returns:
        Profiles with errors, noise and reasons.

    Raises:
        LitBumpError: if images or encoder cannot be measured, with the cure.

    Cost: ``n_pairs * 2 * rungs`` forwards and ``n_jvp`` products an image, and ``n_noise * 4 * rungs`` forwards for the
    noise rule, half of them in float64. Memory: a batch of ``chunk`` images through the encoder.

    Example:
        >>> images = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> profile = measure_profile(nn.Flatten(), images, Protocol.quick((3, 4, 4)))
        >>> bool(np.allclose(profile.median(), 1.0, atol=1e-3)), profile.bump().verdict
        (True, 'none')

    """
    started = time.perf_counter()
    images = validated_images(images)
    if chunk is not None and chunk < 1:
        raise LitBumpError(f"chunk is {chunk}; it must be at least 1, or None to choose it")
    if first_image < 0:
        raise LitBumpError(f"first_image is {first_image}; it must be at least 0")
    module = as_encoder(encoder)
    dtype = torch.float64 if protocol.precision == "float64" else torch.float32
    device = _device_of(module, images)
    chunk = chunk or _default_chunk(images, protocol, device)
    with no_trace(module), exact_numerics(device, dtype):
        while True:
            try:
                with _progress_bar(progress, _work(images, protocol)) as advance:
                    profile = _measure(module, images, protocol, dtype, device, chunk, first_image, advance)
                break
            except OutOfMemoryError as error:
                if chunk == 1:
                    raise LitBumpError(f"one image at a time does not fit into the memory of {device}") from error
                chunk = chunk // 2
            if device.type == "cuda":
                torch.cuda.empty_cache()
    profile = profile.with_context(device=str(device), torch=str(torch.__version__), chunk=chunk)
    return replace(profile, seconds=time.perf_counter() - started)


def image_digests(images: Float[Tensor, "image channel height width"]) -> tuple[str, ...]:
    """Return SHA-256 of every image: over its shape and its float32 pixels.

    Args:
        images: images in [0, 1] pixels.

    Returns:
        Hexadecimal digests in the order of the images.

    """
    array = images.detach().cpu().float().contiguous().numpy().astype("<f4")
    head = str(array.shape[1:]).encode()
    return tuple(hashlib.sha256(head + image.tobytes()).hexdigest() for image in array)


def _measure(
    module: nn.Module,
    images: Tensor,
    protocol: Protocol,
    dtype: torch.dtype,
    device: torch.device,
    chunk: int,
    first_image: int,
    advance: Callable[[int], None],
) -> Profile:
    shown = images.to(device, dtype)
    frozen, repeat = _prepared(module, shown, dtype, device, chunk)
    settings: Any = {"seed": protocol.seed, "first_image": first_image, "advance": advance}
    half = max(1, chunk // 2)  # a product holds about twice the memory of a forward
    sensitivity = sensitivities(frozen, shown, protocol.n_jvp, chunk=half, **settings)
    settings["chunk"] = chunk
    displacement = displacements(frozen, shown, protocol.etas, protocol.n_pairs, **settings)
    twin, method = float64_twin(frozen, shown)
    noise = noise_energy(frozen, twin, shown, protocol.etas, protocol.n_noise, **settings)
    noise = np.maximum(noise, repeat[:, None])

    etas = np.array(protocol.etas)
    response, prediction = displacement.mean(axis=1), sensitivity.mean(axis=1)
    reason = _reasons(response, prediction, noise, protocol.noise_tolerance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(reason == Reason.KEPT, response / (np.square(etas) * prediction[:, None]), np.nan)
    return Profile(
        etas=etas,
        ratio=ratio,
        response=response,
        prediction=prediction,
        standard_error=ratio_standard_error(displacement, sensitivity, ratio),
        noise=noise,
        n_directions=np.full(ratio.shape, 2 * protocol.n_pairs),
        reason=reason,
        protocol=protocol,
        encoder_digest=frozen.digest(),
        image_digests=image_digests(images),
        noise_method=method,
        n_forwards=_n_forwards(images, protocol),
        n_jvps=len(images) * protocol.n_jvp,
    )


def _prepared(
    module: nn.Module, images: Tensor, dtype: torch.dtype, device: torch.device, chunk: int
) -> tuple[FrozenEncoder, np.ndarray]:
    # The faster memory format, unless the encoder cannot run in it.
    has_convolutions = any(isinstance(part, nn.Conv2d) for part in module.modules())
    if has_convolutions and images.shape[1] > 1:
        try:
            frozen = FrozenEncoder(module, dtype, device, channels_last=True)
            return frozen, check_encoder(frozen, images, chunk)
        except RuntimeError as error:
            if "view size is not compatible" not in str(error):  # a .view() that needs contiguous features
                _refuse(error, images)
                raise
    frozen = FrozenEncoder(module, dtype, device, channels_last=False)
    try:
        return frozen, check_encoder(frozen, images, chunk)
    except RuntimeError as error:
        _refuse(error, images)
        raise


def _refuse(error: RuntimeError, images: Tensor) -> None:
    """Raise torch's complaint about sizes as one about the images; leave any other error, of memory say, alone.

    Raises:
        LitBumpError: if it is such a complaint.

    """
    if type(error) is RuntimeError and any(word in str(error) for word in _OF_SIZES):
        cause = str(error).strip().splitlines()[0]
        raise LitBumpError(f"the encoder refuses images of size {tuple(images.shape[1:])}: {cause}") from error


def _reasons(response: np.ndarray, prediction: np.ndarray, noise: np.ndarray, tolerance: float) -> np.ndarray:
    """Return a ``Reason`` for every image and rung; the gravest one where several hold."""
    reason = np.full(response.shape, Reason.KEPT, dtype=np.int8)
    reason[~(noise <= tolerance * response) | (response <= 0)] = Reason.NOISE
    reason[prediction == 0] = Reason.ZERO_SENSITIVITY
    reason[~np.isfinite(response) | ~np.isfinite(prediction)[:, None]] = Reason.NOT_FINITE
    return reason


def _device_of(module: nn.Module, images: Tensor) -> torch.device:
    named = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in named:
        if torch.nn.parameter.is_lazy(tensor):
            raise LitBumpError(
                f"{name} of the encoder has no shape yet: run the encoder once on a batch of images first"
            )
        if tensor.is_meta:
            raise LitBumpError(f"{name} of the encoder is on the meta device, without values: load the weights first")
    return named[0][1].device if named else images.device


def _n_forwards(images: Tensor, protocol: Protocol) -> int:
    return len(images) * 2 * len(protocol.etas) * (protocol.n_pairs + 2 * protocol.n_noise)


def _work(images: Tensor, protocol: Protocol) -> int:
    return _n_forwards(images, protocol) + len(images) * protocol.n_jvp


def _default_chunk(images: Tensor, protocol: Protocol, device: torch.device) -> int:
    fit = _CHUNK_FLOATS.get(device.type, _CHUNK_FLOATS["cpu"]) // math.prod(images.shape[1:])
    most = len(images) * protocol.n_pairs * len(protocol.etas) * 2
    power = 1 << max(3, max(fit, 1).bit_length() - 1)
    return max(2, min(_CHUNK_LIMIT, power, most))


@contextmanager
def _progress_bar(progress: Progress, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts perturbed images and shows how many are done."""
    if callable(progress) and not isinstance(progress, bool):
        report, done = progress, [0]

        def advance(n: int) -> None:
            done[0] += n
            report(done[0], total)

        yield advance
    elif progress or (progress is None and sys.stderr.isatty()):
        from tqdm import tqdm

        delay = 0.0 if progress else 1.0
        with tqdm(
            total=total, desc="response profile", unit="img", delay=delay, leave=False, dynamic_ncols=True
        ) as bar:

            def show(n: int) -> None:
                bar.update(n)

            yield show
    else:
        yield lambda n: None
