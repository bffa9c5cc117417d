"""A figure as pixels, for loggers that take images.

Agg renders without a display whatever backend the user has chosen. Needs Matplotlib and NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Array = np.ndarray


def rgb_array(figure: Figure) -> UInt8[Array, "height width 3"]:
    """Render a figure at its own size and resolution.

    Args:
        figure: any figure; it is left as it is.

    Returns:
        Pixels, 8 bits a channel; the array owns its memory.

    """
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(np.asarray(canvas.buffer_rgba())[..., :3])
