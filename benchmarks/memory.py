"""Peak memory at 224 px: many images to the accurate protocol, and that it depends on neither images nor pairs.

Needs the package and torchvision. Every row is a process of its own. Random weights do for memory.
"""

from __future__ import annotations

from typing import Any

from benchmarks.shared import Setting, Table, measured_apart

NETWORKS = ("torchvision ResNet-18 224 px", "torchvision ResNet-50 224 px")
SECONDS = 900.0  # of wall time for the row of many images; what it gives up is shown
HEAD = ("network", "images", "target, %", "directions a rung, mean", "peak MB", "before", "seconds", "given up")


def tables(setting: Setting) -> list[Table]:
    """Return the peaks."""
    table = Table("Memory at 3x224x224, random weights, 17 rungs", HEAD)
    first = NETWORKS[:1] if setting.budget != "full" else NETWORKS
    n_rungs = setting.pick(1, 3, 17)
    for network in first:
        pairs = [(1, 0.5)] if setting.budget == "tiny" else [(2, 0.1), (8, 0.1), (2, 0.03)]
        for n_images, target in pairs:
            _add(table, setting, n_rungs, network, n_images, target)
        if setting.budget == "full":
            _add(table, setting, n_rungs, network, 64, 0.01, seconds=SECONDS)
    if n_rungs != 17:
        table.title = f"Memory at 3x224x224, random weights, {n_rungs} rungs"
    table.notes.append(
        "Two images against eight, 10 % against 3 %: the peak should be the same. The row of 64 images is the accurate "
        f"protocol with {SECONDS:.0f} seconds to keep to (on a machine that needs longer it takes what they allow, and "
        "says so)."
    )
    return [table]


def _add(table: Table, setting: Setting, n_rungs: int, network: str, n_images: int, target: float, **more: Any) -> None:
    found = measured_apart(
        network=network, n_images=n_images, target=target, n_rungs=n_rungs, device=setting.device, **more
    )
    cells = (found["n_directions"], found["peak"], found["before"], found["seconds"], found["gave_up"] or "nothing")
    table.add(network, n_images, 100 * target, *cells)
