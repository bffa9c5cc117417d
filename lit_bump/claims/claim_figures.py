"""One figure a claim, drawn from the saved profiles.

Paper: figs. 1c, 2a, 2b, 2c. Imports ``figures``; measures nothing. A claim whose profiles are missing has no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from lit_bump.claims.evidence import Evidence
from lit_bump.claims.verdicts import Sets
from lit_bump.figures import formation_panels, outward_figure, profile_panels, save_figure
from lit_bump.measure import Profile

TITLES = {"resnet18": "ResNet-18", "vgg16": "VGG-16", "wrn": "WRN"}


def claim_figures(
    evidence: Evidence, sets: Sets, networks: Sequence[str] = ("resnet18", "vgg16", "wrn")
) -> dict[str, Figure]:
    """Draw the figure of every claim that has been measured.

    Args:
        evidence: profiles by condition.
        sets: names of the probe sets.
        networks: architectures, as the conditions' names begin.

    Returns:
        Figures by claim.

    """
    drawn: dict[str, Callable[[], Figure | None]] = {
        "C1": lambda: _networks(evidence, networks, {"step 0": (sets.test, "first")}),
        "C2": lambda: _networks(evidence, networks, {name: (name, "last") for name in (sets.test, sets.train)}),
        "C3": lambda: _formations(evidence, sets, networks),
        "C4": lambda: _outward(evidence, sets),
        "C5": lambda: _blur(evidence, sets),
        "C6": lambda: _controls(evidence, sets, "randlabel", "permuted labels"),
        "C7": lambda: _controls(evidence, sets, "noise", "noise images"),
    }
    figures = {claim: draw() for claim, draw in drawn.items()}
    return {claim: figure for claim, figure in figures.items() if figure is not None}


def save_claim_figures(figures: Mapping[str, Figure], folder: Path, formats: Sequence[str]) -> dict[str, list[Path]]:
    """Write the figures.

    Args:
        figures: by claim.
        folder: where to.
        formats: such as ``png`` and ``svg``.

    Returns:
        The files of each claim.

    """
    return {claim: save_figure(figure, folder / claim, formats) for claim, figure in figures.items()}


def _networks(evidence: Evidence, networks: Sequence[str], curves: Mapping[str, tuple[str, str]]) -> Figure | None:
    panels: dict[str, dict[str, Profile]] = {}
    for network in networks:
        found = {
            label: profile
            for label, (probe, end) in curves.items()
            if (profile := getattr(evidence, end)(f"{network}_clean", probe)) is not None
        }
        if found:
            panels[TITLES.get(network, network)] = found
    return profile_panels(panels) if panels else None


def _formations(evidence: Evidence, sets: Sets, networks: Sequence[str]) -> Figure | None:
    panels = {
        TITLES.get(network, network): formation
        for network in networks
        if (formation := evidence.formations.get(f"{network}_clean", {}).get(sets.test)) is not None
    }
    return formation_panels(panels) if panels else None


def _outward(evidence: Evidence, sets: Sets) -> Figure | None:
    clean = evidence.last("resnet18_clean", sets.test)
    robust = {
        name.partition("_")[2].replace("_", " "): profile
        for name in evidence.formations
        if name.startswith("resnet18_adv") and (profile := evidence.last(name, sets.test)) is not None
    }
    return outward_figure({"clean": clean, **robust}) if clean is not None and robust else None


def _blur(evidence: Evidence, sets: Sets) -> Figure | None:
    panels: dict[str, dict[str, Profile]] = {}
    for regime, title in (
        ("clean", "trained on clean"),
        ("blur1", "trained on blur 1"),
        ("blur2", "trained on blur 2"),
    ):
        labels = zip(("clean", "blur 1", "blur 2"), sets.blurs, strict=True)
        found = {label: evidence.last(f"resnet18_{regime}", probe) for label, probe in labels}
        kept = {label: profile for label, profile in found.items() if profile is not None}
        if kept:
            panels[title] = kept
    return profile_panels(panels) if len(panels) > 1 else None


def _controls(evidence: Evidence, sets: Sets, regime: str, title: str) -> Figure | None:
    panels: dict[str, dict[str, Profile]] = {}
    probes = (*sets.blurs, sets.train, sets.noise, sets.noise_train)
    for name in (name for name in evidence.formations if name.endswith(f"_{regime}")):
        found = {probe: profile for probe in probes if (profile := evidence.last(name, probe)) is not None}
        if found:
            network = name.partition("_")[0]
            panels[f"{TITLES.get(network, network)}, {title}"] = found
    return profile_panels(panels) if panels else None
