"""Everything together: equal or smaller standard error at every rung, in seconds an image.

Paper: A.2 "Protocol" is the obvious code's side. Needs the package. The target is the smallest standard error over
ratio that the obvious code states over its rungs; afterwards every rung of the common image is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.naive import NaiveProfile, naive_profile
from benchmarks.shared import Setting, Table, shown_range
from benchmarks.subjects import Subject, random_subject, trained_subject
from lit_bump.measure import Protocol, measure_profile

N_PAIRS, N_JVP = 1024, 256  # the paper's
HEAD = (
    "network", "weights", "obvious, s an image", "lit_bump, s an image", "times faster", "range",
    "forward-equivalents, obvious", "lit_bump", "fewer", "obvious se, %", "lit_bump se, %", "rungs at or below",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Say how one network is compared.

    Args:
        subject: the network.
        n_images: measured together by the package.
        n_pairs: of the obvious code's 1024 that are run; the rest is extrapolated.
        n_jvp: of its 256 products.
        repeats: how often both sides are timed.

    """

    subject: Subject
    n_images: int
    n_pairs: int = N_PAIRS
    n_jvp: int = N_JVP
    repeats: int = 1


def cases(setting: Setting) -> list[Case]:
    """Return the networks, with how much of the obvious code is run on each."""
    if setting.budget == "tiny":
        return [Case(trained_subject(4, 2, setting), 2, 16, 8)]
    if setting.budget == "small":
        return [
            Case(trained_subject(16, 800, setting), 4, 64, 32, setting.repeats),
            Case(random_subject("ViT-tiny 64 px", setting), 2, 8, 8),
        ]
    whole = (N_PAIRS, N_JVP)
    part = whole if setting.device == "cuda" else (64, 32)
    return [
        Case(trained_subject(16, 800, setting), 64, *whole, setting.repeats),
        Case(trained_subject(64, 500, setting), 16, *whole),
        Case(random_subject("WRN-16-4", setting), 8, *part),
        Case(random_subject("ViT-tiny 64 px", setting), 8, *part),
        Case(random_subject("torchvision ResNet-50 224 px", setting), 8, *part),
    ]


def tables(setting: Setting) -> list[Table]:
    """Return times at equal or smaller standard error."""
    table = Table("Everything: equal or smaller standard error at every rung, 17 rungs, per image", HEAD)
    for case in (case for case in cases(setting) if setting.only in case.subject.name):
        _add(table, case, setting)
    table.notes.append(
        "The obvious code takes 1024 pairs and 256 JVPs on the first image. *: extrapolated in proportion from fewer "
        "pairs and products on all rungs (below), its standard error likewise, from their spread. Ours is the mean "
        "over images measured together, noise rule, checks and compiling included, with `target_se` the smallest of "
        "the obvious code's standard errors over ratio; the standard errors are those of the first image, without "
        "the floating-point noise that ours also state and the obvious code does not. A rung that our noise rule "
        "discards is not counted."
    )
    return [table]


def _add(table: Table, case: Case, setting: Setting) -> None:
    subject, encoder = case.subject, case.subject.encoder
    protocol = Protocol.accurate(subject.size)
    protocol = replace(protocol, etas=setting.etas(protocol.etas))
    images, half = subject.images(case.n_images), subject.half(case.n_pairs)
    naive_profile(encoder, images[0], protocol.etas[:1], half[:8], 8)  # warm both sides up
    measure_profile(encoder, images[:1], replace(protocol, etas=protocol.etas[:1], target_se=0.5), progress=False)
    obvious_seconds, our_seconds = [], []
    for _ in range(case.repeats):
        obvious = naive_profile(encoder, images[0], protocol.etas, half, case.n_jvp)
        obvious_seconds.append(obvious.seconds(N_PAIRS, N_JVP))
        relative = obvious.relative_error(N_PAIRS, N_JVP).numpy()
        target = float(relative.min())
        profile = measure_profile(encoder, images, replace(protocol, target_se=target), progress=False)
        our_seconds.append(profile.seconds / case.n_images)
    noise = profile.noise[0] / (np.square(profile.etas) * profile.prediction[0])
    ours = np.sqrt(np.square(profile.standard_error[0]) - np.square(noise)) / profile.ratio[0]
    kept = np.isfinite(ours)
    n_met = int((ours[kept] <= relative[kept]).sum())
    work = 1.0 + 2 * N_PAIRS * len(protocol.etas) + 2 * N_JVP
    our_work = float(profile.forward_equivalents.mean())
    mark = "" if case.n_pairs == N_PAIRS else "*"
    ratios = [a / b for a, b in zip(obvious_seconds, our_seconds, strict=True)]
    table.add(
        subject.name, subject.weights, f"{min(obvious_seconds):.3g}{mark}", min(our_seconds),
        f"{min(obvious_seconds) / min(our_seconds):.3g}{mark}", shown_range(ratios) if len(ratios) > 1 else "-",
        work, our_work, work / our_work, f"{shown_range(relative, 100)}{mark}", shown_range(ours, 100),
        f"{n_met} of {kept.sum()}",
    )  # fmt: skip
    table.notes.append(_note(case, obvious, target, float((ours[kept] / relative[kept]).max()) if kept.any() else 0.0))


def _note(case: Case, obvious: NaiveProfile, target: float, worst: float) -> str:
    run = f"{obvious.displacement.shape[1]} pairs and {obvious.sensitivity.numel()} JVPs run"
    return (
        f"{case.subject.name}: {run}, {case.n_images} images of ours, n = {case.repeats}, target {100 * target:.3g} %, "
        f"largest quotient of the standard errors over rungs {worst:.2f}."
    )
