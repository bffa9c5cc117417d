"""The result of a measurement: ratios, errors, noise and reasons of every image and rung, in one frozen record.

Paper: eq. 1 and A.2 (per-image profiles, medians over the images that the noise rule leaves). Needs NumPy alone.
NaN in ``ratio`` always has its reason in ``reason``; nothing is ever replaced by 0, 1 or infinity.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from lit_bump.errors import LitBumpError
from lit_bump.measure.bump import Bump, describe_bump, median_interval, median_over_images
from lit_bump.measure.protocol import Protocol
from lit_bump.measure.stored_arrays import stored_arrays

FloatArray = np.ndarray
IntArray = np.ndarray
FORMAT = 2  # of the saved file; raise it when a reader of the old form would be misled


class Reason(IntEnum):
    """Why a ratio is undefined."""

    KEPT = 0  # it is defined
    NOISE = 1  # estimated floating-point noise above Protocol.noise_tolerance of the response
    ZERO_SENSITIVITY = 2  # every Jacobian-vector product is zero: there is no local prediction
    NOT_FINITE = 3  # the encoder returned NaN or inf


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """Hold the response profiles of some images under one protocol.

    Args:
        etas: the ladder (L2, [0, 1] pixels).
        ratio: r of every image and rung; NaN where undefined.
        response: mean squared feature displacement.
        prediction: tr G / d, the predicted response per unit eta^2.
        standard_error: of ``ratio``, over direction pairs; NaN where it cannot be known.
        noise: estimated floating-point noise energy in ``response``.
        n_directions: directions behind every response, antipodes counted.
        n_coarse: those of them that were evaluated in ``coarse_dtype``.
        reason: a ``Reason`` code for every ratio.
        protocol: what was measured.
        encoder_digest: SHA-256 over the encoder's tensors, or the name of a plain callable.
        image_digests: SHA-256 of every image.
        noise_method: how ``noise`` was estimated.
        seconds: wall time of the measurement.
        prediction_error: standard error of ``prediction``.
        n_forwards: perturbed copies of every image that went through the encoder, in whatever precision.
        n_jvps: Jacobian-vector products of every image.
        n_vjps: vector-Jacobian products of every image.
        image_seconds: wall time that every image took of ``seconds``.
        coarse_dtype: dtype of low-precision evaluations; empty where there are none.
        gave_up: what was given up to keep to a budget, in words; empty where nothing was.
        context: free facts for people (step, probe set, versions), plain values only.

    """

    etas: Float[FloatArray, " rung"]
    ratio: Float[FloatArray, "image rung"]
    response: Float[FloatArray, "image rung"]
    prediction: Float[FloatArray, " image"]
    standard_error: Float[FloatArray, "image rung"]
    noise: Float[FloatArray, "image rung"]
    n_directions: Int[IntArray, "image rung"]
    n_coarse: Int[IntArray, "image rung"]
    reason: Int[IntArray, "image rung"]
    prediction_error: Float[FloatArray, " image"]
    n_forwards: Int[IntArray, " image"]
    n_jvps: Int[IntArray, " image"]
    n_vjps: Int[IntArray, " image"]
    image_seconds: Float[FloatArray, " image"]
    protocol: Protocol
    encoder_digest: str
    image_digests: tuple[str, ...]
    noise_method: str
    seconds: float = 0.0
    coarse_dtype: str = ""
    gave_up: str = ""
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def n_images(self) -> int:
        """Number of images, undefined ones included."""
        return int(self.ratio.shape[0])

    @property
    def forward_equivalents(self) -> Float[FloatArray, " image"]:
        """Cost of every image in forwards, a product counted as two (its primal and its tangent)."""
        return np.asarray(self.n_forwards + 2.0 * (self.n_jvps + self.n_vjps))

    @property
    def images_digest(self) -> str:
        """SHA-256 over the digests of the images, in order."""
        return hashlib.sha256("".join(self.image_digests).encode()).hexdigest()

    def median(self) -> Float[FloatArray, " rung"]:
        """Return the median ratio over the kept images of every rung; NaN where there is none."""
        return median_over_images(self.ratio)

    def quantiles(self, q: Sequence[float]) -> Float[FloatArray, "quantile rung"]:
        """Return quantiles of the ratio over the kept images of every rung.

        Args:
            q: shares between 0 and 1.

        Returns:
            Linear-interpolation quantiles; NaN where no image is kept.

        """
        result = np.full((len(q), self.etas.size), np.nan)
        for rung in np.flatnonzero(self.n_kept()):
            column = self.ratio[:, rung]
            result[:, rung] = np.quantile(column[np.isfinite(column)], q)
        return result

    def median_interval(self) -> Float[FloatArray, "2 rung"]:
        """Return the 90 % interval of the median ratio of every rung, over images and directions together.

        Returns:
            Lower and upper end; NaN where no image is kept, or for a single image of unknown standard error.

        """
        return median_interval(self.ratio, self.standard_error, seed=self.protocol.seed)

    def n_kept(self) -> Int[IntArray, " rung"]:
        """Return the number of images with a defined ratio at every rung."""
        return np.asarray(np.isfinite(self.ratio).sum(axis=0))

    def bump(self) -> Bump:
        """Return what the median profile shows: verdict, height, place, width, with intervals."""
        return describe_bump(self.etas, self.ratio, self.standard_error, seed=self.protocol.seed)

    def reasons(self) -> dict[str, int]:
        """Return how many (image, rung) ratios are undefined, by reason; empty where all are defined."""
        counts = Counter(int(code) for code in self.reason.ravel())
        return {Reason(code).name.lower(): n for code, n in sorted(counts.items()) if code != Reason.KEPT}

    def with_context(self, **facts: Any) -> Profile:
        """Return the same profile with more facts in its context.

        Args:
            facts: plain values by name.

        Returns:
            A new profile that shares the arrays.

        """
        return replace(self, context={**self.context, **facts})

    @classmethod
    def concatenate(cls, profiles: Sequence[Profile]) -> Profile:
        """Join profiles of consecutive images that were measured apart, for instance by several processes.

        Args:
            profiles: in the order of the images, all of one protocol and one encoder.

        Returns:
            One profile; seconds are the longest.

        Raises:
            LitBumpError: if there is none, or protocols or encoders differ.

        """
        if not profiles:
            raise LitBumpError("there are no profiles to join")
        first = profiles[0]
        for other in profiles[1:]:
            if other.protocol != first.protocol or other.encoder_digest != first.encoder_digest:
                raise LitBumpError("profiles of different protocols or encoders cannot be joined")
        joined: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in profiles]) for name in _PER_IMAGE}
        return replace(
            first,
            **joined,
            image_digests=tuple(digest for p in profiles for digest in p.image_digests),
            noise_method="; ".join(dict.fromkeys(p.noise_method for p in profiles)),
            seconds=max(p.seconds for p in profiles),
            coarse_dtype=max(p.coarse_dtype for p in profiles),
            gave_up="; ".join(dict.fromkeys(filter(None, (p.gave_up for p in profiles)))),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the profile as ``.npz`` without pickles; the file appears whole or not at all.

        Args:
            path: the file; its folder is made where it does not exist.

        Returns:
            The path.

        Raises:
            LitBumpError: if the context holds more than text and numbers.

        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = self.to_bytes()
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
        finally:
            with suppress(OSError):  # where even that is not allowed, the first error is the one that tells
                Path(temporary).unlink(missing_ok=True)  # there only after an error or an interrupt
        return path

    def to_bytes(self) -> bytes:
        """Return the content of the file that ``save`` writes.

        Returns:
            An ``.npz`` archive without pickles.

        Raises:
            LitBumpError: if the context holds more than text and numbers.

        """
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*_ARRAYS, "protocol")}
        facts = {"format": FORMAT, "protocol": self.protocol.to_dict(), **facts}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        file = io.BytesIO()
        np.savez(file, facts=np.array(json.dumps(facts, default=_plain)), **arrays)
        return file.getvalue()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """Read a saved profile.

        Args:
            path: a file that ``save`` wrote.

        Returns:
            An equal profile.

        Raises:
            LitBumpError: if the file is not a whole, readable profile.

        """
        if not Path(path).is_file():
            raise LitBumpError(f"there is no saved profile at {path}")
        return cls._read(path, str(path))

    @classmethod
    def from_bytes(cls, content: bytes) -> Profile:
        """Return the profile that ``to_bytes`` described.

        Args:
            content: an ``.npz`` archive.

        Returns:
            An equal profile.

        Raises:
            LitBumpError: if it is not a whole, readable profile.

        """
        return cls._read(io.BytesIO(content), "a profile in memory")

    @classmethod
    def _read(cls, source: str | os.PathLike[str] | io.BytesIO, name: str) -> Profile:
        try:
            stored = stored_arrays(source)
            facts = json.loads(str(stored["facts"]))
            json.dumps(facts, ensure_ascii=False).encode()  # JSON may hold halves of letters, which no file can
            made_as = facts.pop("format")
            if made_as != FORMAT:
                raise LitBumpError(f"its format is {made_as}, not {FORMAT}: read it with the version that wrote it")
            protocol = Protocol.from_dict(facts.pop("protocol"))
            _check_facts(facts)
            facts["seconds"] = float(facts.get("seconds", 0.0))
            digests = tuple(facts.pop("image_digests"))
            arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
            _check_arrays(arrays, (len(digests), len(protocol.etas)))
            if arrays["etas"].tolist() != list(protocol.etas):
                raise LitBumpError("its etas are not those of its protocol")
            return cls(**arrays, protocol=protocol, image_digests=digests, **facts)
        except KeyError as error:
            cause = f"it lacks {str(error)[:80]}"
        except Exception as error:  # junk may be anything, and nested as deep
            cause = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise LitBumpError(f"{name} is not a saved profile that can be read ({cause}); remove it to go on")

    def __repr__(self) -> str:
        """Return the line of ``str``, with the class's name; the arrays are not shown."""
        return f"<Profile: {self}>"

    def __str__(self) -> str:
        """Return size, protocol, undefined ratios and the bump, in one line."""
        undefined = "".join(f", {n} ratios undefined by {reason}" for reason, n in self.reasons().items())
        return f"{self.n_images} images, {self.protocol}{undefined}; {self.bump()}"


