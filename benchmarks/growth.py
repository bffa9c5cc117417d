"""Seconds and peak memory against images, rungs, target, input size and feature size: one axis at a time.

Needs the package. Every row is a process of its own. Memory should follow input and feature size alone.
"""

from __future__ import annotations

from typing import Any

from benchmarks.shared import Setting, Table, measured_apart
from benchmarks.subjects import trained_subject

HEAD = ("what varies", "value", "seconds an image", "seconds", "peak MB", "of it measuring", "forward-equivalents")


def tables(setting: Setting) -> list[Table]:
    """Return the growth of one ResNet-18 width 16."""
    width, steps = setting.pick((4, 2), (16, 800), (16, 800))
    subject = trained_subject(width, steps, setting)  # once, before the processes that read it
    base: dict[str, Any] = {
        "network": f"ResNet-18 width {width}", "train_steps": steps, "device": setting.device,
        "cache": str(setting.cache), "budget": setting.budget, "n_images": setting.pick(1, 2, 4),
        "target": setting.pick(0.5, 0.1, 0.03),
    }  # fmt: skip
    title = f"Growth: {subject.name}, {subject.weights}; {base['n_images']} images, target {100 * base['target']:g} %"
    table = Table(f"{title}, where they do not vary; n = 1", HEAD)
    axes: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "images": [(str(n), {"n_images": n}) for n in setting.pick((1,), (1, 4), (1, 4, 16, 64))],
        "rungs": [(str(n), {"n_rungs": n}) for n in setting.pick((3,), (5, 17), (5, 17, 33))],
        "target": [(f"{100 * t:g} %", {"target": t}) for t in setting.pick((0.5,), (0.1, 0.03), (0.1, 0.03, 0.01))],
        "side": [(f"{side} px", {"side": side}) for side in setting.pick((32,), (32, 64), (32, 64, 96))],
        "features": [
            ("pooled", {}),
            *((f"stage {n}, flattened", {"n_stages": n}) for n in setting.pick((4,), (4,), (4, 3, 2, 1))),
        ],
    }
    for axis, values in axes.items():
        for value, changed in values:
            found = measured_apart(**{**base, **changed})
            shown = f"{value}: {found['n_features']}" if axis == "features" else value
            each = found["seconds"] / changed.get("n_images", base["n_images"])
            grown = found["peak"] - found["before"]
            table.add(axis, shown, each, found["seconds"], found["peak"], grown, found["work"])
    table.notes.append(
        "Forward-equivalents are those of an image, mean. The peak includes torch and the package; where "
        "the forward is compiled, seconds and peak include that."
    )
    return [table]
