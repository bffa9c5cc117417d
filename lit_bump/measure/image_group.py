"""Some images measured together: their displacements, predictions, noise and ratios, under any estimator.

Paper: section 2, A.1, A.2. Needs torch and NumPy. Images are taken in groups so that memory does not grow with their
number; no number of one image depends on another image.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from lit_bump.measure.allocation import coarse_pays, planned_pairs
from lit_bump.measure.budget import Budget
from lit_bump.measure.control_variate import RatioEstimate, controlled_ratio, with_unseen
from lit_bump.measure.displacement import Rows, base_features, displacements
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.noise import noise_energy, thinned_noise_energy, thinned_rungs
from lit_bump.measure.prediction import LocalPrediction, local_predictions
from lit_bump.measure.profile import Reason
from lit_bump.measure.protocol import Protocol
from lit_bump.measure.standard_error import ratio_standard_error
from lit_bump.measure.work_meter import WorkMeter

FloatArray = np.ndarray
COARSE_FROM = 3  # times the pilot's pairs: from there on a second evaluation of the pilot may be worth it
CHECK_PAIRS = 32  # on which a fixed number of pairs is evaluated in both precisions
CHECK_DIFFERENCE = 0.01  # of the response: the most that they may differ by in the mean
CHECK_ERROR = 0.005  # of the response: the most error that the correction may have
MOST_ROUNDS = 12


@dataclass(frozen=True)
class Instruments:
    """Hold what evaluates images.

    Args:
        encoder: in full precision.
        twin: in float64, for the noise; or None.
        coarse: in low precision, or None.
        protocol: what to measure.
        chunk: perturbed images a forward.
        meter: counts the work.
        budget: how long it may take.

    """

    encoder: FrozenEncoder
    twin: FrozenEncoder | None
    coarse: FrozenEncoder | None
    protocol: Protocol
    chunk: int
    meter: WorkMeter
    budget: Budget


def measured_group(
    tools: Instruments,
    images: Float[Tensor, "image channel height width"],
    repeat: Float[FloatArray, " image"],
    first_image: int,
) -> dict[str, np.ndarray]:
    """Return the fields of a ``Profile`` that have an axis of images.

    Args:
        tools: encoders and protocol.
        images: in the encoder's dtype, on its device.
        repeat: energy of the difference between two runs, of every image.
        first_image: number of ``images[0]`` in its probe set.

    Returns:
        Arrays by name.

    """
    began = time.perf_counter()
    if tools.protocol.estimator == "controlled":
        measured = _Controlled(tools, images, repeat, first_image).measure()
    else:
        measured = _plain(tools, images, repeat, first_image)
    n_images = len(images)
    return {**measured, "image_seconds": np.full(n_images, (time.perf_counter() - began) / n_images)}


def sure_work(protocol: Protocol) -> int:
    """Return the perturbed images and products that every image takes, whatever is decided on the way."""
    n_rungs = len(protocol.etas)
    if protocol.estimator != "controlled":
        return 2 * n_rungs * (protocol.n_pairs + 2 * protocol.n_noise) + protocol.n_jvp
    pilot = min(protocol.n_pilot, protocol.n_pairs)
    return 2 * n_rungs * pilot + 2 * len(thinned_rungs(n_rungs)) + 2 * protocol.n_sketch + min(8, protocol.n_jvp)


def expected_work(protocol: Protocol) -> float:
    """Return about how many perturbed images an image takes, from the protocol alone."""
    if protocol.target_se is None:
        return float(sure_work(protocol))
    most = float(2 * len(protocol.etas) * protocol.n_pairs + sure_work(protocol))
    return min(most, sure_work(protocol) * max(1.0, 0.03 / protocol.target_se))


def _plain(tools: Instruments, images: Tensor, repeat: FloatArray, first_image: int) -> dict[str, np.ndarray]:
    """Return what a fixed number of pairs gives, means as they are: the paper's protocol.

    Returns:
        Arrays by name.

    """
    protocol, n_images, n_rungs = tools.protocol, len(images), len(tools.protocol.etas)
    same: dict[str, Any] = {
        "seed": protocol.seed, "chunk": tools.chunk, "first_image": first_image, "advance": tools.meter.advance,
    }  # fmt: skip
    predictions = local_predictions(tools.encoder, images, protocol.n_jvp, **same)
    sensitivity = np.stack([prediction.squares for prediction in predictions])
    displacement, correction_error, is_coarse = _fixed_pairs(tools, images, **same)
    noise = noise_energy(tools.encoder, tools.twin, images, protocol.etas, protocol.n_noise, **same)
    noise = np.maximum(noise, repeat[:, None])
    response, prediction = displacement.mean(axis=1), sensitivity.mean(axis=1)
    reason = undefined_reasons(response, prediction, noise, protocol.noise_tolerance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        expected = np.square(protocol.etas) * prediction[:, None]
        ratio = np.where(reason == Reason.KEPT, response / expected, np.nan)
    n_forwards = 2 * n_rungs * (protocol.n_pairs + 2 * protocol.n_noise)
    if tools.coarse is not None and protocol.n_pairs > COARSE_FROM * CHECK_PAIRS:
        n_forwards += 2 * n_rungs * CHECK_PAIRS
    return {
        "ratio": ratio,
        "response": response,
        "standard_error": np.hypot(
            ratio_standard_error(displacement, sensitivity, ratio), np.abs(ratio) * correction_error
        ),
        "noise": noise,
        "n_directions": np.full(ratio.shape, 2 * protocol.n_pairs),
        "n_coarse": np.where(is_coarse, 2 * protocol.n_pairs, 0),
        "reason": reason,
        "n_forwards": np.full(n_images, n_forwards),
        **_of_predictions(predictions),
    }


def _fixed_pairs(
    tools: Instruments, images: Tensor, **same: Any
) -> tuple[Float[FloatArray, "image pair rung"], Float[FloatArray, "image rung"], np.ndarray]:
    """Return the displacements of all pairs, the relative error of what corrects them, and where they are coarse.

    Where low precision agrees with float32 on the first pairs, it takes the rest, and the mean difference is added.
    """
    protocol, shape = tools.protocol, (len(images), tools.protocol.n_pairs, len(tools.protocol.etas))
    error, is_coarse = np.zeros((shape[0], shape[2])), np.zeros((shape[0], shape[2]), dtype=bool)
    wanted = np.ones(shape, dtype=bool)
    if tools.coarse is None or protocol.n_pairs <= COARSE_FROM * CHECK_PAIRS:
        rows = Rows.where(wanted)
        return displacements(tools.encoder, images, protocol.etas, rows, **same).reshape(shape), error, is_coarse
    first = Rows.grid(shape[0], CHECK_PAIRS, shape[2])
    fine, low = (
        displacements(encoder, images, protocol.etas, first, **same).reshape(shape[0], CHECK_PAIRS, shape[2])
        for encoder in (tools.encoder, tools.coarse)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        difference, mean = fine - low, fine.mean(axis=1)
        error = difference.std(axis=1, ddof=1) / np.sqrt(CHECK_PAIRS) / mean
        is_coarse = (np.abs(difference.mean(axis=1)) <= CHECK_DIFFERENCE * mean) & (error <= CHECK_ERROR)
    displacement = np.empty(shape)
    displacement[:, :CHECK_PAIRS] = np.where(is_coarse[:, None], low, fine)
    wanted[:, :CHECK_PAIRS] = False
    for encoder, chosen in ((tools.encoder, ~is_coarse), (tools.coarse, is_coarse)):
        rows = Rows.where(wanted & chosen[:, None])
        displacement[rows] = displacements(encoder, images, protocol.etas, rows, **same)
    displacement += np.where(is_coarse, difference.mean(axis=1), 0.0)[:, None]
    return displacement, np.where(is_coarse, error, 0.0), is_coarse


def _of_predictions(predictions: list[LocalPrediction]) -> dict[str, np.ndarray]:
    return {
        "prediction": np.array([prediction.value for prediction in predictions]),
        "prediction_error": np.array([prediction.standard_error for prediction in predictions]),
        "n_jvps": np.array([prediction.n_jvps for prediction in predictions]),
        "n_vjps": np.array([prediction.n_vjps for prediction in predictions]),
    }


def undefined_reasons(response: np.ndarray, prediction: np.ndarray, noise: np.ndarray, tolerance: float) -> np.ndarray:
    """Return a ``Reason`` for every image and rung; the gravest one where several hold."""
    reason = np.full(response.shape, Reason.KEPT, dtype=np.int8)
    reason[~(noise <= tolerance * response) | (response <= 0)] = Reason.NOISE
    reason[prediction == 0] = Reason.ZERO_SENSITIVITY
    reason[~np.isfinite(response) | ~np.isfinite(prediction)[:, None]] = Reason.NOT_FINITE
    return reason


class _Controlled:
    """Measure with control variates and as many pairs an image and rung as the target needs."""

    def __init__(self, tools: Instruments, images: Tensor, repeat: FloatArray, first_image: int) -> None:
        self.tools, self.images, self.repeat, self.first_image = tools, images, repeat, first_image
        protocol = tools.protocol
        assert protocol.target_se is not None  # Protocol has checked it
        self.target = protocol.target_se
        self.n_images, self.n_rungs = len(images), len(protocol.etas)
        self.n_pilot = min(protocol.n_pilot, protocol.n_pairs)
        shape = (self.n_images, self.n_rungs)
        self.fine = _Evaluations(self, tools.encoder, shape)
        self.coarse = None if tools.coarse is None else _Evaluations(self, tools.coarse, shape)
        self.is_coarse = np.zeros(shape, dtype=bool)
        self.is_tried = np.zeros(shape, dtype=bool)
        self.controls = np.zeros((self.n_images, 0))
        self.predictions: list[LocalPrediction] = []

    def measure(self) -> dict[str, np.ndarray]:
        """Return the fields of the profile."""
        protocol, tools = self.tools.protocol, self.tools
        self.predictions = local_predictions(
            tools.encoder, self.images, protocol.n_jvp, n_sketch=protocol.n_sketch, target=self.target,
            **self.settings(),
        )  # fmt: skip
        self.fine.extend(np.full((self.n_images, self.n_rungs), self.n_pilot))
        pilot_response = self.fine.values.mean(axis=1)
        noise = thinned_noise_energy(
            tools.encoder, tools.twin, self.images, protocol.etas, base=self.fine.base, **self.settings()
        )
        noise = np.maximum(noise, self.repeat[:, None])
        prediction = np.array([p.value for p in self.predictions])
        reason = undefined_reasons(pilot_response, prediction, noise, protocol.noise_tolerance)
        is_kept = reason == Reason.KEPT

        estimates = self._estimates(is_kept)
        for _ in range(MOST_ROUNDS):
            plans = tools.budget.affordable(partial(self._plans, estimates), self.target)
            n_pairs, n_fine = plans[..., 0], plans[..., 1]
            waits = self._try_coarse(estimates, n_pairs)  # the plan was made without what is known now
            grows = self.fine.extend(np.where(waits, 0, np.where(self.is_coarse, n_fine, n_pairs)))
            if self.coarse is not None:
                grows |= self.coarse.extend(np.where(self.is_coarse & ~waits, n_pairs, 0))
            if not grows and not waits.any():
                break
            estimates = self._estimates(is_kept)

        ratio = np.array([[estimate.ratio for estimate in row] for row in estimates])
        reason[is_kept & ~np.isfinite(ratio)] = Reason.NOT_FINITE  # of a pair beyond the pilot
        error = np.array([[estimate.standard_error for estimate in row] for row in estimates])
        expected = np.square(protocol.etas) * prediction[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            error = np.where(is_kept, np.hypot(error, noise / expected), np.nan)  # noise adds to the ratio, as a bias
        n_forwards = self.fine.n_forwards + 2 * len(thinned_rungs(self.n_rungs))
        n_coarse = np.zeros(ratio.shape, dtype=np.int64)
        if self.coarse is not None:
            n_forwards = n_forwards + self.coarse.n_forwards
            n_coarse = np.where(self.is_coarse, 2 * self.coarse.n_pairs, 0)
        return {
            "ratio": ratio,
            "response": np.where(is_kept, ratio * expected, pilot_response),
            "standard_error": error,
            "noise": noise,
            "n_directions": 2 * np.array([[estimate.n_pairs for estimate in row] for row in estimates]),
            "n_coarse": n_coarse,
            "reason": reason,
            "n_forwards": n_forwards,
            **_of_predictions(self.predictions),
        }

    def settings(self) -> dict[str, Any]:
        """Return what every evaluation is told."""
        return {
            "seed": self.tools.protocol.seed, "chunk": self.tools.chunk, "first_image": self.first_image,
            "advance": self.tools.meter.advance,
        }  # fmt: skip

    def _plans(self, estimates: list[list[RatioEstimate]], target: float) -> np.ndarray:
        most = self.tools.protocol.n_pairs
        return np.array([[planned_pairs(estimate, target, most) for estimate in row] for row in estimates])

    def _try_coarse(self, estimates: list[list[RatioEstimate]], n_pairs: np.ndarray) -> np.ndarray:
        """Evaluate the pilot of rungs that need many pairs in low precision too, and use that where it pays.

        Returns:
            Where that was tried.

        """
        trial = (n_pairs >= COARSE_FROM * self.n_pilot) & ~self.is_tried
        if self.coarse is None:
            return np.zeros_like(trial)
        self.is_tried |= trial
        self.coarse.extend(np.where(trial, self.n_pilot, 0))
        for number, rung in zip(*np.nonzero(trial), strict=True):
            fine = self.fine.values[number, : self.n_pilot, rung]
            low = self.coarse.values[number, : self.n_pilot, rung]
            if abs(float(fine.mean() - low.mean())) <= self.tools.protocol.noise_tolerance * float(fine.mean()):
                estimate = self._estimate(int(number), int(rung), is_coarse=True)
                self.is_coarse[number, rung] = coarse_pays(estimates[number][rung], estimate, self.target)
        return trial

    def _grow_controls(self, n_pairs: np.ndarray) -> None:
        """Take the controls of as many pairs of every image as are wanted."""
        known = self.controls.shape[1]
        grown = np.full((self.n_images, max(known, int(n_pairs.max()))), np.nan)
        grown[:, :known] = self.controls
        for number, n in enumerate(n_pairs.tolist()):
            start = int(np.isfinite(grown[number]).sum())
            if n > start:
                grown[number, start:n] = self.predictions[number].controls(
                    start, n, seed=self.tools.protocol.seed, image=self.first_image + number
                )
        self.controls = grown

    def _estimates(self, is_kept: np.ndarray) -> list[list[RatioEstimate]]:
        n_pairs = self.fine.n_pairs if self.coarse is None else np.maximum(self.fine.n_pairs, self.coarse.n_pairs)
        self._grow_controls(n_pairs.max(axis=1))
        rows = [
            [
                self._estimate(number, rung, is_coarse=bool(self.is_coarse[number, rung]))
                if is_kept[number, rung]
                else RatioEstimate.undefined(self.n_pilot, self.n_pilot)
                for rung in range(self.n_rungs)
            ]
            for number in range(self.n_images)
        ]
        return [with_unseen(row, self.tools.protocol.etas) for row in rows]

    def _estimate(self, number: int, rung: int, *, is_coarse: bool) -> RatioEstimate:
        fine, correction = self.fine.of(number, rung), np.zeros(0)
        displacement = fine
        if is_coarse and self.coarse is not None:
            displacement = self.coarse.of(number, rung)
            n_both = min(fine.size, displacement.size)
            correction = fine[:n_both] - displacement[:n_both]
        eta = self.tools.protocol.etas[rung]
        return controlled_ratio(displacement, correction, eta, self.predictions[number], self.controls[number])


class _Evaluations:
    """Hold the displacements of one encoder: of the first ``n_pairs`` pairs of every image and rung."""

    def __init__(self, owner: _Controlled, encoder: FrozenEncoder, shape: tuple[int, int]) -> None:
        self.owner, self.encoder = owner, encoder
        self.n_pairs = np.zeros(shape, dtype=np.int64)
        self.values = np.full((shape[0], 0, shape[1]), np.nan)
        self.n_forwards = np.zeros(shape[0], dtype=np.int64)
        self._base: Tensor | None = None

    @property
    def base(self) -> Tensor:
        """Features of the unperturbed images."""
        if self._base is None:
            images = self.owner.images.to(self.encoder.dtype)
            self._base = base_features(self.encoder, images, self.owner.tools.chunk)
        return self._base

    def of(self, number: int, rung: int) -> FloatArray:
        """Return the displacements of one image and rung."""
        return self.values[number, : self.n_pairs[number, rung], rung]

    def extend(self, n_pairs: np.ndarray) -> bool:
        """Evaluate what lacks.

        Args:
            n_pairs: wanted, of every image and rung.

        Returns:
            Whether anything did.

        """
        n_pairs = np.maximum(n_pairs, self.n_pairs)
        pair = np.arange(int(n_pairs.max()))[None, :, None]
        rows = Rows.where((pair >= self.n_pairs[:, None]) & (pair < n_pairs[:, None]))
        if not rows.n_rows:
            return False
        if (grown := int(n_pairs.max()) - self.values.shape[1]) > 0:
            room = np.full((self.values.shape[0], grown, self.values.shape[2]), np.nan)
            self.values = np.concatenate([self.values, room], axis=1)
        owner, tools = self.owner, self.owner.tools
        if self.n_pairs.any() or self is not owner.fine:  # the pilot was foreseen
            tools.meter.expect(2 * rows.n_rows)
        with tools.budget.timing(rows.n_rows):
            self.values[rows] = displacements(
                self.encoder, owner.images, tools.protocol.etas, rows, base=self.base, **owner.settings()
            )
        self.n_forwards += 2 * np.bincount(rows.image, minlength=len(self.n_forwards))
        self.n_pairs = n_pairs
        return True
