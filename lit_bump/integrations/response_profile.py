"""ResponseProfile: the measurement as a torchmetrics metric: update with images, compute a profile, plot it.

Paper: eq. 1. Needs torchmetrics. Every update measures its images at once, with the weights as they are then; compute
joins what all updates, and all processes, have measured. Wherever the metric lives, the encoder stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torchmetrics import Metric

from lit_bump.callbacks.protocol_choice import ProtocolChoice, chosen_protocol
from lit_bump.errors import LitBumpError
from lit_bump.measure import NormalisedEncoder, Profile, as_encoder, measure_profile

_STRIDE = 2**20  # images between the first numbers of two processes: none has the directions of another's image


class ResponseProfile(Metric):
    """Measure response profiles of the images that it is given.

    Args:
        encoder: module or callable images in [0, 1] pixels -> features. It is neither copied nor registered: the metric
            follows its weights, and ``clone`` shares it.
        protocol: ``quick`` (also None), ``accurate``, ``paper``, fields that replace those of ``quick``, or a protocol.
        mean: a value a channel, for an encoder that expects normalised images.
        std: a value a channel, with ``mean``.
        chunk: perturbed images a forward; chosen by itself when None.
        kwargs: of ``torchmetrics.Metric``.

    Raises:
        LitBumpError: if an argument is wrong.

    Images are numbered in the order of the updates, every process from its own beginning, and directions follow the
    number: one process gives the same answer however the images are divided into updates; several give the images
    other directions than one does, within the stated errors. Weights that change between two updates are refused by
    ``compute``.

    Example:
        >>> metric = ResponseProfile(nn.Flatten(), {"target_se": 0.05})
        >>> metric.update(torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
        >>> {name: round(float(value), 2) for name, value in metric.compute().items() if value.ndim == 0}
        {'max_r': 1.0, 'log10_peak_eta': nan, 'width_decades': nan}

    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    blobs: list[Tensor]
    n_images: Tensor

    def __init__(
        self,
        encoder: nn.Module | Callable[..., Any],
        protocol: ProtocolChoice = None,
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        chunk: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (std is None):
            raise LitBumpError(f"mean is {mean} and std is {std}; give both or neither")
        chosen_protocol(protocol, (3, 32, 32))  # a wrong name or value is said now
        self._encoder = _Shared(encoder)
        self.protocol, self.mean, self.std, self.chunk = protocol, mean, std, chunk
        self.add_state("blobs", default=[], dist_reduce_fx="cat")  # a saved profile an update, its length before it
        self.add_state("n_images", default=torch.zeros((), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, images: Float[Tensor, "image channel height width"]) -> None:
        """Measure images.

        Args:
            images: float images in [0, 1] pixels.

        Raises:
            LitBumpError: if images or encoder cannot be measured, with the cure.

        """
        encoder = as_encoder(self._encoder.it)
        device = next((tensor.device for tensor in (*encoder.parameters(), *encoder.buffers())), images.device)
        if self.mean is not None and self.std is not None:
            encoder = NormalisedEncoder(encoder, self.mean, self.std)
        rank = torch.distributed.get_rank() if _is_distributed() else 0
        with torch.inference_mode(mode=False):
            profile = measure_profile(
                encoder, images.to(device), chosen_protocol(self.protocol, _size_of(images)), chunk=self.chunk,
                progress=False, first_image=rank * _STRIDE + int(self.n_images),
            )  # fmt: skip
        blob = _packed(profile)
        self.blobs.append(blob.to(self.device))
        self.n_images += len(images)

    def profile(self) -> Profile:
        """Return all that has been measured since the last reset, in this process.

        Returns:
            The images in the order of the updates; after a sync those of all processes.

        Raises:
            LitBumpError: if nothing was measured, or the weights have changed in between.

        """
        blobs = [self.blobs] if isinstance(self.blobs, Tensor) else list(self.blobs)  # one tensor after a sync
        profiles = [profile for blob in blobs for profile in _unpacked(blob.cpu())]
        if not profiles:
            raise LitBumpError("nothing measured yet: call update(images) before compute()")
        if len({one.encoder_digest for one in profiles}) > 1:
            raise LitBumpError("the weights have changed between two updates: call reset() before measuring others")
        return Profile.concatenate(profiles)

    def compute(self) -> dict[str, Tensor]:
        """Return what the median profile shows.

        Returns:
            ``max_r``, ``log10_peak_eta`` and ``width_decades`` as scalars, NaN where there is no interior peak; and by
            rung ``log10_eta``, ``median``, ``low`` and ``high`` (the median's 90 % interval), and ``n_kept``.

        Raises:
            LitBumpError: if nothing was measured, or the weights have changed in between.

        """
        profile = self.profile()
        bump = profile.bump()
        is_bump = bump.verdict == "bump"
        low, high = profile.median_interval()
        values = {
            "max_r": bump.height,
            "log10_peak_eta": bump.log10_eta if is_bump else math.nan,
            "width_decades": bump.width_decades if is_bump else math.nan,
            "log10_eta": np.log10(profile.etas),
            "median": profile.median(),
            "low": low,
            "high": high,
            "n_kept": profile.n_kept(),
        }
        return {name: torch.as_tensor(value, dtype=torch.float64).float() for name, value in values.items()}

    def plot(self, val: Any = None, ax: Any = None) -> tuple[Any, Any]:
        """Draw the profile: images thin, the median bold, a band of quartiles.

        Args:
            val: a profile, such as ``self.profile()`` of an earlier time; what has been measured if None.
            ax: Matplotlib axes to draw on; a new figure if None.

        Returns:
            Figure and axes.

        Raises:
            LitBumpError: if nothing was measured, or ``val`` is no profile.

        """
        from lit_bump.figures.profile_figure import draw_profile, profile_figure

        profile = self.profile() if val is None else val
        if not isinstance(profile, Profile):
            raise LitBumpError(f"val is a {type(profile).__name__}: give a Profile, such as metric.profile()")
        if ax is None:
            figure = profile_figure(profile)
            return figure, figure.axes[0]
        draw_profile(ax, profile)
        return ax.get_figure(), ax


class _Shared:
    """Hold an encoder so that neither ``nn.Module`` registers it nor a copy of the metric copies it."""

    def __init__(self, it: Any) -> None:
        self.it = it

    def __deepcopy__(self, memo: dict[int, Any]) -> _Shared:
        return self


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _size_of(images: Tensor) -> tuple[int, int, int]:
    if images.dim() != 4:
        raise LitBumpError(f"images have shape {tuple(images.shape)}: give (image, channel, height, width)")
    return int(images.shape[1]), int(images.shape[2]), int(images.shape[3])


def _packed(profile: Profile) -> Tensor:
    """Return the bytes of a saved profile, their number before them: tensors are what a metric can synchronise."""
    content = profile.to_bytes()
    length = np.array([len(content)], dtype="<i8").tobytes()
    return torch.from_numpy(np.frombuffer(length + content, dtype=np.uint8).copy())


def _unpacked(blob: Tensor) -> Iterator[Profile]:
    content = blob.numpy().tobytes()
    while content:
        length = int(np.frombuffer(content[:8], dtype="<i8")[0])
        yield Profile.from_bytes(content[8 : 8 + length])
        content = content[8 + length :]
