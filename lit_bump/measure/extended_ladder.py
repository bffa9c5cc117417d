"""Further rungs for a ladder that ended before the peak, measured afterwards and joined to the profile.

Paper: A.2 "Protocol" (directions shared across the rungs). Needs NumPy alone.
A direction depends on seed, image and block, never on the ladder, so rungs measured apart are those that one
measurement of the long ladder would give. The new rungs depend on the first ladder alone, not on how many are asked for
at a time: an extension that was cut short goes on where it stood.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lit_bump.errors import LitBumpError
from lit_bump.measure.profile import Profile
from lit_bump.measure.protocol import Protocol

_PER_RUNG = ("ratio", "response", "standard_error", "noise", "n_directions", "n_coarse", "reason")


def further_etas(etas: tuple[float, ...], n_rungs: int) -> tuple[float, ...]:
    """Return the rungs that follow a ladder, at the spacing of its last two.

    Args:
        etas: a ladder of at least two rungs.
        n_rungs: how many.

    Returns:
        Increasing perturbation sizes, the first of them above the ladder's last.

    Raises:
        LitBumpError: if the ladder has a single rung, and so no spacing.

    Example:
        >>> [round(eta) for eta in further_etas((1.0, 10.0), 2)]
        [100, 1000]

    """
    if len(etas) < 2:
        raise LitBumpError(f"a ladder of one rung, {etas[0]:g}, has no spacing: give etas of at least two")
    last, spacing = np.log10(etas[-1]), np.log10(etas[-1]) - np.log10(etas[-2])
    return tuple(float(10.0 ** (last + spacing * k)) for k in range(1, n_rungs + 1))


def n_further_rungs(protocol: Protocol, longer: Protocol) -> int | None:
    """Return by how many further rungs a protocol is longer than another.

    Args:
        protocol: the shorter one.
        longer: the other.

    Returns:
        0 for equal ones; None where they differ in anything but rungs of ``further_etas``.

    Example:
        >>> short, long = Protocol((1.0, 10.0)), Protocol((1.0, 10.0, 100.0))
        >>> n_further_rungs(short, long), n_further_rungs(long, short)
        (1, None)

    """
    n_rungs = len(longer.etas) - len(protocol.etas)
    if n_rungs < 0 or (n_rungs and len(protocol.etas) < 2):
        return None
    etas = protocol.etas + (further_etas(protocol.etas, n_rungs) if n_rungs else ())
    return n_rungs if longer == replace(protocol, etas=etas) else None


def joined_rungs(profile: Profile, further: Profile) -> Profile:
    """Return one profile of two that were measured on rungs that follow each other.

    Args:
        profile: the first rungs.
        further: the same encoder, images and protocol on higher rungs.

    Returns:
        The profile of the long ladder; the prediction and the context are the first one's, the cost is the sum.

    Raises:
        LitBumpError: if they differ in anything but the rungs, or the rungs do not follow each other.

    """
    same = further.protocol == replace(profile.protocol, etas=further.protocol.etas)
    if not same or further.encoder_digest != profile.encoder_digest or further.image_digests != profile.image_digests:
        raise LitBumpError("profiles of different protocols, encoders or images cannot be joined")
    if not further.etas[0] > profile.etas[-1]:
        raise LitBumpError(f"rungs from {further.etas[0]:g} on do not follow a ladder up to {profile.etas[-1]:g}")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(p, name) for p in (profile, further)], axis=1) for name in _PER_RUNG
    }
    return replace(
        profile,
        **joined,
        etas=np.concatenate([profile.etas, further.etas]),
        protocol=replace(profile.protocol, etas=profile.protocol.etas + further.protocol.etas),
        seconds=profile.seconds + further.seconds,
        coarse_dtype=max(profile.coarse_dtype, further.coarse_dtype),
        n_forwards=profile.n_forwards + further.n_forwards,
        n_jvps=profile.n_jvps + further.n_jvps,
        n_vjps=profile.n_vjps + further.n_vjps,
        image_seconds=profile.image_seconds + further.image_seconds,
    )
