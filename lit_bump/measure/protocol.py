"""What is measured: ladder, directions, estimator, noise rule, precision and seed, in one frozen value.

Paper: section 2 and A.2 "Protocol". Needs nothing but the standard library and the ladder.
A protocol never says *how fast* (chunk, device): two measurements under one protocol must agree.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from typing import Any, Literal, get_args

from lit_bump.errors import LitBumpError, nearest
from lit_bump.measure.ladder import CIFAR_SIZE, ladder

Estimator = Literal["paper", "matched", "controlled"]
Precision = Literal["float32", "float64", "auto"]
ESTIMATORS, PRECISIONS = get_args(Estimator), get_args(Precision)
_COUNTS = {"n_pairs": 1, "n_jvp": 1, "n_noise": 1, "n_pilot": 1, "n_sketch": 0}  # the least value of each


@dataclass(frozen=True)
class Protocol:
    """Hold every choice that a response profile depends on, beside the encoder and the images.

    Args:
        etas: the ladder: increasing L2 perturbation sizes in [0, 1] pixels.
        n_pairs: direction pairs (u, -u) an image for the response; the paper takes 1024 (its 2048 directions). With
            ``controlled`` the most that an image and rung may take.
        n_jvp: exact Jacobian-vector products an image for the prediction, on the first directions; the paper takes 256.
            With ``controlled`` the most, beside those of the sketch.
        estimator: ``paper``: response and prediction are averaged over their own number of directions. ``matched``:
            both over the same pairs (``n_jvp`` equals ``n_pairs``), so that the plateau is 1 and does not jitter.
            ``controlled``: the prediction from a sketch of the Jacobian and a remainder, the response with the
            Jacobian's own as control variate, and as many pairs an image and rung as ``target_se`` needs.
        target_se: standard error over ratio that ``controlled`` works to; None for the other estimators.
        n_pilot: pairs on every rung with which ``controlled`` begins; all of them in full precision.
        n_sketch: rows of the sketch of ``controlled``; an encoder of at most twice as many features is taken whole.
        noise_tolerance: a rung of an image is discarded where the estimated floating-point noise exceeds this share of
            the measured response; the paper takes 0.05.
        n_noise: pairs an image and rung on which the floating-point noise is estimated; ``controlled`` takes one sign
            of one pair on every second rung.
        precision: dtype of the encoder's arithmetic; TF32 and autocast are off. ``auto``: float32, and bfloat16 on
            rungs of many pairs where it is fast and its difference is small; the mean difference on the first pairs,
            which are evaluated in both, is put back.
        seed: seed of the directions, below 2**32 (one word of it: longer ones would meet other images' draws).

    Raises:
        LitBumpError: if a value is out of range, with the value and what is allowed.

    Example:
        >>> protocol = Protocol.paper((3, 32, 32))
        >>> len(protocol.etas), protocol.n_pairs, protocol.n_jvp
        (17, 1024, 256)

    """

    etas: tuple[float, ...]
    n_pairs: int = 1024
    n_jvp: int = 256
    estimator: Estimator = "paper"
    target_se: float | None = None
    n_pilot: int = 8
    n_sketch: int = 32
    noise_tolerance: float = 0.05
    n_noise: int = 2
    precision: Precision = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values out of range.

        Raises:
            LitBumpError: with the value and what is allowed.

        """
        etas = tuple(float(eta) for eta in self.etas)
        object.__setattr__(self, "etas", etas)
        if not etas or not all(math.isfinite(eta) and eta > 0 for eta in etas):
            raise LitBumpError(f"etas are {etas}; give at least one, each positive and finite")
        if any(low >= high for low, high in itertools.pairwise(etas)):
            raise LitBumpError(f"etas are {etas}; give them in increasing order, each once")
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise LitBumpError(f"{name} is {value!r}; it must be a whole number, at least {least}")
            object.__setattr__(self, name, int(value))
        if self.estimator not in ESTIMATORS:
            raise LitBumpError(f"estimator is {self.estimator!r}{nearest(str(self.estimator), ESTIMATORS)}")
        if self.precision not in PRECISIONS:
            raise LitBumpError(f"precision is {self.precision!r}; give {', '.join(map(repr, PRECISIONS))}")
        self._check_estimator()
        if not self.noise_tolerance > 0:
            raise LitBumpError(f"noise_tolerance is {self.noise_tolerance}; it must be positive (the paper: 0.05)")
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral) or not 0 <= self.seed < 2**32:
            raise LitBumpError(f"seed is {self.seed!r}; it must be a whole number from 0 to 2**32 - 1")
        object.__setattr__(self, "seed", int(self.seed))

    def _check_estimator(self) -> None:
        if self.estimator == "controlled":
            if self.target_se is None or not 0 < self.target_se < 1:
                raise LitBumpError(
                    f"target_se is {self.target_se}; estimator 'controlled' needs a standard error over ratio, "
                    "above 0 and below 1, such as 0.03"
                )
            object.__setattr__(self, "n_noise", 1)
            return
        if self.target_se is not None:
            raise LitBumpError(f"target_se is {self.target_se}; only estimator 'controlled' works to one")
        if self.n_jvp > self.n_pairs:
            raise LitBumpError(f"n_jvp is {self.n_jvp}; it cannot exceed n_pairs, {self.n_pairs}")
        if self.n_noise > self.n_pairs:
            object.__setattr__(self, "n_noise", self.n_pairs)
        if self.estimator == "matched" and self.n_jvp != self.n_pairs:
            raise LitBumpError(f"estimator 'matched' needs n_jvp = n_pairs; they are {self.n_jvp} and {self.n_pairs}")

    @classmethod
    def paper(cls, input_size: tuple[int, int, int] = CIFAR_SIZE, *, seed: int = 0) -> Protocol:
        """Return the paper's protocol (A.2) for images of ``input_size``.

        Args:
            input_size: channels, height and width.
            seed: seed of the directions.

        Returns:
            17 rungs, 1024 pairs, 256 JVPs, 5 % noise rule: 34,816 perturbed images and 256 JVPs an image.

        """
        return cls(etas=ladder(input_size), seed=seed)

    @classmethod
    def quick(cls, input_size: tuple[int, int, int] = CIFAR_SIZE, *, n_pairs: int = 256, seed: int = 0) -> Protocol:
        """Return a protocol cheap enough to run while training: 3 % of standard error in the ratio of every image.

        Args:
            input_size: channels, height and width.
            n_pairs: pairs an image and rung at most; where they do not suffice, ``Profile.standard_error`` tells.
            seed: seed of the directions.

        Returns:
            17 rungs, ``target_se`` 0.03, 5 % noise rule.

        """
        return cls._controlled(input_size, target_se=0.03, n_pairs=n_pairs, seed=seed)

    @classmethod
    def accurate(cls, input_size: tuple[int, int, int] = CIFAR_SIZE, *, n_pairs: int = 2048, seed: int = 0) -> Protocol:
        """Return a protocol for results: 1 % of standard error in the ratio of every image.

        Args:
            input_size: channels, height and width.
            n_pairs: pairs an image and rung at most; where they do not suffice, ``Profile.standard_error`` tells.
            seed: seed of the directions.

        Returns:
            17 rungs, ``target_se`` 0.01, 5 % noise rule.

        """
        return cls._controlled(input_size, target_se=0.01, n_pairs=n_pairs, seed=seed)

    @classmethod
    def _controlled(cls, input_size: tuple[int, int, int], *, target_se: float, n_pairs: int, seed: int) -> Protocol:
        return cls(
            etas=ladder(input_size), n_pairs=n_pairs, estimator="controlled", target_se=target_se, n_noise=1,
            precision="auto", seed=seed,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the protocol as plain values, for JSON and YAML."""
        return {**asdict(self), "etas": list(self.etas)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Protocol:
        """Return the protocol that ``to_dict`` described.

        Args:
            values: names and plain values.

        Returns:
            An equal protocol.

        Raises:
            LitBumpError: if a name is unknown or ``etas`` is missing.

        Example:
            >>> protocol = Protocol.quick()
            >>> Protocol.from_dict(protocol.to_dict()) == protocol
            True

        """
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise LitBumpError(f"a protocol has no {name!r}{nearest(name, names)}")
        if "etas" not in values:
            raise LitBumpError("a protocol needs etas")
        return cls(**{**values, "etas": tuple(values["etas"])})

    def __str__(self) -> str:
        """Return the protocol in one line."""
        rungs = f"{len(self.etas)} rungs {self.etas[0]:.3g}..{self.etas[-1]:.3g}"
        if self.target_se is None:
            effort = f"{self.n_pairs} pairs, {self.n_jvp} JVPs"
        else:
            effort = f"standard error {100 * self.target_se:g} % (at most {self.n_pairs} pairs)"
        rule = f"noise rule {100 * self.noise_tolerance:g} %"
        return f"{rungs}, {effort}, {self.estimator}, {self.precision}, {rule}, seed {self.seed}"
