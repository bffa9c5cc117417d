"""One condition of the paper: a config with some options, the probe sets that it is measured on, and its cost.

Paper: section 3. Standard library only. A condition is trained by the command line that its user would type.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """Hold what one training run of the claims is.

    Args:
        name: of its folder, ``<network>_<regime>``.
        config: packaged config.
        options: words of the command line after the config.
        live: probe set measured while it trains; the formation.
        probes: probe sets measured when it has ended.
        init_from: name of the condition whose last checkpoint it starts from.
        is_extended: whether the ladder goes on until the peak is on it.
        cost: rough minutes on one core (or one GPU, for the paper's scale), for the order and the time left.

    """

    name: str
    config: str
    options: tuple[str, ...] = ()
    live: str = ""
    probes: tuple[str, ...] = ()
    init_from: str | None = None
    is_extended: bool = False
    cost: float = 1.0
