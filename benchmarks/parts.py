"""What each part of the estimator gains: counted from measured spreads, and timed where it can be switched.

Paper: A.2 "Protocol" is the first rung of the ladder of schemes. Needs the package. The spread of D, of the products
and of what the control variate leaves is measured once on many pairs; every scheme then gets the cheapest numbers of
pairs and products that bring each rung of each image to the target, the plain scheme too, as if spreads were known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.shared import Setting, Table, shown_range
from benchmarks.subjects import Subject, frozen, trained_subject
from lit_bump.measure import Protocol, measure_profile
from lit_bump.measure.displacement import Rows, displacements
from lit_bump.measure.prediction import local_predictions

FloatArray = np.ndarray
TARGETS = (0.03, 0.01)
NUMBERS = np.unique(np.geomspace(2, 1e5, 180).astype(int))  # of pairs and of products that are tried


@dataclass(frozen=True)
class Spread:
    """Hold the variances of one image over pairs, relative to the squared means.

    Args:
        pair: of D, or of what the control variate leaves of it, ``(rung,)``.
        product: of what is averaged over products.
        covariance: of the two.
        fixed: forward-equivalents spent before.

    """

    pair: FloatArray
    product: float
    covariance: FloatArray
    fixed: float = 0.0

    def cheapest(self, target: float, *, by_rung: bool) -> float:
        """Return the forward-equivalents that bring every rung to the target, at the best numbers of draws."""
        n, m = NUMBERS[:, None, None].astype(float), NUMBERS[:, None].astype(float)  # axes: pairs, products, rung
        variance = self.pair / n + self.product / m - 2 * self.covariance / np.maximum(n, m)
        n_pairs = np.where(variance <= target**2, n, np.inf)
        of_products = n_pairs.min(axis=0).sum(axis=1) if by_rung else n_pairs.max(axis=2).min(axis=0) * n_pairs.shape[2]
        return float(self.fixed + (2 * of_products + 2 * NUMBERS).min())


def tables(setting: Setting) -> list[Table]:
    """Return the two ladders of schemes for each network."""
    chosen = setting.pick([(4, 2, 1)], [(16, 800, 1)], [(16, 800, 8), (64, 500, 2)])
    found = []
    for width, n_steps, n_images in chosen:
        subject = trained_subject(width, n_steps, setting)
        found += [_counted(subject, setting), _timed(subject, n_images, setting)]
    return found


def _counted(subject: Subject, setting: Setting) -> Table:
    n_images, n_pairs = setting.pick((1, 16), (2, 64), (2, 256))
    n_sketch = setting.pick(4, 32, 32)
    etas = setting.etas(Protocol.paper(subject.size).etas)
    head = ["scheme", *(f"forward-equivalents at {100 * target:g} %" for target in TARGETS), "times fewer"]
    table = Table(f"{subject.name}: cost by scheme, from spreads over {n_pairs} pairs, mean of {n_images} images", head)
    plain, exact, controlled = _spreads(subject, n_images, n_pairs, n_sketch, etas)
    schemes = [
        ("pairs and products, one number for all rungs", plain, False),
        ("+ sketch of the Jacobian", exact, False),
        ("+ control variate", controlled, False),
        ("+ pairs by rung", controlled, True),
    ]
    first: list[float] = []
    for name, spreads, by_rung in schemes:
        costs = [float(np.mean([s.cheapest(t, by_rung=by_rung) for s in spreads])) for t in TARGETS]
        first = first or costs
        table.add(name, *costs, ", ".join(f"{a / b:.1f}" for a, b in zip(first, costs, strict=True)))
    table.notes.append(
        f"The paper's fixed numbers cost {2 * 1024 * len(etas) + 512:,}. Counted as if the spreads were known before: "
        "no pilot, no noise rule, no margin; the measurement below pays for them. The covariance of pairs and products "
        "is used by every scheme that has one."
    )
    return table


def _spreads(
    subject: Subject, n_images: int, n_pairs: int, n_sketch: int, etas: tuple[float, ...]
) -> tuple[list[Spread], list[Spread], list[Spread]]:
    images = subject.images(n_images)
    with frozen(subject) as encoder:
        same: dict[str, Any] = {"seed": 0, "chunk": 256 if subject.size[1] < 64 else 8}
        predictions = local_predictions(encoder, images, n_pairs, n_sketch=n_sketch, **same)
        rows = Rows.grid(n_images, n_pairs, len(etas))
        values = displacements(encoder, images, etas, rows, **same).reshape(n_images, n_pairs, len(etas))
    plain, exact, controlled = [], [], []
    for prediction, displacement in zip(predictions, values, strict=True):
        d = displacement / displacement.mean(axis=0)
        s, rest = prediction.squares / prediction.value, prediction.remainders / prediction.value
        control = prediction.squares - prediction.remainders  # ||A u||^2
        centred = control - control.mean()
        slope = centred @ d / max(float(centred @ centred), 1e-300)
        left = d - np.outer(centred, slope)
        fixed = 2.0 * (prediction.n_jvps - n_pairs + prediction.n_vjps)
        plain.append(_spread(d, s, 0.0))
        exact.append(_spread(d, rest, fixed))
        controlled.append(_spread(left, rest, fixed))
    return plain, exact, controlled


def _spread(d: FloatArray, s: FloatArray, fixed: float) -> Spread:
    covariance = (d - d.mean(axis=0)).T @ (s - s.mean()) / (len(s) - 1)
    return Spread(d.var(axis=0, ddof=1), float(s.var(ddof=1)), covariance, fixed)


def _timed(subject: Subject, n_images: int, setting: Setting) -> Table:
    n_repeats = setting.repeats if n_images > 2 else 1
    images = subject.images(n_images)
    head = ("protocol", "seconds an image", "forward-equivalents an image", "least to greatest se / r, %", "coarse, %")
    table = Table(f"{subject.name}, {subject.weights}: measured, {n_images} images, n = {n_repeats}", head)
    for name, protocol, options in _switched(subject, setting):
        profiles = [measure_profile(subject.encoder, images, protocol, progress=False, **options)
                    for _ in range(n_repeats)]  # fmt: skip
        profile = profiles[0]
        seconds = min(p.seconds for p in profiles) / n_images
        relative = (profile.standard_error / profile.ratio).ravel()
        coarse = 100 * profile.n_coarse.sum() / profile.n_directions.sum()
        table.add(name, seconds, float(profile.forward_equivalents.mean()), shown_range(relative, 100), coarse)
    table.notes.append("`compiled` includes the seconds that compiling takes, once for all images.")
    return table


def _switched(subject: Subject, setting: Setting) -> Iterator[tuple[str, Protocol, dict[str, Any]]]:
    """Yield what can be switched, one after the other: name, protocol, further arguments of ``measure_profile``."""
    paper, accurate = Protocol.paper(subject.size), Protocol.accurate(subject.size)
    if setting.budget != "full":
        paper = replace(paper, etas=setting.etas(paper.etas), n_pairs=32, n_jvp=16)
        accurate = replace(accurate, etas=setting.etas(accurate.etas), n_pairs=256)
    yield f"paper: {paper.n_pairs} pairs, {paper.n_jvp} JVPs", paper, {"compiled": False}
    for target in TARGETS:
        aimed = replace(accurate, target_se=target)
        exact = replace(aimed, precision="float32")
        yield f"{100 * target:g} %, no sketch, float32", replace(exact, n_sketch=0), {"compiled": False}
        yield f"{100 * target:g} %, sketch, float32", exact, {"compiled": False}
        yield f"{100 * target:g} %, sketch, auto", aimed, {"compiled": False}
        yield f"{100 * target:g} %, sketch, auto, compiled", aimed, {"compiled": True}
