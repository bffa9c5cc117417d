"""The denominator tr G / d by several estimators: error over seeds, products, seconds.

Paper: A.2 takes 256 Jacobian-vector products. Needs the package; curvlinops (the extra ``bench``) for its rows. Every
method runs on the same frozen encoder with the same batched products, so that only the estimators differ.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.shared import Setting, Table, shown_range
from benchmarks.subjects import frozen, trained_subject
from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.prediction import local_predictions

CHUNK = 256
HEAD = ("estimator", "relative error (rms), %", "worst image, %", "products an image", "seconds an image")
Estimator = Callable[[int], "tuple[list[float], float]"]  # seed -> value of every image, products of each
FUNCTIONS = {"Hutchinson": "hutchinson_trace", "Hutch++": "hutchpp_trace", "XTrace": "xtrace"}


class GramOperator:
    """Multiply by G = J^T J of one image, in the form that curvlinops asks of a linear operator."""

    def __init__(self, encoder: FrozenEncoder, image: Tensor) -> None:
        self.encoder, self.image = encoder, image
        self.shape = (image.numel(), image.numel())
        self.device, self.dtype = image.device, image.dtype
        self.n_products = 0

    def __matmul__(self, columns: Tensor) -> Tensor:
        """Return G times the columns: a JVP and a VJP for each."""
        parts = []
        for part in torch.split(columns.T, CHUNK // 4):
            tangents = self.encoder.derivatives(self.image[None], part.reshape(1, -1, *self.image.shape))
            parts.append(self.encoder.cotangent_products(self.image[None], tangents)[0])
        self.n_products += 2 * columns.shape[1]
        return torch.cat(parts).T


def tables(setting: Setting) -> list[Table]:
    """Return the estimators' errors and costs."""
    subject = trained_subject(*setting.pick((4, 2), (16, 800), (16, 800)), setting)
    n_images, n_seeds = setting.pick((2, 2), (2, 3), (4, 10))
    title = f"Denominators: tr G / d, {subject.name}, {subject.weights}, {n_images} images, {n_seeds} seeds"
    table = Table(title, HEAD)
    images = subject.images(n_images)
    with frozen(subject) as encoder:
        start = time.perf_counter()
        exact = np.array([_exact(encoder, image) for image in images])
        n_features = encoder(images[:1]).shape[1]
        taken = (time.perf_counter() - start) / n_images
        table.add("exact, torch.func.jacrev", 0.0, 0.0, n_features, taken)
        for name, estimator in _estimators(encoder, images, setting):
            estimator(n_seeds)  # warm up
            start = time.perf_counter()
            values, products = zip(*(estimator(seed) for seed in range(n_seeds)), strict=True)
            taken = (time.perf_counter() - start) / (n_seeds * n_images)
            error = np.square(np.array(values) / exact - 1)
            rms, worst = np.sqrt(error.mean()), np.sqrt(error.mean(axis=0).max())
            table.add(name, float(100 * rms), float(100 * worst), float(np.mean(products)), taken)
    table.notes.append(
        "A product is one JVP or one VJP; a multiplication by G is one of each. The three of curvlinops draw "
        f"Rademacher vectors in pixel space; tr G / d of the images is {shown_range(exact)}."
    )
    if importlib.util.find_spec("curvlinops") is None:
        table.notes.append("curvlinops is not installed: its rows are left out (`pip install -e .[bench]`).")
    return [table]


def _exact(encoder: FrozenEncoder, image: Tensor) -> float:
    jacobian = torch.func.jacrev(lambda x: encoder(x[None])[0], chunk_size=CHUNK // 4)(image)
    return float(jacobian.double().square().sum()) / image.numel()


def _estimators(encoder: FrozenEncoder, images: Tensor, setting: Setting) -> Iterator[tuple[str, Estimator]]:
    n_jvp, n_sketch = setting.pick((16, 4), (256, 32), (256, 32))
    yield f"paper: {n_jvp} JVPs", lambda seed: _ours(encoder, images, seed, n_jvp, 0, None)
    for target in (0.03, 0.01):
        yield (
            f"lit_bump, sketch of {n_sketch}, target {100 * target:g} %",
            lambda seed, target=target: _ours(encoder, images, seed, n_jvp, n_sketch, target),  # type: ignore[misc]
        )
    if importlib.util.find_spec("curvlinops") is None:
        return
    curvlinops = importlib.import_module("curvlinops")
    for n_matvecs in setting.pick((6,), (36, 126), (36, 126)):
        for name, function in FUNCTIONS.items():
            trace = getattr(curvlinops, function)
            yield (
                f"curvlinops {name}, {n_matvecs} multiplications",
                lambda seed, trace=trace, n=n_matvecs: _theirs(encoder, images, seed, trace, n),  # type: ignore[misc]
            )


def _ours(
    encoder: FrozenEncoder, images: Tensor, seed: int, n_jvp: int, n_sketch: int, target: float | None
) -> tuple[list[float], float]:
    found = local_predictions(encoder, images, n_jvp, n_sketch=n_sketch, target=target, seed=seed, chunk=CHUNK)
    return [p.value for p in found], float(np.mean([p.n_jvps + p.n_vjps for p in found]))


def _theirs(
    encoder: FrozenEncoder, images: Tensor, seed: int, trace: Callable[..., Any], n_matvecs: int
) -> tuple[list[float], float]:
    values, operators = [], [GramOperator(encoder, image) for image in images]
    with torch.random.fork_rng(devices=[images.device] if images.is_cuda else []):
        torch.manual_seed(seed)
        for operator in operators:
            values.append(float(trace(operator, n_matvecs)) / operator.shape[0])
    return values, float(np.mean([operator.n_products for operator in operators]))
