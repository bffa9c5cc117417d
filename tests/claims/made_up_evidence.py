"""Evidence with peaks of any height and place, made up rather than measured: what the paper saw, and its contrary."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lit_bump.claims.evidence import Evidence
from lit_bump.claims.verdicts import Sets
from lit_bump.measure import Formation, Profile, Protocol
from tests.profile_cost import made_up_cost

SETS = Sets.of("shapes", 6)
NETWORKS = ("resnet18", "vgg16", "wrn")
STEPS = (0, 10, 100, 1000)


def made_up_profile(height: float = 1.0, *, eta: float = 2.0, prediction: float = 1.0, step: int = 0) -> Profile:
    """Return a profile of six images whose median peaks at a height and a place; none for a height of 1."""
    protocol = Protocol.quick()
    etas = np.array(protocol.etas)
    rng = np.random.default_rng(round(1000 * eta + 10 * height))  # images differ in height and place
    spread, places = np.exp(0.05 * rng.standard_normal((6, 1))), np.log10(eta) + 0.05 * rng.standard_normal((6, 1))
    ratio = 1.0 + (height - 1.0) * spread * np.exp(-(((np.log10(etas) - places) / 0.4) ** 2))
    ones = np.ones_like(ratio)
    return Profile(
        etas=etas,
        ratio=ratio,
        response=ones,
        prediction=prediction * ones[:, 0],
        standard_error=0.01 * ones,
        noise=0.0 * ones,
        n_directions=np.full(ratio.shape, 32),
        **made_up_cost(ratio.shape),
        reason=np.zeros(ratio.shape, dtype=np.int8),
        protocol=protocol,
        encoder_digest="made up",
        image_digests=tuple(map(str, range(6))),
        noise_method="none",
        context={"step": step, "probe": SETS.test},
    )


def made_up_formation(*heights: float) -> Formation:
    """Return a formation over steps 0, 10, 100 and 1000."""
    pairs = zip(STEPS, heights, strict=True)
    return Formation(STEPS, tuple(made_up_profile(height, step=step) for step, height in pairs))


def ended(profile: Profile) -> Formation:
    """Return the formation of a condition that was measured at its end alone."""
    return Formation((1000,), (profile,))


def as_in_the_paper() -> Evidence:
    """Return evidence of which every claim holds."""
    growth = (1.0, 1.0, 5.0, 8.0)
    clean = {network: made_up_formation(*growth) for network in NETWORKS}
    formations: dict[str, Mapping[str, Formation]] = {
        f"{network}_clean": {SETS.test: formation, SETS.train: ended(made_up_profile(7.0))}
        for network, formation in clean.items()
    }
    heights = {"clean": (8.0, 12.0, 16.0), "blur1": (6.0, 8.0, 10.0), "blur2": (3.0, 4.0, 5.0)}
    for regime, row in heights.items():
        blurred = {probe: ended(made_up_profile(height)) for probe, height in zip(SETS.blurs, row, strict=True)}
        if regime == "clean":
            del blurred[SETS.test]
        formations[f"resnet18_{regime}"] = {**formations.get(f"resnet18_{regime}", {}), **blurred}
    formations["resnet18_adv"] = {SETS.test: ended(made_up_profile(12.0, eta=8.0, prediction=0.01))}
    everywhere = (*SETS.blurs, SETS.train, SETS.noise, SETS.noise_train)
    for regime in ("randlabel", "noise"):
        formations[f"resnet18_{regime}"] = {probe: ended(made_up_profile(1.0)) for probe in everywhere}
    metrics = {
        "resnet18_randlabel": {"train/accuracy": 0.99, "val/accuracy": 0.11},
        "resnet18_noise": {"train/accuracy": 1.0, "val/accuracy": 0.1},
    }
    return Evidence(formations, metrics)


def changed(evidence: Evidence, condition: str, probe: str, formation: Formation | None) -> Evidence:
    """Return evidence with another formation at one place, or none there."""
    formations = {name: dict(of_run) for name, of_run in evidence.formations.items()}
    if formation is None:
        del formations[condition][probe]
    else:
        formations[condition][probe] = formation
    return Evidence(formations, evidence.metrics, evidence.facts)
