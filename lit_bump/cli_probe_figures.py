"""Which results of ``probe`` make which of the paper's figures.

Paper: figs. 1a, 1b, 3, 4, 5. What is missing is said, never made up; nothing is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lit_bump.cli_figure_choice import Drawing, Look, MeasuredRun
from lit_bump.errors import LitBumpError, nearest
from lit_bump.figures import profile_panels, save_figure
from lit_bump.figures.comparison_figure import Curve, comparison_figure
from lit_bump.measure import Profile
from lit_bump.probing import ProbeResult, load_results

_RANDOM = " (random)"
_LONG = 24  # signs of a label that fit above a panel of a fifth of the page
_MAIN_SETS = ("val64", "demo", "cifar32", "shapes32")  # the paper reports val64 unless stated otherwise


def single_drawings(results: Sequence[ProbeResult], images: str | None, look: Look) -> list[Drawing]:
    """Draw every trained encoder on one image set, each image a thin line (fig. 1a).

    Args:
        results: of trained and random encoders.
        images: the image set; the paper's, or the first, where None.
        look: how to draw.

    Returns:
        One drawing.

    Raises:
        LitBumpError: if there is no trained encoder on that set.

    """
    chosen, on = _on_one_set([result for result in results if not _is_random(result)], images, "trained encoder")
    panels = {result.encoder: {"median": result.profile} for result in chosen}
    figure = profile_panels(panels, per_image=look.per_image, band=look.band)
    return [Drawing("figure_1a", figure, (f"on {on}", *_notes(chosen)))]


def random_drawings(results: Sequence[ProbeResult], images: str | None, look: Look) -> list[Drawing]:
    """Draw trained encoders solid and random ones dashed, medians alone (fig. 1b).

    Args:
        results: of trained and random encoders.
        images: the image set; the paper's, or the first, where None.
        look: how to draw.

    Returns:
        One drawing.

    Raises:
        LitBumpError: if there is no trained or no random encoder.

    """
    chosen, on = _on_one_set(results, images, "encoder")
    for kind, wanted in (("random", True), ("trained", False)):
        if not any(_is_random(result) == wanted for result in chosen):
            raise LitBumpError(f"no {kind} encoder was measured on {on}")
    return [Drawing("figure_1b", comparison_figure(_curves(chosen), band=look.band), (f"on {on}", *_notes(chosen)))]


def trained_drawings(results: Sequence[ProbeResult], images: str | None, look: Look) -> list[Drawing]:
    """Draw the grid of trained encoders, a row each, and image sets (fig. 3).

    Args:
        results: of all encoders.
        images: the only image set; all where None.
        look: how to draw.

    Returns:
        One drawing.

    """
    kept = [result for result in results if not _is_random(result) and result.facts.get("kind") != "robust"]
    return _grid("figure_3", kept, images, look, "trained encoder")


def control_drawings(results: Sequence[ProbeResult], images: str | None, look: Look) -> list[Drawing]:
    """Draw the grid of random encoders and image sets (fig. 4).

    Args:
        results: of all encoders.
        images: the only image set; all where None.
        look: how to draw.

    Returns:
        One drawing.

    """
    return _grid("figure_4", [result for result in results if _is_random(result)], images, look, "random encoder")


def robust_drawings(results: Sequence[ProbeResult], images: str | None, look: Look) -> list[Drawing]:
    """Draw the grid of adversarially trained encoders, by budget, and image sets (fig. 5).

    Args:
        results: of all encoders.
        images: the only image set; all where None.
        look: how to draw.

    Returns:
        One drawing.

    """
    family = [result for result in results if result.facts.get("kind") == "robust"]
    family.sort(key=lambda result: (str(result.facts.get("norm")), float(result.facts.get("eps", 0))))
    return _grid("figure_5", family, images, look, "adversarially trained encoder (robust:...)")


def compare_drawings(results: Sequence[ProbeResult], images: str | None, look: Look) -> list[Drawing]:
    """Draw all medians in one panel, images of all sizes by their amplitude a pixel.

    Args:
        results: of probe folders and of runs.
        images: the only image set; all where None.
        look: how to draw.

    Returns:
        One drawing.

    Raises:
        LitBumpError: if nothing was measured on that set, or a profile does not tell the size of its images.

    """
    chosen = _on(results, images)
    return [Drawing("compare", comparison_figure(_curves(chosen), band=look.band), tuple(_notes(chosen)))]


PROBE_DRAWINGS: dict[str, Callable[[Sequence[ProbeResult], str | None, Look], list[Drawing]]] = {
    "1a": single_drawings,
    "1b": random_drawings,
    "3": trained_drawings,
    "4": control_drawings,
    "5": robust_drawings,
    "compare": compare_drawings,
}


def overview(out: Path) -> list[Path]:
    """Draw what the results of a folder allow: a comparison for each image set, and the grids.

    Args:
        out: folder of ``probe``.

    Returns:
        The files, in ``<out>/figures``.

    """
    results, written = load_results(out), []
    for images in dict.fromkeys(result.images for result in results):
        figure = comparison_figure(_curves(_on(results, images)), band="confidence")
        written += save_figure(figure, out / "figures" / f"compare_{images}")
    for name in ("3", "4", "5"):
        try:
            drawings = PROBE_DRAWINGS[name](results, None, Look())
        except LitBumpError:
            continue  # there are no such encoders
        for drawing in drawings:
            written += save_figure(drawing.figure, out / "figures" / drawing.stem)
            sys.stderr.writelines(f"{drawing.stem}: {note}\n" for note in drawing.notes)
    return written


def results_of_runs(runs: Sequence[MeasuredRun]) -> list[ProbeResult]:
    """Return the last profiles of runs as results, so that runs can be compared with frozen encoders.

    Args:
        runs: with their profiles.

    Returns:
        A result a run and probe set.

    """
    return [
        ProbeResult(run.run.name, probe, run.last(probe), {"kind": "run", "spec": str(run.run.log_dir)})
        for run in runs
        for probe in run.formations
    ]


def _grid(stem: str, results: Sequence[ProbeResult], images: str | None, look: Look, what: str) -> list[Drawing]:
    if not results:
        raise LitBumpError(f"no {what} was measured")
    chosen = _on(results, images)
    encoders = list(dict.fromkeys(result.encoder for result in chosen))
    sets = list(dict.fromkeys(result.images for result in chosen))
    held = {(result.encoder, result.images): result.profile for result in chosen}
    panels: dict[str, dict[str, Profile]] = {}
    for encoder in encoders:
        for name in sets:
            profile = held.get((encoder, name))
            panels[f"{_title(encoder)}\n{name}"] = {} if profile is None else {"median": profile}
    columns = None if 1 in (len(encoders), len(sets)) else len(sets)  # a row an encoder, as in the paper
    figure = profile_panels(panels, per_image=look.per_image, band=look.band, columns=columns)
    return [Drawing(stem, figure, tuple(_notes(chosen)))]


def _title(encoder: str) -> str:
    """Return a label that fits above a small panel: a long one is broken before its tag, or in the middle."""
    if len(encoder) <= _LONG:
        return encoder
    places = [i for i, sign in enumerate(encoder) if sign in "._- (" and 0 < i < len(encoder) - 1]
    middle = min(places, key=lambda i: abs(i - len(encoder) / 2), default=len(encoder) // 2)
    return f"{encoder[:middle]}\n{encoder[middle:].strip()}"


def _curves(results: Sequence[ProbeResult]) -> dict[str, Curve]:
    several_sets = len({result.images for result in results}) > 1
    curves: dict[str, Curve] = {}
    for result in results:
        size = result.facts.get("input_size") or result.profile.context.get("input_size")
        if size is None:
            raise LitBumpError(
                f"the profile of {result.encoder} does not tell the size of its images: measure it again"
            )
        label = f"{result.encoder}, {result.images}" if several_sets else result.encoder
        group = label.replace(_RANDOM, "")
        curves[_free(label, curves)] = Curve(result.profile, size, group, _is_random(result))
    return curves


def _free(label: str, taken: dict[str, Curve]) -> str:
    """Return a label that no other curve has."""
    numbers = (label if n == 1 else f"{label} ({n})" for n in range(1, len(taken) + 2))
    return next(one for one in numbers if one not in taken)


def _on(results: Sequence[ProbeResult], images: str | None) -> list[ProbeResult]:
    """Return the results on an image set, or all.

    Raises:
        LitBumpError: if there is none.

    """
    names = list(dict.fromkeys(result.images for result in results))
    if images is not None and images not in names:
        raise LitBumpError(f"nothing was measured on {images!r}{nearest(images, names)}")
    return [result for result in results if images in (None, result.images)]


def _on_one_set(results: Sequence[ProbeResult], images: str | None, what: str) -> tuple[list[ProbeResult], str]:
    if not results:
        raise LitBumpError(f"no {what} was measured")
    names = [result.images for result in results]
    on = images or next((name for name in _MAIN_SETS if name in names), names[0])
    return _on(results, on), on


def _is_random(result: ProbeResult) -> bool:
    return result.facts.get("kind") == "random"


def _notes(results: Sequence[ProbeResult]) -> list[str]:
    """Return notes on what a reader would take for equal, and is not."""
    protocols = {
        (p.estimator, p.target_se, p.n_pairs, p.n_jvp) for p in (result.profile.protocol for result in results)
    }
    notes = ["its profiles were measured under different protocols"] if len(protocols) > 1 else []
    thinned = [result.encoder for result in results if (result.profile.n_kept() < result.profile.n_images).any()]
    if thinned:
        notes.append(f"not all images are kept on every rung by {', '.join(dict.fromkeys(thinned))}: see the grids")
    return notes
