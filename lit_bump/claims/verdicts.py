"""What each claim asks of the measurements, decided before they are made.

Paper: section 3 and figs. 1c, 2a, 2b, 2c. Needs NumPy and ``measure``. The paper reads its profiles by eye; here a
peak is the verdict of ``Bump``, and every threshold stands beside its reason. Nothing here is tuned to a result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lit_bump.claims.evidence import Evidence
from lit_bump.claims.finding import Finding, Verdict, overall
from lit_bump.measure import Bump, Formation, Profile

MEMORISED = 0.85  # training accuracy; the paper's own memorising network reaches 0.895
CHANCE_MARGIN = 0.05  # over chance: about five standard errors of a 1,000-image accuracy
EARLY = 0.5  # share of training: at steady growth the log height would be half-way only there
MOSTLY = 2 / 3  # of the comparisons; the paper says "mostly"
Part = tuple[str, Verdict]


@dataclass(frozen=True)
class Sets:
    """Name the probe sets of one image family.

    Args:
        test: test images.
        train: training images.
        blur1: the test images, blurred with sigma 1.
        blur2: the test images, blurred with sigma 2.
        noise: noise images.
        noise_train: training images of the noise data.

    """

    test: str
    train: str
    blur1: str
    blur2: str
    noise: str
    noise_train: str

    @classmethod
    def of(cls, family: str, n_images: int) -> Sets:
        """Return the names for a family of images.

        Args:
            family: ``cifar`` or ``shapes``.
            n_images: in every set.

        Returns:
            Names that the registry knows.

        Example:
            >>> Sets.of("cifar", 32).blur1
            'cifar32b1'

        """
        name, noise = f"{family}{n_images}", f"noise{n_images}"
        return cls(name, f"{name}train", f"{name}b1", f"{name}b2", noise, f"{noise}train")

    @property
    def blurs(self) -> tuple[str, str, str]:
        """The test images, clean and blurred."""
        return self.test, self.blur1, self.blur2


def judge(evidence: Evidence, sets: Sets, *, networks: Sequence[str] = ("resnet18", "vgg16", "wrn")) -> list[Finding]:
    """Return the seven findings.

    Args:
        evidence: of all conditions; what is missing leaves its claims undecided.
        sets: the names of the probe sets.
        networks: architectures, as the conditions' names begin.

    Returns:
        Findings C1 to C7, in order.

    """
    parts: list[tuple[str, str, str, str, list[Part]]] = [
        (
            "C1",
            "There is no bump at initialisation, in any architecture.",
            "section 3, fig. 1c",
            "no interior peak on test images at step 0 (a rise to the end of the ladder is no peak)",
            [_no_peak(network, evidence.first(f"{network}_clean", sets.test), "step 0") for network in networks],
        ),
        (
            "C2",
            "After training there is a bump, on test and on training images, in every architecture.",
            "section 3, fig. 1c",
            "an interior peak at the last step on both sets",
            [
                _peak(network, evidence.last(f"{network}_clean", probe), probe)
                for network in networks
                for probe in (sets.test, sets.train)
            ],
        ),
        (
            "C3",
            "The bump forms early in training and is then kept.",
            "section 3, fig. 1c",
            f"half of the final log height before {EARLY:.0%} of the steps, and at every later measured step",
            [
                _forms_early(network, evidence.formations.get(f"{network}_clean", {}).get(sets.test))
                for network in networks
            ],
        ),
        (
            "C4",
            "Adversarial training moves the peak outward and lowers the local prediction.",
            "section 3, fig. 2a (10-30x outward, prediction about 2000x lower)",
            "peak at a larger eta and a lower median prediction than the clean network, each beyond its interval",
            _moved_outward(evidence, sets, networks),
        ),
        (
            "C5",
            "The bump mostly grows with evaluation blur and shrinks with training blur.",
            "section 3, fig. 2b",
            f"in at least {MOSTLY:.0%} of the comparisons of neighbouring blurs, in each direction",
            _blur(evidence, sets),
        ),
        (
            "C6",
            "Permuted labels are memorised, without generalisation and without a peak on any set.",
            "section 3, fig. 2c (train 89.5 %, test 10.6 %)",
            f"train accuracy of at least {MEMORISED}, test accuracy at chance, no interior peak on any set",
            _memorised(evidence, sets, "randlabel"),
        ),
        (
            "C7",
            "Training on noise images forms no peak on any set.",
            "section 3, fig. 2c",
            f"train accuracy of at least {MEMORISED}, no interior peak on any set",
            _memorised(evidence, sets, "noise"),
        ),
    ]
    findings = []
    for claim, statement, where, expected, found in parts:
        verdict = overall([one for _, one in found])
        failed = [text for text, one in found if one == verdict] if verdict != "holds" else []
        reason = "; ".join(failed) if failed else ("" if found else "nothing was measured")
        findings.append(Finding(claim, statement, where, expected, tuple(text for text, _ in found), verdict, reason))
    return findings


def _shown(bump: Bump, probe: str = "") -> str:
    return f"{probe + ': ' if probe else ''}{bump}"


def _no_peak(label: str, profile: Profile | None, probe: str) -> Part:
    if profile is None:
        return f"{label}, {probe}: not measured", "undecided"
    bump = profile.bump()
    verdict: Verdict = {"bump": "does not hold", "undefined": "undecided"}.get(bump.verdict, "holds")  # type: ignore[assignment]
    return f"{label}, {_shown(bump, probe)}", verdict


def _peak(label: str, profile: Profile | None, probe: str) -> Part:
    if profile is None:
        return f"{label}, {probe}: not measured", "undecided"
    bump = profile.bump()
    verdict: Verdict = {"bump": "holds", "none": "does not hold"}.get(bump.verdict, "undecided")  # type: ignore[assignment]
    return f"{label}, {_shown(bump, probe)}", verdict


def _forms_early(label: str, formation: Formation | None) -> Part:
    if formation is None or len(formation) < 3:
        return f"{label}: no formation measured", "undecided"
    final = formation.profiles[-1].bump()
    if final.verdict != "bump":
        return f"{label}: no bump at the end to form ({final.verdict})", "undecided"
    half = 0.5 * math.log(final.height)
    heights = [
        math.log(max(bump.height, 1e-9)) if bump.verdict != "undefined" else -math.inf for bump in formation.bumps()
    ]
    reached = next(i for i, height in enumerate(heights) if height >= half)
    lost = [step for step, height in zip(formation.steps[reached:], heights[reached:], strict=True) if height < half]
    share = formation.steps[reached] / formation.steps[-1]
    text = (
        f"{label}: half of the log height at step {formation.steps[reached]:,}, {share:.1%} of {formation.steps[-1]:,}"
    )
    if lost:
        return f"{text}; below it again at {', '.join(f'{step:,}' for step in lost)}", "does not hold"
    return f"{text}; kept", "holds" if share < EARLY else "does not hold"


def _moved_outward(evidence: Evidence, sets: Sets, networks: Sequence[str]) -> list[Part]:
    parts: list[Part] = []
    for name in evidence.formations:
        network, _, regime = name.partition("_")
        if not regime.startswith("adv") or network not in networks:
            continue
        clean, robust = evidence.last(f"{network}_clean", sets.test), evidence.last(name, sets.test)
        parts += (
            [(f"{name}: not measured", "undecided")]
            if clean is None or robust is None
            else _against(name, clean, robust)
        )
    return parts or [("no adversarial network was measured", "undecided")]


def _against(name: str, clean: Profile, robust: Profile) -> list[Part]:
    before, after = clean.bump(), robust.bump()
    factors = clean.prediction / robust.prediction  # of each image
    low, middle, high = _median_interval(factors)
    lower: Part = (
        f"{name}: prediction {middle:.3g} [{low:.3g}, {high:.3g}] times lower",
        "holds" if low > 1 else "does not hold" if high < 1 else "undecided",
    )
    accuracy = f"{name}: {_shown(after)}"
    if before.verdict != "bump" or after.verdict not in ("bump", "rising"):
        return [(f"{accuracy}; clean {before}", "undecided"), lower]
    if after.verdict == "rising":  # the ladder could not be extended far enough: the peak lies beyond its end
        factor = robust.etas[-1] / before.eta
        sure: Verdict = "holds" if factor > 1 else "undecided"
        return [
            (f"{accuracy}; the peak is more than {factor:.3g} times outward of the clean {before.eta:.3g}", sure),
            lower,
        ]
    factor = after.eta / before.eta
    least = 10 ** (after.log10_eta_interval[0] - before.log10_eta_interval[1])
    most = 10 ** (after.log10_eta_interval[1] - before.log10_eta_interval[0])
    moved: Verdict = "holds" if least > 1 else "does not hold" if most < 1 else "undecided"
    text = f"{accuracy}; {factor:.3g} [{least:.3g}, {most:.3g}] times outward of the clean {before.eta:.3g}"
    return [(text, moved), lower]


def _median_interval(values: np.ndarray, *, seed: int = 0) -> tuple[float, float, float]:
    """Return the ends of the 90 % bootstrap interval of a median, and the median between them."""
    values = values[np.isfinite(values)]
    if not values.size:
        return math.nan, math.nan, math.nan
    drawn = np.random.default_rng(seed).choice(values, size=(1000, values.size))
    low, high = np.quantile(np.median(drawn, axis=1), [0.05, 0.95])
    return float(low), float(np.median(values)), float(high)


def _blur(evidence: Evidence, sets: Sets) -> list[Part]:
    trained = ("resnet18_clean", "resnet18_blur1", "resnet18_blur2")
    profiles = [[evidence.last(name, probe) for probe in sets.blurs] for name in trained]
    if any(profile is None for row in profiles for profile in row):
        return [("not all of the nine combinations were measured", "undecided")]
    bumps = [[profile.bump() for profile in row if profile is not None] for row in profiles]
    heights = np.array([[bump.height if bump.verdict != "undefined" else math.nan for bump in row] for row in bumps])
    table = "; ".join(
        f"trained on {name.partition('_')[2]}: " + " / ".join(f"{bump.height:.3g} {bump.verdict}" for bump in row)
        for name, row in zip(trained, bumps, strict=True)
    )
    text = f"max r on clean / blur 1 / blur 2, {table}"
    if not np.isfinite(heights).all():
        return [(text, "undecided")]
    return [
        (text, "holds"),
        _mostly("grows with evaluation blur", [b > a for row in heights for a, b in itertools.pairwise(row)]),
        _mostly("shrinks with training blur", [b < a for row in heights.T for a, b in itertools.pairwise(row)]),
    ]


def _mostly(what: str, outcomes: Sequence[bool | np.bool_]) -> Part:
    right = sum(map(bool, outcomes))
    return f"{what} in {right} of {len(outcomes)}", "holds" if right >= MOSTLY * len(outcomes) else "does not hold"


def _memorised(evidence: Evidence, sets: Sets, regime: str) -> list[Part]:
    parts: list[Part] = []
    for name in (name for name in evidence.formations if name.endswith(f"_{regime}")):
        metrics = evidence.metrics.get(name, {})
        train, test = metrics.get("train/accuracy", math.nan), metrics.get("val/accuracy", math.nan)
        # a network that has not memorised says nothing about memorisation
        parts.append((f"{name}: train accuracy {train:.3f}", "holds" if train >= MEMORISED else "undecided"))
        if regime == "randlabel":
            at_chance = test <= 1 / 10 + CHANCE_MARGIN
            parts.append((f"{name}: test accuracy {test:.3f}", "holds" if at_chance else "does not hold"))
        for probe in (*sets.blurs, sets.train, sets.noise, sets.noise_train):
            parts.append(_no_peak(name, evidence.last(name, probe), probe))
    return parts or [(f"no network trained on {regime} was measured", "undecided")]
