"""The formation in one panel: the median profile of every measured step, older ones coloured by step.

Paper: fig. 1c. Needs Matplotlib. The picture is cumulative, because TensorBoard keeps but ten images a tag and only the
newest for certain: each picture holds the whole history up to its step.
"""

from __future__ import annotations

import itertools

from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from lit_bump.figures.curve_style import FONT_SIZE, NEWEST, finish_axes, mark_discarded, new_axes
from lit_bump.figures.median_band import median_band
from lit_bump.figures.step_colours import COLOURS, finish_step_bar, step_place, step_scale
from lit_bump.measure.formation import Formation


def formation_figure(formation: Formation, *, title: str | None = None) -> Figure:
    """Draw the median profiles of all steps: the newest black and bold, the older ones coloured by log step.

    The band about the newest is the 90 % interval of its median, over images and directions together.
    Rungs at which the newest profile keeps no image are marked by a cross, those at which it lacks some images by a
    hollow dot. Rungs without an image are gaps in a curve, never bridged.

    Args:
        formation: profiles by step, at least one; nothing is measured.
        title: what to write above; the probe set and the newest step where None.

    Returns:
        A figure of 5 x 3 inches at 120 dpi, known to no window and no global list.

    Raises:
        ValueError: if the formation holds no step.

    """
    if not len(formation):
        raise ValueError("the formation holds no step: there is nothing to draw")
    figure, axes = new_axes(right=0.83)
    newest, last = formation.profiles[-1], formation.steps[-1]
    scale = step_scale(last)
    for step, profile in zip(formation.steps[:-1], formation.profiles[:-1], strict=True):
        axes.plot(profile.etas, profile.median(), color=COLOURS(scale(step_place(step))), linewidth=1.2, zorder=2)
    curve, kept = newest.median(), newest.n_kept()
    low, high = median_band(newest, "confidence")
    axes.fill_between(newest.etas, low, high, color=NEWEST, alpha=0.15, linewidth=0, zorder=1)
    axes.plot(newest.etas, curve, color=NEWEST, linewidth=2.2, zorder=3)
    for partial, face in ((False, NEWEST), (True, "white")):
        chosen = (kept > 0) & ((kept < newest.n_images) == partial)
        axes.plot(newest.etas[chosen], curve[chosen], "o", color=NEWEST, markerfacecolor=face, markersize=3.5, zorder=3)
    probe = newest.context.get("probe")
    finish_axes(
        axes,
        itertools.chain.from_iterable(profile.etas for profile in formation.profiles),
        itertools.chain.from_iterable(profile.median() for profile in formation.profiles),
        title if title is not None else f"{f'{probe}, ' if probe else ''}step {last:,}",
    )
    mark_discarded(axes, newest.etas, kept == 0)
    if len(formation) > 1:
        place = figure.add_axes((0.855, 0.175, 0.022, 0.71))
        finish_step_bar(figure.colorbar(ScalarMappable(scale, COLOURS), cax=place, ticks=[]), last, FONT_SIZE - 1)
    return figure
