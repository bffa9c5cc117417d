"""The obvious code: one image, one rung after the other, 256 directions a batch, eager, float32.

Paper: section 2 and A.2, read literally. Needs torch alone. This is what the measurement is compared with, so it stays
plain; it is not a tool: it estimates no noise, checks nothing and has no standard errors.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

BATCH = 256


def naive_ratio(encoder: nn.Module, image: Tensor, etas: tuple[float, ...], n_pairs: int, n_jvp: int) -> Tensor:
    """Return r at every rung for one image.

    Args:
        encoder: in evaluation mode.
        image: ``(channel, height, width)``.
        etas: the ladder.
        n_pairs: direction pairs.
        n_jvp: Jacobian-vector products.

    Returns:
        ``(rung,)``.

    """
    half = torch.randn(n_pairs, *image.shape, generator=torch.Generator().manual_seed(0))
    half = half / half.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    directions = torch.cat([half, -half])
    with torch.no_grad():
        base = encoder(image[None])
        products = [
            torch.func.jvp(encoder, (image.expand_as(u).contiguous(),), (u,))[1].square().sum(1)
            for u in torch.split(half[:n_jvp], BATCH)
        ]
        prediction = torch.cat(products).mean()
        ratios = []
        for eta in etas:
            parts = [(encoder(image + eta * u) - base).square().sum(1) for u in torch.split(directions, BATCH)]
            ratios.append(torch.cat(parts).mean() / (eta**2 * prediction))
    return torch.stack(ratios)
