"""The obvious implementation of the measurement: float64, explicit Jacobians, Python loops, nothing clever.

Paper: eq. 1, A.1, A.2. Shares with the package only the directions, which are part of the definition.
An encoder here is any callable on float64 images; give a ``.double()`` copy of a module, in evaluation mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from lit_bump.measure import Protocol
from lit_bump.measure.directions import antipodal_directions

Array = np.ndarray
Reference64 = Callable[[Tensor], Tensor]


@dataclass
class Reference:
    """Response profiles by definition, axes ``image, rung`` (``prediction`` and ``exact_prediction``: ``image``)."""

    ratio: Array
    response: Array
    prediction: Array
    standard_error: Array
    exact_prediction: Array


def jacobian(encoder: Reference64, image: Tensor) -> Tensor:
    """Return the explicit Jacobian of the flattened features at one image, ``(feature, pixel)``."""

    def features(flat: Tensor) -> Tensor:
        return encoder(flat.view(1, *image.shape)).flatten()

    with sdpa_kernel(SDPBackend.MATH):
        matrix: Tensor = torch.func.jacrev(features)(image.double().flatten())
    return matrix.detach()


def trace_prediction(encoder: Reference64, image: Tensor) -> float:
    """Return tr G / d, the mean of ``|J u|^2`` over the whole sphere."""
    matrix = jacobian(encoder, image)
    return float(torch.trace(matrix @ matrix.T)) / matrix.shape[1]


def pair_displacement(encoder: Reference64, image: Tensor, step: Tensor, *, antipodes: bool = True) -> float:
    """Return the mean squared displacement over ``step`` and ``-step``; of ``step`` alone without antipodes."""
    with torch.no_grad():
        base = encoder(image[None]).flatten()
        signs = (1.0, -1.0) if antipodes else (1.0,)
        squares = [float((encoder((image + sign * step)[None]).flatten() - base).square().sum()) for sign in signs]
    return sum(squares) / len(squares)


def delta_method_error(displacement: list[float], sensitivity: list[float], eta: float) -> float:
    """Return the standard error of mean(D) / (eta^2 mean(S)) from the covariance matrix of the two means."""
    n, m = len(displacement), len(sensitivity)
    mean_d, mean_s = sum(displacement) / n, sum(sensitivity) / m
    head = displacement[:m]
    covariance = sum((d - sum(head) / m) * (s - mean_s) for d, s in zip(head, sensitivity, strict=True)) / (m - 1)
    variance = np.array(
        [[np.var(displacement, ddof=1) / n, covariance / n], [covariance / n, np.var(sensitivity, ddof=1) / m]]
    )
    gradient = np.array([1.0 / (eta**2 * mean_s), -mean_d / (eta**2 * mean_s**2)])
    return float(np.sqrt(max(gradient @ variance @ gradient, 0.0)))


def reference_profile(
    encoder: Reference64, images: Tensor, protocol: Protocol, *, antipodes: bool = True, first_image: int = 0
) -> Reference:
    """Return profiles by definition; ``antipodes=False`` drops the second half of every direction set."""
    size = images.shape[1:]
    ratio, response, prediction, error, exact = [], [], [], [], []
    for number, image in enumerate(images.double()):
        u = antipodal_directions(protocol.n_pairs, size.numel(), seed=protocol.seed, image=first_image + number)
        u = u[: protocol.n_pairs].double()
        matrix = jacobian(encoder, image)
        sensitivity = [float((matrix @ u[k]).square().sum()) for k in range(protocol.n_jvp)]
        predicted = sum(sensitivity) / len(sensitivity)
        rows = []
        for eta in protocol.etas:
            displacement = [
                pair_displacement(encoder, image, eta * u[k].view(size), antipodes=antipodes)
                for k in range(protocol.n_pairs)
            ]
            measured = sum(displacement) / len(displacement)
            se = delta_method_error(displacement, sensitivity, eta) if protocol.n_jvp > 1 else float("nan")
            rows.append((measured, measured / (eta**2 * predicted), se))
        response.append([row[0] for row in rows])
        ratio.append([row[1] for row in rows])
        error.append([row[2] for row in rows])
        prediction.append(predicted)
        exact.append(float(torch.trace(matrix @ matrix.T)) / matrix.shape[1])
    return Reference(*(np.array(values) for values in (ratio, response, prediction, error, exact)))
