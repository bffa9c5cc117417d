"""One measurement: encoder, images and protocol in, profile out.

Paper: section 2, A.1, A.2. Needs torch and NumPy; a progress bar comes from tqdm where one is shown.
The order of the checks matters: images, then the encoder's repeatability, then the derivative (cheap, may be missing),
then the many perturbed images. Nothing of the encoder or of the process is changed afterwards.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure.budget import Budget
from lit_bump.measure.coarse_encoder import COARSE, coarse_encoder
from lit_bump.measure.compiled_encoder import compile_encoder, pays
from lit_bump.measure.encoder import Encoder, as_encoder
from lit_bump.measure.frozen_encoder import FrozenEncoder, OutOfMemoryError
from lit_bump.measure.image_group import Instruments, expected_work, measured_group, sure_work
from lit_bump.measure.no_trace import no_trace
from lit_bump.measure.noise import float64_twin
from lit_bump.measure.numerics import exact_numerics
from lit_bump.measure.profile import Profile
from lit_bump.measure.protocol import Protocol
from lit_bump.measure.validation import check_encoder, validated_images
from lit_bump.measure.work_meter import Progress, WorkMeter, work_meter

_CHUNK_FLOATS = {"cpu": 2**19, "cuda": 2**24}  # input floats a batch: 128 images of 32 px or 8 of 224 px on a CPU
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
    budget_seconds: float | None = None,
    compiled: bool | None = None,
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
        budget_seconds: wall time to keep to. Where the protocol has a ``target_se``, a larger standard error is taken
            instead, and ``Profile.gave_up`` says so; the answer then depends on the machine's speed.
        compiled: whether to compile the forward, which takes some seconds: True also for little work, False never, None
            where there is work enough to make up for them (a minute or more on a CPU). The user's module is not
            changed. Where it cannot be compiled, the plain one is measured, and a warning says so once.

    Returns:
        Profiles with errors, noise and reasons.

    Raises:
        LitBumpError: if images or encoder cannot be measured, with the cure.

    Cost of ``paper`` and ``matched``: ``n_pairs * 2 * rungs`` forwards and ``n_jvp`` products an image, and
    ``n_noise * 4 * rungs`` forwards for the noise rule, half of them in float64. Of ``controlled``: what ``target_se``
    needs, as the profile records; docs/estimators.md has measured numbers. Memory: a batch of ``chunk`` images through
    the encoder; it does not grow with pairs or images.

    Example:
        >>> images = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> profile = measure_profile(nn.Flatten(), images, Protocol.quick((3, 4, 4)))
        >>> bool(np.allclose(profile.median(), 1.0, atol=1e-3)), profile.bump().verdict
        (True, 'none')

    """
    started = time.perf_counter()
    whole = [(0, len(images))]
    (profile,) = measure_parts(
        encoder, images, protocol, whole, chunk=chunk, progress=progress, first_image=first_image,
        budget_seconds=budget_seconds, compiled=compiled,
    )  # fmt: skip
    return replace(profile, seconds=time.perf_counter() - started)


def measure_parts(
    encoder: Encoder,
    images: Float[Tensor, "image channel height width"],
    protocol: Protocol,
    parts: Sequence[tuple[int, int]],
    *,
    chunk: int | None = None,
    progress: Progress = None,
    first_image: int = 0,
    budget_seconds: float | None = None,
    compiled: bool | None = None,
) -> Iterator[Profile]:
    """Measure a set of images part by part, each given out as soon as it is there, so that it can be kept.

    The encoder is prepared, checked on all images and compiled once. How it is compiled depends on the whole set, so a
    part has the same numbers whichever other parts are measured, in whatever process: what was interrupted can go on,
    and devices can share the work. Between two parts the arithmetic is still set as for the measurement; it is as it
    was once the iterator has ended or is closed.

    Args:
        encoder: as for ``measure_profile``, like all that follow but ``parts``.
        images: the whole set.
        protocol: what to measure.
        parts: first image of each part, and the one after its last.
        chunk: perturbed images a forward.
        progress: how to show it.
        first_image: number of ``images[0]`` in its probe set.
        budget_seconds: wall time for all parts.
        compiled: whether to compile the forward.

    Returns:
        An iterator of a profile a part, in the order of ``parts``. ``Profile.concatenate`` joins them.

    Raises:
        LitBumpError: if images, parts or encoder cannot be measured, with the cure.

    Example:
        >>> images = torch.rand(3, 3, 4, 4, generator=torch.Generator().manual_seed(0))
        >>> parts = measure_parts(nn.Flatten(), images, Protocol.quick((3, 4, 4)), [(0, 2), (2, 3)])
        >>> Profile.concatenate(list(parts)).n_images
        3

    """
    images = validated_images(images)
    if chunk is not None and chunk < 1:
        raise LitBumpError(f"chunk is {chunk}; it must be at least 1, or None to choose it")
    if budget_seconds is not None and not budget_seconds > 0:
        raise LitBumpError(f"budget_seconds is {budget_seconds}; give a positive number, or None for no limit")
    if first_image < 0:
        raise LitBumpError(f"first_image is {first_image}; it must be at least 0")
    for start, stop in parts:
        if not 0 <= start < stop <= len(images):
            raise LitBumpError(f"part {(start, stop)} of {len(images)} images; give 0 <= start < stop <= {len(images)}")
    module = as_encoder(encoder)
    chunk = chunk or _default_chunk(images, protocol, _device_of(module, images))
    return _parts(module, images, protocol, parts, chunk, progress, first_image, budget_seconds, compiled)


