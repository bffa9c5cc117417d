"""Where the text of a figure lies when it is printed, for tests that nothing is cut off or written over."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

TOUCH = 1.0  # pixels that boxes may share: they are a little larger than their letters


def assert_readable(figure: Figure) -> None:
    """Check that all text is inside of the figure, that no two texts overlap, and that no legend covers a panel."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in printed_texts(figure)]
    page = figure.bbox.padded(TOUCH)
    outside = [words for words, box in boxes if not (page.contains(*box.min) and page.contains(*box.max))]
    assert not outside
    assert not [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if overlap(first, second)]
    for legend in legends(figure):
        box = legend.get_window_extent(renderer)
        assert not [panel.get_title(loc="left") for panel in figure.axes if overlap(box, panel.get_window_extent())]


def legends(figure: Figure) -> list[Legend]:
    """Return the legends of a figure."""
    found: list[Legend] = list(figure.legends)
    return found


def legend_labels(figure: Figure) -> list[str]:
    """Return what the legends say, row by row."""
    return [text.get_text() for legend in legends(figure) for text in legend.get_texts()]


def printed_texts(figure: Figure) -> list[Text]:
    """Return all visible text that is not empty."""
    texts = [text for legend in legends(figure) for text in legend.get_texts()]
    for axes in figure.axes:
        if axes.get_visible():
            texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label, axes.title, *_left_titles(axes)]
            for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                for tick in axis.get_major_ticks():
                    if min(low, high) <= tick.get_loc() <= max(low, high):
                        texts += [label for label in (tick.label1, tick.label2) if label.get_visible()]
    return [text for text in texts if text.get_visible() and text.get_text()]


def _left_titles(axes: Axes) -> list[Text]:
    return [child for child in axes.get_children() if isinstance(child, Text) and child is axes._left_title]  # type: ignore[attr-defined]


def overlap(first: Bbox, second: Bbox) -> bool:
    """Return whether two boxes share more than an edge."""
    across = min(first.x1, second.x1) - max(first.x0, second.x0)
    upwards = min(first.y1, second.y1) - max(first.y0, second.y0)
    return bool(across > TOUCH and upwards > TOUCH)
