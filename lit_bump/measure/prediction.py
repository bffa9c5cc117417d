r"""The local linear prediction of every image: :math:`tr\,G / d`, the mean of :math:`\|J u\|^2` over the sphere.

Paper: A.1 (the prediction is eta^2 tr G / d) and A.2 (exact Jacobian-vector products, 256 of them). Needs torch, NumPy.
A few large eigenvalues hold most of the trace. With the rows of A spanning them (A = Q^T J, Q orthonormal),

.. math:: tr\,G / d = \|A\|_F^2 / d + E_u [ \|J u\|^2 - \|A u\|^2 ],

the first term exact, the second small and estimated on the first pairs: unbiased for every Q that does not depend on
those pairs, also for a wrong one. The split is that of Hutch++ (Meyer et al. 2021). Without A it is the paper's mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lit_bump.measure.directions import BLOCK_PAIRS, directions
from lit_bump.measure.displacement import squared_length
from lit_bump.measure.frozen_encoder import FrozenEncoder, ReverseDerivativeError

FloatArray = np.ndarray
LEAST_PRODUCTS = 8  # on which the remainder is estimated before its error is known
PRODUCTS_SHARE = 0.5  # of the target standard error that the prediction may take; the pairs get the rest


@dataclass(frozen=True, eq=False)
class LocalPrediction:
    r"""Hold what is known of one image's Jacobian.

    Args:
        captured: :math:`\|A\|_F^2 / d`; 0 without A.
        squares: :math:`\|J u\|^2` of the first pairs.
        remainders: the same less :math:`\|A u\|^2`.
        rows: A, or None.
        n_jvps: Jacobian-vector products spent, those of the sketch included.
        n_vjps: vector-Jacobian products spent.

    """

    captured: float
    squares: Float[FloatArray, " product"]
    remainders: Float[FloatArray, " product"]
    rows: Float[Tensor, "row pixel"] | None
    n_jvps: int
    n_vjps: int

    @property
    def value(self) -> float:
        """The prediction per unit eta^2."""
        return self.captured + float(self.remainders.mean())

    @property
    def standard_error(self) -> float:
        """Its standard error; NaN for a single product."""
        n = self.remainders.size
        return float(self.remainders.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    def control(self, u: Float[Tensor, "pair pixel"]) -> Float[FloatArray, " pair"]:
        r"""Return :math:`\|A u\|^2`, whose mean over the sphere is ``captured``; 0 without A."""
        if self.rows is None:
            return np.zeros(len(u))
        return np.asarray(squared_length(u.to(self.rows) @ self.rows.T).cpu().numpy())

    def controls(self, first: int, last: int, *, seed: int, image: int) -> Float[FloatArray, " pair"]:
        """Return the control of pairs ``first`` to ``last - 1``, drawn block by block.

        Args:
            first: number of the first pair.
            last: number after the last pair.
            seed: seed of the directions.
            image: the image's number in its probe set.

        Returns:
            As ``control``.

        """
        if self.rows is None:
            return np.zeros(last - first)
        dim, starts = self.rows.shape[1], range(first, last, BLOCK_PAIRS)
        drawn = (directions(n, min(n + BLOCK_PAIRS, last), dim, seed=seed, image=image) for n in starts)
        return np.concatenate([self.control(u) for u in drawn])


def local_predictions(
    encoder: FrozenEncoder,
    images: Float[Tensor, "image channel height width"],
    n_jvp: int,
    *,
    n_sketch: int = 0,
    target: float | None = None,
    seed: int,
    chunk: int,
    first_image: int = 0,
    advance: Callable[[int], None] = lambda n: None,
) -> list[LocalPrediction]:
    """Return the prediction of every image.

    Args:
        encoder: the encoder.
        images: images in its dtype, on its device.
        n_jvp: products on the first pairs; the most of them where there is a target.
        n_sketch: rows of A. 0 for none; twice as many features or pixels are taken whole, which is exact.
        target: relative standard error of the ratios; the prediction may take half of it. None for ``n_jvp`` products.
        seed: seed of the directions.
        chunk: images a forward; a product holds about twice its memory.
        first_image: number of ``images[0]`` in its probe set.
        advance: called with the number of products done.

    Returns:
        One an image. Without a reverse derivative there is no A.

    """
    products = _Products(encoder, images, seed, chunk, first_image, advance)
    everyone = list(range(len(images)))
    rows = products.sketched(n_sketch) if n_sketch else None
    n_first = n_jvp if target is None else min(LEAST_PRODUCTS, n_jvp)
    squares = products.squares(everyone, 0, n_first)
    predictions = []
    for number in everyone:
        own = None if rows is None else rows[number]
        captured = 0.0 if own is None else float(squared_length(own).sum()) / own.shape[1]
        n_jvps = products.n_sketch_jvps + n_first
        prediction = LocalPrediction(captured, squares[number], squares[number], own, n_jvps, products.n_vjps)
        predictions.append(products.with_remainders(prediction, number, squares[number], n_jvps))
    if target is not None:
        for number, prediction in enumerate(predictions):
            predictions[number] = _refined(prediction, products, number, n_jvp, target)
    return predictions


def _refined(
    prediction: LocalPrediction, products: _Products, number: int, n_jvp: int, target: float
) -> LocalPrediction:
    """Return the prediction with as many more products as its share of the target asks for."""
    while True:
        n, allowed = prediction.squares.size, PRODUCTS_SHARE * target * prediction.value
        error = prediction.standard_error
        if n >= n_jvp or not np.isfinite(error) or not allowed > 0 or error <= allowed:
            return prediction
        wanted = n * (error / allowed) ** 2 * (1.0 + 2.0 / n)  # the error itself is known roughly
        n_new = int(min(n_jvp, 8 * n, LEAST_PRODUCTS * np.ceil(wanted / LEAST_PRODUCTS)))
        squares = np.concatenate([prediction.squares, products.squares([number], n, n_new)[0]])
        n_jvps = prediction.n_jvps + n_new - n
        prediction = products.with_remainders(prediction, number, squares, n_jvps)


class _Products:
    """Take products with the directions of each image, several at a time."""

    def __init__(
        self,
        encoder: FrozenEncoder,
        images: Tensor,
        seed: int,
        chunk: int,
        first_image: int,
        advance: Callable[[int], None],
    ) -> None:
        self.encoder, self.images, self.seed, self.first_image, self.advance = (
            encoder,
            images,
            seed,
            first_image,
            advance,
        )
        self.chunk = max(1, chunk // 2)
        self.n_vjps, self.n_sketch_jvps = 0, 0

    def drawn(self, number: int, first: int, last: int, *, sketch: bool = False) -> Tensor:
        """Return directions of one image, in its dtype, on its device."""
        dim = self.images[0].numel()
        u = directions(first, last, dim, seed=self.seed, image=self.first_image + number, sketch=sketch)
        return u.to(self.images)

    def with_remainders(
        self, prediction: LocalPrediction, number: int, squares: FloatArray, n_jvps: int
    ) -> LocalPrediction:
        """Return the prediction of an image from the squared products of its first pairs."""
        control = prediction.controls(0, squares.size, seed=self.seed, image=self.first_image + number)
        return replace(prediction, squares=squares, remainders=squares - control, n_jvps=n_jvps)

    def jvps(self, numbers: list[int], first: int, last: int, *, sketch: bool = False) -> Tensor:
        """Return J u of directions ``first`` to ``last - 1`` of each numbered image, ``(image, product, feature)``."""
        size = self.images.shape[1:]
        at_once = max(1, self.chunk // len(numbers))
        parts = []
        for start in range(first, last, at_once):
            stop = min(start + at_once, last)
            u = torch.stack([self.drawn(number, start, stop, sketch=sketch) for number in numbers])
            blocks = zip(torch.split(torch.tensor(numbers), self.chunk), torch.split(u, self.chunk), strict=True)
            part = [self.encoder.derivatives(self.images[n], v.view(*v.shape[:2], *size)) for n, v in blocks]
            parts.append(torch.cat(part))
            self.advance(len(numbers) * (stop - start))
        return torch.cat(parts, dim=1)

    def squares(self, numbers: list[int], first: int, last: int) -> FloatArray:
        """Return the squared lengths of these products, ``(image, product)``, float64."""
        products = self.jvps(numbers, first, last)
        return np.asarray(squared_length(products.flatten(0, 1)).cpu().numpy().reshape(products.shape[:2]))

    def sketched(self, n_sketch: int) -> list[Tensor] | None:
        """Return A of every image: the image under J of sketched directions, or all of J where that is no dearer."""
        n_images, n_pixels = len(self.images), self.images[0].numel()
        n_features = self.encoder(self.images[:1]).shape[1]
        numbers = list(range(n_images))
        try:
            if n_pixels <= min(2 * n_sketch, n_features):
                return self._whole_by_pixels(n_pixels)
            if n_features <= 2 * n_sketch:
                identity = torch.eye(n_features, dtype=self.images.dtype, device=self.images.device)
                frames = [identity] * n_images
            else:
                image_of_sketch = self.jvps(numbers, 0, n_sketch, sketch=True)
                self.n_sketch_jvps = n_sketch
                frames = [_orthonormal_rows(block) for block in image_of_sketch]
            rows = self._vjps(torch.stack(frames))
        except ReverseDerivativeError:
            return None
        return list(rows)

    def _vjps(self, cotangents: Tensor) -> Tensor:
        blocks = zip(torch.split(self.images, self.chunk), torch.split(cotangents, self.chunk), strict=True)
        parts = []
        for images, frame in blocks:
            parts.append(self.encoder.cotangent_products(images, frame))
            self.advance(frame.shape[0] * frame.shape[1])
        self.n_vjps = cotangents.shape[1]
        return torch.cat(parts)

    def _whole_by_pixels(self, n_pixels: int) -> list[Tensor]:
        basis = torch.eye(n_pixels, dtype=self.images.dtype, device=self.images.device)
        columns = [
            self.encoder.derivative(image.expand(n_pixels, *image.shape), basis.view(n_pixels, *image.shape))
            for image in self.images
        ]
        self.n_sketch_jvps = n_pixels
        self.advance(n_pixels * len(self.images))
        return [column.T.to(self.images.dtype) for column in columns]


def _orthonormal_rows(vectors: Tensor) -> Tensor:
    """Return an orthonormal basis of the span of the rows; of something else where they are not finite."""
    exact = torch.nan_to_num(vectors.double().cpu(), nan=0.0, posinf=0.0, neginf=0.0)
    scale = exact.abs().amax().clamp(min=1e-300)
    basis, _ = torch.linalg.qr((exact / scale).T)
    rows: Tensor = basis.T.to(vectors)
    return rows
