"""One bar over a whole grid: images done of images to do, what is being measured, and the time left.

Not in the paper. Needs tqdm.
"""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm import tqdm


class ProbeProgress:
    """Show how far a grid is.

    Args:
        n_images: images that this process has to measure, over all cells.
        show: True for a bar always, False never, None on a terminal.

    """

    def __init__(self, n_images: int, *, show: bool | None) -> None:
        visible = sys.stderr.isatty() if show is None else show
        self._bar = tqdm(
            total=n_images,
            disable=not visible,
            unit="img",
            dynamic_ncols=True,
            bar_format="{l_bar}{bar}| {n:.1f}/{total} images [{elapsed}<{remaining}{postfix}]",
        )
        self._before = 0.0
        self._in_cell = 0

    def __enter__(self) -> ProbeProgress:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bar."""
        self._bar.close()

    def begin(self, what: str, n_images: int) -> None:
        """Say what is measured next.

        Args:
            what: in words.
            n_images: of it, by this process.

        """
        self._before += self._in_cell
        self._in_cell = n_images
        self._bar.n = self._before
        self._bar.set_postfix_str(what)

    def within(self, done: int, total: int) -> None:
        """Count work within what is being measured.

        Args:
            done: perturbed images.
            total: of them, as far as is known.

        """
        self._bar.n = self._before + self._in_cell * min(done / max(total, 1), 1.0)
        self._bar.update(0)
        self._bar.refresh()
