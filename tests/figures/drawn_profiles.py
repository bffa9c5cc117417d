"""Profiles with a bump of any height, made up rather than measured, for tests of figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lit_bump.measure import Formation, Profile, Protocol
from tests.profile_cost import made_up_cost


def drawn_profile(
    height: float = 0.0, *, n_images: int = 6, n_lost: int = 0, step: int = 0, n_rungs: int = 17
) -> Profile:
    """Return a profile whose first ``n_lost`` rungs keep no image, and the next lacks one image."""
    protocol = Protocol.quick()
    spacing = protocol.etas[1] / protocol.etas[0]
    farther = tuple(protocol.etas[-1] * spacing**k for k in range(1, n_rungs - 16))
    protocol = replace(protocol, etas=(*protocol.etas, *farther))
    etas = np.array(protocol.etas)
    spread = np.exp(0.1 * np.random.default_rng(0).standard_normal((n_images, 1)))
    ratio = 1.0 + height * spread * np.exp(-((np.log10(etas / 4.0) / 0.5) ** 2))
    if n_lost:
        ratio[:, :n_lost] = np.nan
        ratio[0, n_lost] = np.nan
    ones = np.ones_like(ratio)
    return Profile(
        etas=etas,
        ratio=ratio,
        response=ones,
        prediction=ones[:, 0],
        standard_error=0.01 * ones,
        noise=0.0 * ones,
        n_directions=np.full(ratio.shape, 32),
        **made_up_cost(ratio.shape),
        reason=np.isnan(ratio).astype(np.int8),
        protocol=protocol,
        encoder_digest="drawn",
        image_digests=tuple(map(str, range(n_images))),
        noise_method="none",
        context={"step": step, "probe": "drawn6"},
    )


def drawn_formation(*heights: float, n_lost: int = 0) -> Formation:
    """Return a formation whose peaks have the given heights, at steps 0, 1, 2, 4, 8 and so on."""
    steps = tuple(2**k // 2 for k in range(len(heights)))
    pairs = zip(heights, steps, strict=True)
    return Formation(steps, tuple(drawn_profile(height, step=step, n_lost=n_lost) for height, step in pairs))