def _parts(
    module: nn.Module,
    images: Tensor,
    protocol: Protocol,
    parts: Sequence[tuple[int, int]],
    chunk: int,
    progress: Progress,
    first_image: int,
    budget_seconds: float | None,
    compiled: bool | None,
) -> Iterator[Profile]:
    started = time.perf_counter()
    dtype = torch.float64 if protocol.precision == "float64" else torch.float32
    device = _device_of(module, images)
    todo = list(parts)
    work = sum(stop - start for start, stop in parts) * sure_work(protocol)
    with no_trace(module), exact_numerics(device, dtype), work_meter(progress, work) as meter:
        budget = Budget(budget_seconds, started)
        while todo:
            try:
                measured = _measured(module, images, protocol, dtype, chunk, first_image, meter, budget, compiled, todo)
                for profile in measured:
                    del todo[0]
                    facts = {"device": str(device), "torch": str(torch.__version__), "chunk": chunk}
                    profile = profile.with_context(**facts, input_size=list(images.shape[1:]))
                    yield replace(profile, seconds=time.perf_counter() - started)
                    started = time.perf_counter()
            except OutOfMemoryError as error:
                if chunk == 1:
                    raise LitBumpError(f"one image at a time does not fit into the memory of {device}") from error
                chunk = chunk // 2
            if device.type == "cuda":
                torch.cuda.empty_cache()


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


def _measured(
    module: nn.Module,
    images: Tensor,
    protocol: Protocol,
    dtype: torch.dtype,
    chunk: int,
    first_image: int,
    meter: WorkMeter,
    budget: Budget,
    compiled: bool | None,
    parts: Sequence[tuple[int, int]],
) -> Iterator[Profile]:
    device = _device_of(module, images)
    shown = images.to(device, dtype)
    frozen, repeat = _prepared(module, shown, dtype, device, chunk)
    engine = "eager"
    is_compiled = pays(frozen, shown[:1], len(images) * expected_work(protocol)) if compiled is None else compiled
    if is_compiled:
        engine = compile_encoder(frozen, shown, chunk)
    twin, method = float64_twin(frozen, shown)
    coarse = coarse_encoder(module, shown, protocol, channels_last=frozen.memory_format is torch.channels_last)
    if is_compiled and coarse is not None:
        compile_encoder(coarse, shown.to(coarse.dtype), chunk)
    tools = Instruments(frozen, twin, coarse, protocol, chunk, meter, budget)
    digest, digests = frozen.digest(), image_digests(images)
    at_once = _group_size(chunk)
    groups_left = sum(math.ceil((stop - start) / at_once) for start, stop in parts)
    for first, last in list(parts):
        groups = []
        for start in range(first, last, at_once):
            budget.open_group(groups_left)
            groups_left -= 1
            group = slice(start, min(start + at_once, last))
            groups.append(measured_group(tools, shown[group], repeat[group], first_image + start))
        arrays: dict[str, Any] = {name: np.concatenate([group[name] for group in groups]) for name in groups[0]}
        yield Profile(
            etas=np.array(protocol.etas),
            **arrays,
            protocol=protocol,
            encoder_digest=digest,
            image_digests=digests[first:last],
            noise_method=method,
            coarse_dtype=str(COARSE).removeprefix("torch.") if arrays["n_coarse"].any() else "",
            gave_up=budget.gave_up(protocol.target_se),
            context={"engine": engine},
        )


def _group_size(chunk: int) -> int:
    """Return how many images are measured together: enough to fill batches, few enough to bound memory."""
    return max(1, min(16, chunk // 8))


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


def _default_chunk(images: Tensor, protocol: Protocol, device: torch.device) -> int:
    fit = _CHUNK_FLOATS.get(device.type, _CHUNK_FLOATS["cpu"]) // math.prod(images.shape[1:])
    most = len(images) * protocol.n_pairs * len(protocol.etas) * 2
    power = 1 << max(3, max(fit, 1).bit_length() - 1)
    return max(2, min(_CHUNK_LIMIT, power, most))