_OF_RUNGS = ("ratio", "response", "standard_error", "noise", "n_directions", "n_coarse", "reason")
_OF_IMAGES = ("prediction", "prediction_error", "n_forwards", "n_jvps", "n_vjps", "image_seconds")
_PER_IMAGE = (*_OF_RUNGS, *_OF_IMAGES)
_ARRAYS = ("etas", *_PER_IMAGE)
_KINDS = {"n_directions": "iu", "n_coarse": "iu", "reason": "iu", "n_forwards": "iu", "n_jvps": "iu", "n_vjps": "iu"}
_FACTS = {
    "encoder_digest": str, "image_digests": list, "noise_method": str, "seconds": float, "coarse_dtype": str,
    "gave_up": str, "context": dict,
}  # fmt: skip


def _check_facts(facts: dict[str, Any]) -> None:
    """Refuse facts of another type than they have.

    Raises:
        LitBumpError: with the name of the first.

    """
    for name, value in facts.items():
        kind = _FACTS.get(name)
        if kind is None:
            raise LitBumpError(f"a profile has no {name[:80]!r}")
        if not isinstance(value, (int, float) if kind is float else kind):
            raise LitBumpError(f"its {name} is no {kind.__name__}")
    if not all(isinstance(digest, str) for digest in facts["image_digests"]):
        raise LitBumpError("its image_digests are no text")


def _check_arrays(arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> None:
    """Refuse arrays that are of other shapes or kinds than a profile of as many images and rungs has.

    Raises:
        LitBumpError: with the name of the first.

    """
    for name, array in arrays.items():
        expected = shape[1:] if name == "etas" else shape[:1] if name in _OF_IMAGES else shape
        if array.shape != expected:
            raise LitBumpError(f"{name} has shape {array.shape}, not {expected}")
        if array.dtype.kind not in _KINDS.get(name, "f"):
            raise LitBumpError(f"{name} is of {array.dtype}")
    if not np.isin(arrays["reason"], [code.value for code in Reason]).all():
        raise LitBumpError("it gives reasons that there are not")


def _plain(value: Any) -> Any:
    """Return a NumPy or torch number in a context as a plain one, for JSON.

    Raises:
        LitBumpError: for anything else.

    """
    if callable(item := getattr(value, "item", None)):
        return item()
    raise LitBumpError(f"a profile's context holds {value!r}; give text and numbers only")


def _umask() -> int:
    """Return the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
