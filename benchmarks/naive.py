"""The obvious code: one image, one rung after the other, 256 directions a batch, eager, float32.

Paper: section 2 and A.2, read literally. Needs torch alone. This is what the measurement is compared with, so it stays
plain; it is not a tool: it estimates no noise and checks nothing. It keeps D and S, from which its standard error
follows by the delta method, for the numbers of pairs and products that it took or for more of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

BATCH = 256


@dataclass(frozen=True)
class NaiveProfile:
    """Hold what the obvious code finds for one image.

    Args:
        ratio: r, ``(rung,)``.
        displacement: D of every pair, mean over its two signs, ``(rung, pair)``.
        sensitivity: squared length of every Jacobian-vector product.
        product_seconds: wall time of the products.
        response_seconds: wall time of the perturbed images.

    """

    ratio: Tensor
    displacement: Tensor
    sensitivity: Tensor
    product_seconds: float
    response_seconds: float

    def seconds(self, n_pairs: int, n_jvp: int) -> float:
        """Return the wall time; for more pairs and products than were taken, in proportion."""
        products = self.product_seconds * n_jvp / self.sensitivity.numel()
        return products + self.response_seconds * n_pairs / self.displacement.shape[1]

    def relative_error(self, n_pairs: int, n_jvp: int) -> Tensor:
        """Return the standard error over r of every rung, for so many pairs and products (Cov over the common ones)."""
        d = (self.displacement / self.displacement.mean(1, keepdim=True)).double()
        s = (self.sensitivity / self.sensitivity.mean()).double()
        head = d[:, : s.numel()]
        covariance = ((head - head.mean(1, keepdim=True)) * (s - 1)).sum(1) / (s.numel() - 1)
        return (d.var(dim=1) / n_pairs + s.var() / n_jvp - 2 * covariance / n_pairs).clamp(min=0).sqrt()


def naive_profile(
    encoder: nn.Module, image: Tensor, etas: tuple[float, ...], half: Tensor, n_jvp: int, batch: int = BATCH
) -> NaiveProfile:
    """Measure one image.

    Args:
        encoder: in evaluation mode, on the image's device.
        image: ``(channel, height, width)``.
        etas: the ladder.
        half: unit directions, one a pair: ``(pair, channel, height, width)``.
        n_jvp: Jacobian-vector products, on the first directions.
        batch: directions a batch.

    Returns:
        The profile.

    """
    start = time.perf_counter()
    directions = torch.cat([half, -half])
    with torch.no_grad():
        base = encoder(image[None])
        with sdpa_kernel(SDPBackend.MATH):  # the other attention kernels have no forward derivative
            products = [
                torch.func.jvp(encoder, (image.expand_as(u).contiguous(),), (u,))[1].square().sum(1)
                for u in torch.split(half[:n_jvp], batch)
            ]
        sensitivity = torch.cat(products).cpu()  # waits for a GPU
        middle = time.perf_counter()
        rungs = []
        for eta in etas:
            parts = [(encoder(image + eta * u) - base).square().sum(1) for u in torch.split(directions, batch)]
            rungs.append(torch.cat(parts).cpu())
    displacement = torch.stack(rungs).view(len(etas), 2, -1).mean(1)
    ratio = displacement.mean(1) / (torch.tensor(etas) ** 2 * sensitivity.mean())
    return NaiveProfile(ratio, displacement, sensitivity, middle - start, time.perf_counter() - middle)
