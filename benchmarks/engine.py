"""The engine alone: the same directions, pairs and products, by the obvious code and by the package.

Paper: A.2 "Protocol". Needs the package. The sides run in one process, in turn, so that a noisy machine disturbs all
of them; the package's time includes noise rule, checks and its own draw of the directions, the obvious code's does not.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks.naive import naive_profile
from benchmarks.shared import Setting, Table, shown_range
from benchmarks.subjects import Subject, random_subject
from lit_bump.measure import Profile, Protocol, measure_profile

HEAD = ("network", "side", "seconds, least", "range", "forward-equivalents", "us each", "obvious / this", "range")


def tables(setting: Setting) -> list[Table]:
    """Return the engine's times."""
    names = setting.pick(["ResNet-18 width 4"], ["ResNet-18 width 16"], ["ResNet-18 width 16", "ResNet-18 width 64"])
    n_pairs, n_jvp = setting.pick((16, 8), (128, 32), (1024, 256))
    title = f"Engine: one image of 3x32x32, {n_pairs} pairs, {n_jvp} JVPs, random weights, n = {setting.repeats}"
    table = Table(title, HEAD)
    for name in (name for name in names if setting.only in name):
        _add(table, random_subject(name, setting), n_pairs, n_jvp, setting)
    table.notes.append(
        "A product counts as two forwards. `auto` takes bfloat16 on the rungs where it agrees with float32 on 32 pairs "
        "(to 1 % in the mean, with an error of the correction below 0.5 %), and puts their mean difference back."
    )
    table.notes.append(
        "Where the package compiles the forward by itself, that is in its time; torch keeps what it compiled, so that "
        "the range holds a first run and the least is a later one's."
    )
    return [table]


def _add(table: Table, subject: Subject, n_pairs: int, n_jvp: int, setting: Setting) -> None:
    etas = setting.etas(Protocol.paper(subject.size).etas)
    image, half = subject.images(1), subject.half(n_pairs)
    paper = replace(Protocol.paper(subject.size), etas=etas, n_pairs=n_pairs, n_jvp=n_jvp)
    auto = replace(paper, precision="auto")
    naive_profile(subject.encoder, image[0], etas[:1], half[:32], 8)  # warm all sides up
    for protocol in (paper, auto):
        measure_profile(subject.encoder, image, replace(protocol, etas=etas[:1], n_pairs=32, n_jvp=8), progress=False)
    compiled = False if setting.budget == "tiny" else None  # None: where it pays
    seconds: dict[str, list[float]] = {"obvious": [], "paper, float32": [], "paper, auto": []}
    profiles: dict[str, Profile] = {}
    for _ in range(setting.repeats):
        start = time.perf_counter()
        obvious = naive_profile(subject.encoder, image[0], etas, half, n_jvp)
        seconds["obvious"].append(time.perf_counter() - start)
        for side, protocol in (("paper, float32", paper), ("paper, auto", auto)):
            profiles[side] = measure_profile(subject.encoder, image, protocol, progress=False, compiled=compiled)
            seconds[side].append(profiles[side].seconds)
    work = {"obvious": 1.0 + 2 * n_pairs * len(etas) + 2 * n_jvp}
    work |= {side: float(profile.forward_equivalents[0]) for side, profile in profiles.items()}
    for side, taken in seconds.items():
        ratios = [a / b for a, b in zip(seconds["obvious"], taken, strict=True)]
        least = min(taken)
        each = 1e6 * least / work[side]
        cells = (least, shown_range(taken), work[side], each, min(seconds["obvious"]) / least, shown_range(ratios))
        table.add(subject.name, side, *cells)
    kept = np.isfinite(profiles["paper, float32"].ratio[0])
    ours = profiles["paper, float32"].ratio[0][kept]
    difference = np.abs(obvious.ratio.numpy()[kept] / ours - 1).max() if kept.any() else np.nan
    other = profiles["paper, auto"]
    change = np.abs(other.ratio[0][kept] / ours - 1).max() if kept.any() else np.nan
    share = other.n_coarse[0].sum() / other.n_directions[0].sum()
    table.notes.append(
        f"{subject.name}: the ratios of the obvious code and of `float32` differ by at most {100 * difference:.2g} %, "
        f"those of `auto` and `float32` by {100 * change:.2g} %; {100 * share:.0f} % of its directions are coarse."
    )
