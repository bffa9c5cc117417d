"""Which runs and probe sets make which of the paper's figures, and under which labels.

Paper: figs. 1c, 2a, 2b, 2c; 1a and 3 to 5 for ``profile``. A figure compares like with like: runs of one network, on
the same probe set, at their last measured step. What is missing is said, never made up; nothing is measured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from matplotlib.figure import Figure

from lit_bump.errors import LitBumpError, nearest
from lit_bump.figures import formation_panels, outward_figure, profile_panels
from lit_bump.figures.median_band import Band
from lit_bump.measure import Formation, Profile
from lit_bump.runs.saved_run import SavedRun

CLEAN = "clean"
_NETWORKS = {"resnet18": "ResNet-18", "vgg16": "VGG-16", "wide_resnet28x10": "WRN-28-10"}
_BLURRED_SET = re.compile(r"(?P<base>.*\d)b(?P<sigma>\d+(\.\d+)?)")
_BLURRED_RUN = re.compile(r"blur (?P<sigma>\S+)")
_ADVERSARIAL = re.compile(r"(?P<norm>L2|Linf) (?P<eps>[\d./e-]+)")
_MEMORISING = re.compile(r"(permuted labels|noise)\b.*")
_MOST_COLUMNS = 5  # of the grid of single profiles, as in the paper's appendix


@dataclass(frozen=True)
class MeasuredRun:
    """Hold a run with its profiles.

    Args:
        run: the run.
        formations: its profiles by probe set.

    """

    run: SavedRun
    formations: dict[str, Formation]
    network: str = field(init=False)
    regime: str = field(init=False)

    def __post_init__(self) -> None:
        """Read the labels once: they come from a file."""
        width = self.run.width
        name = _NETWORKS.get(self.run.network, self.run.network)
        object.__setattr__(self, "network", f"{name}, width {width}" if width else name)
        object.__setattr__(self, "regime", self.run.regime)

    def last(self, probe: str) -> Profile:
        """Return the newest profile on a probe set.

        Args:
            probe: its name; the run has it.

        Returns:
            The profile of the last measured step.

        """
        return self.formations[probe].profiles[-1]


@dataclass(frozen=True)
class Drawing:
    """Hold a figure and what a reader of it must know.

    Args:
        stem: name of its files, without suffix.
        figure: the figure.
        notes: what was left out of it, or should not be compared.

    """

    stem: str
    figure: Figure
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Look:
    """Hold how profiles are drawn in panels.

    Args:
        per_image: whether each image's profile is drawn, too.
        band: what is shaded about the median.

    """

    per_image: bool = True
    band: Band = "none"


def formation_drawings(runs: Sequence[MeasuredRun], probe: str | None, _look: Look) -> list[Drawing]:
    """Draw the formation, a panel a run (fig. 1c).

    Args:
        runs: those of at least two measured steps are drawn.
        probe: probe set; the unchanged test images that most runs have where None.

    Returns:
        One drawing.

    Raises:
        LitBumpError: if no run holds two steps on one probe set.

    """
    grown = [run for run in runs if any(len(formation) > 1 for formation in run.formations.values())]
    if not grown:
        raise LitBumpError("no run holds profiles of two steps or more (see python -m lit_bump measure --steps all)")
    chosen, probe, notes = _with_probe(grown, probe)
    panels = {label: run.formations[probe] for label, run in _labelled(chosen, _kinds(chosen)).items()}
    profiles = [profile for formation in panels.values() for profile in formation.profiles]
    figure = formation_panels(panels)
    return [Drawing("figure_1c", figure, (f"on {probe}", *notes, *_incomparable(profiles, same_images=True)))]


def outward_drawings(runs: Sequence[MeasuredRun], probe: str | None, _look: Look) -> list[Drawing]:
    """Draw how adversarial training moves the peak, a figure a network (fig. 2a).

    Args:
        runs: clean ones and adversarially trained ones are drawn.
        probe: probe set; the unchanged test images that most runs have where None.

    Returns:
        A drawing for each network with an adversarially trained run and another one.

    Raises:
        LitBumpError: if there is none.

    """
    drawings = {}
    for network, group in _by_network(runs).items():
        budgets = [run for run in group if run.regime == CLEAN or _ADVERSARIAL.fullmatch(run.regime)]
        if len(budgets) < 2 or all(run.regime == CLEAN for run in budgets):
            continue
        chosen, on, notes = _with_probe(sorted(budgets, key=_budget), probe)
        labelled = _labelled(chosen, [run.regime for run in chosen], "{} ({})")
        curves = {label: run.last(on) for label, run in labelled.items()}
        if len(curves) > 1:
            notes = (f"on {on}", *notes, *_incomparable(curves.values(), same_images=True))
            drawings[network] = (outward_figure(curves), notes)
    return _named("figure_2a", drawings, "no network has an adversarially trained run and a second one, such as clean")


def blur_drawings(runs: Sequence[MeasuredRun], probe: str | None, look: Look) -> list[Drawing]:
    """Draw training blur against evaluation blur, a figure a network (fig. 2b).

    Args:
        runs: clean ones and those trained on blurred images are drawn.
        probe: the probe set without blur, ``X`` of ``X``, ``Xb1``, ``Xb2``; the one that most runs have where None.
        look: how to draw.

    Returns:
        A drawing for each network with a blurred probe set.

    Raises:
        LitBumpError: if there is none.

    """
    drawings = {}
    for network, group in _by_network(runs).items():
        trained = [run for run in group if run.regime == CLEAN or _BLURRED_RUN.fullmatch(run.regime)]
        bases = Counter(m["base"] for run in trained for name in run.formations if (m := _BLURRED_SET.fullmatch(name)))
        base = max(sorted(bases), key=bases.__getitem__, default=None) if probe is None else probe
        if base is None or base not in bases:
            continue
        chosen = sorted((run for run in trained if _evaluations(run, base)), key=lambda run: _sigma(run.regime))
        panels = {
            label: {text: run.last(name) for text, name in _evaluations(run, base).items()}
            for label, run in _labelled(chosen, [f"trained on {_images(run.regime)}" for run in chosen]).items()
        }
        drawings[network] = _panels(panels, look, f"on {base}")
    wanted = f"{probe}b1" if probe else "blurred ones, such as cifar32b1"
    return _named("figure_2b", drawings, f"no run trained on clean or blurred images was measured on {wanted}")


def memorising_drawings(runs: Sequence[MeasuredRun], probe: str | None, look: Look) -> list[Drawing]:
    """Draw runs that could only memorise, on all their probe sets, a figure a network (fig. 2c).

    Args:
        runs: those trained on permuted labels or on noise are drawn.
        probe: the only probe set to draw; all where None.
        look: how to draw.

    Returns:
        A drawing for each network with such a run.

    Raises:
        LitBumpError: if there is none.

    """
    drawings = {}
    for network, group in _by_network(runs).items():
        chosen = [run for run in group if _MEMORISING.fullmatch(run.regime) and _probes([run], probe)]
        chosen.sort(key=lambda run: run.regime, reverse=True)  # permuted labels first, as in the paper
        if chosen:
            panels = {
                label: {name: run.last(name) for name in _probes([run], probe)}
                for label, run in _labelled(chosen, [run.regime for run in chosen]).items()
            }
            drawings[network] = _panels(panels, look)
    measured_on = f" and measured on {probe}" if probe else ""
    return _named("figure_2c", drawings, f"no run was trained on permuted labels or on noise{measured_on}")


def profile_drawings(runs: Sequence[MeasuredRun], probe: str | None, look: Look) -> list[Drawing]:
    """Draw each run's last profile on each probe set, a row a run and a column a probe set (figs. 1a, 3 to 5).

    Args:
        runs: all are drawn.
        probe: the only probe set to draw; all where None.
        look: how to draw.

    Returns:
        One drawing.

    Raises:
        LitBumpError: if no run has the probe set.

    """
    names = _probes(runs, probe)
    chosen = [run for run in runs if any(name in run.formations for name in names)]
    if not chosen:
        raise LitBumpError(f"no run was measured on {probe!r}{nearest(str(probe), _probes(runs, None))}")
    panels = {
        (f"{label}\n{name}" if len(chosen) > 1 else name): {"median": run.last(name)} if name in run.formations else {}
        for label, run in _labelled(chosen, _kinds(chosen)).items()
        for name in names
    }
    columns = None if 1 in {len(chosen), len(names)} else min(len(names), _MOST_COLUMNS)
    figure, notes = _panels(panels, look, columns=columns)
    return [Drawing("profiles", figure, notes)]


DRAWINGS: dict[str, Callable[[Sequence[MeasuredRun], str | None, Look], list[Drawing]]] = {
    "1c": formation_drawings,
    "2a": outward_drawings,
    "2b": blur_drawings,
    "2c": memorising_drawings,
    "profile": profile_drawings,
}


def _panels(
    panels: dict[str, dict[str, Profile]], look: Look, *notes: str, columns: int | None = None
) -> tuple[Figure, tuple[str, ...]]:
    profiles = [profile for curves in panels.values() for profile in curves.values()]
    figure = profile_panels(panels, per_image=look.per_image, band=look.band, columns=columns)
    return figure, (*notes, *_incomparable(profiles, same_images=False))


def _named(stem: str, drawings: dict[str, tuple[Figure, tuple[str, ...]]], reason: str) -> list[Drawing]:
    """Name drawings by their network where there are several.

    Returns:
        The drawings.

    Raises:
        LitBumpError: with the reason, if there is none.

    """
    if not drawings:
        raise LitBumpError(reason)
    several = len(drawings) > 1
    return [
        Drawing(f"{stem}_{re.sub(r'[^a-z0-9]+', '_', network.lower())}" if several else stem, figure, notes)
        for network, (figure, notes) in drawings.items()
    ]


def _with_probe(runs: Sequence[MeasuredRun], probe: str | None) -> tuple[list[MeasuredRun], str, tuple[str, ...]]:
    """Choose a probe set, and the runs that have it; a note names those that have not.

    Returns:
        The runs, the name of the probe set, and notes.

    Raises:
        LitBumpError: if none has the one asked for.

    """
    counts = Counter(name for run in runs for name in run.formations)
    if probe is None:
        probe = max(sorted(counts), key=lambda name: (_is_plain(name), counts[name]))
    if probe not in counts:
        raise LitBumpError(f"no run was measured on {probe!r}{nearest(probe, counts)}")
    lacking = [run.run.name for run in runs if probe not in run.formations]
    notes = (f"without {', '.join(lacking)}: not measured on {probe}",) if lacking else ()
    return [run for run in runs if probe in run.formations], probe, notes


def _is_plain(probe: str) -> bool:
    return not (_BLURRED_SET.fullmatch(probe) or probe.startswith("noise") or probe.endswith("train"))


def _probes(runs: Iterable[MeasuredRun], probe: str | None) -> list[str]:
    """Return the probe sets of runs, plain ones first; only the one asked for, if any."""
    names = {name for run in runs for name in run.formations if probe in {None, name}}
    return sorted(names, key=lambda name: (not _is_plain(name), name))


def _evaluations(run: MeasuredRun, base: str) -> dict[str, str]:
    """Return the probe sets of a run that are a base or its blurred images, by what to call them."""
    blurred = {name: match["sigma"] for name in run.formations if (match := _BLURRED_SET.fullmatch(name))}
    found = {float(sigma): name for name, sigma in blurred.items() if name == f"{base}b{sigma}"}
    found |= {0.0: base} if base in run.formations else {}
    return {f"evaluated on {f'blur {sigma:g}' if sigma else 'clean images'}": found[sigma] for sigma in sorted(found)}


def _by_network(runs: Iterable[MeasuredRun]) -> dict[str, list[MeasuredRun]]:
    groups: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        groups.setdefault(run.network, []).append(run)
    return groups


def _labelled(runs: Sequence[MeasuredRun], labels: Sequence[str], form: str = "{}\n{}") -> dict[str, MeasuredRun]:
    """Return runs by label; those that share one get their names, too, in a line of its own unless told otherwise."""
    counts = Counter(labels)
    pairs = zip(labels, runs, strict=True)
    return {label if counts[label] == 1 else form.format(label, run.run.name): run for label, run in pairs}


def _kinds(runs: Sequence[MeasuredRun]) -> list[str]:
    """Return for every run what tells it from the others: network, regime or both."""
    if len({run.regime for run in runs}) == 1:
        return [run.network for run in runs]
    if len({run.network for run in runs}) == 1:
        return [run.regime for run in runs]
    return [f"{run.network}, {run.regime}" for run in runs]


def _budget(run: MeasuredRun) -> tuple[Any, ...]:
    match = _ADVERSARIAL.fullmatch(run.regime)
    return (match["norm"], Fraction(match["eps"])) if match else ("", 0)


def _sigma(regime: str) -> float:
    match = _BLURRED_RUN.fullmatch(regime)
    return float(match["sigma"]) if match else 0.0


def _images(regime: str) -> str:
    return "clean images" if regime == CLEAN else regime


def _incomparable(profiles: Iterable[Profile], *, same_images: bool) -> list[str]:
    """Return notes on what a reader would take for equal, and is not."""
    profiles, notes = list(profiles), []
    if len({(p.protocol.n_pairs, p.protocol.n_jvp, p.protocol.estimator) for p in profiles}) > 1:
        notes.append("its profiles were measured under different protocols")
    if same_images and len({p.images_digest for p in profiles}) > 1:
        notes.append("its profiles are not of the same images, though of one name")
    return notes
