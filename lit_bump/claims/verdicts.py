"""What each claim asks of the measurements: which profiles, which statistic, which threshold and why.

Paper: section 3 and figs. 1c, 2a, 2b, 2c. Needs NumPy and ``measure``. The paper reads its profiles by eye; here a
peak is the verdict of ``Bump``, and every threshold stands beside its reason, not beside a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lit_bump.claims.blur_verdict import MOST, blur_parts
from lit_bump.claims.evidence import Evidence
from lit_bump.claims.finding import Finding, Part, Verdict, overall
from lit_bump.claims.outward_verdict import moved_outward
from lit_bump.claims.peak_verdicts import EARLY, NO_PEAK, forms_early, has_peak, no_peak
from lit_bump.measure import Profile

MEMORISED = 0.85  # training accuracy; the paper's own memorising network reaches 0.895
CHANCE_MARGIN = 0.05  # over chance: about five standard errors of a 1,000-image accuracy


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
            [
                no_peak(network, evidence.first(f"{network}_clean", sets.test), "step 0", may_rise=True)
                for network in networks
            ],
        ),
        (
            "C2",
            "After training there is a bump, on test and on training images, in every architecture.",
            "section 3, fig. 1c",
            "an interior peak at the last step on both sets",
            [
                has_peak(network, evidence.last(f"{network}_clean", probe), probe)
                for network in networks
                for probe in (sets.test, sets.train)
            ],
        ),
        (
            "C3",
            "The bump forms early in training and is then kept.",
            "section 3, fig. 1c",
            f"half of the final log height (at the final peak's rung) before {EARLY:.0%} of the steps, and ever after",
            [
                forms_early(network, evidence.formations.get(f"{network}_clean", {}).get(sets.test))
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
            f"in more than {MOST:.0%} of the comparisons of neighbouring blurs, in each direction, beyond the interval",
            _blur(evidence, sets),
        ),
        (
            "C6",
            "Permuted labels are memorised, without generalisation and without a peak on any set.",
            "section 3, fig. 2c (train 89.5 %, test 10.6 %)",
            f"train accuracy of at least {MEMORISED}, test accuracy at chance, max r below {NO_PEAK:g} on every set",
            _memorised(evidence, sets, "randlabel"),
        ),
        (
            "C7",
            "Training on noise images forms no peak on any set.",
            "section 3, fig. 2c",
            f"train accuracy of at least {MEMORISED}, max r below {NO_PEAK:g} on every set",
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


def _moved_outward(evidence: Evidence, sets: Sets, networks: Sequence[str]) -> list[Part]:
    parts: list[Part] = []
    for name in evidence.formations:
        network, _, regime = name.partition("_")
        if regime.startswith("adv") and network in networks:
            clean, robust = evidence.last(f"{network}_clean", sets.test), evidence.last(name, sets.test)
            missing: list[Part] = [(f"{name}: not measured", "undecided")]
            parts += missing if clean is None or robust is None else moved_outward(name, clean, robust)
    return parts or [("no adversarial network was measured", "undecided")]


def _blur(evidence: Evidence, sets: Sets) -> list[Part]:
    profiles: dict[str, list[Profile]] = {}
    for regime in ("clean", "blur1", "blur2"):
        found = [evidence.last(f"resnet18_{regime}", probe) for probe in sets.blurs]
        profiles[regime] = [profile for profile in found if profile is not None]
    if any(len(row) < len(sets.blurs) for row in profiles.values()):
        return [("not all of the nine combinations were measured", "undecided")]
    return blur_parts(profiles)


def _memorised(evidence: Evidence, sets: Sets, regime: str) -> list[Part]:
    parts: list[Part] = []
    for name in (name for name in evidence.formations if name.endswith(f"_{regime}")):
        metrics = evidence.metrics.get(name, {})
        train, test = metrics.get("train/accuracy", math.nan), metrics.get("val/accuracy", math.nan)
        # a network that has not memorised says nothing about memorisation
        parts.append((f"{name}: train accuracy {train:.3f}", "holds" if train >= MEMORISED else "undecided"))
        if regime == "randlabel":
            chance: Verdict = "holds" if test <= 1 / 10 + CHANCE_MARGIN else "does not hold"
            parts.append((f"{name}: test accuracy {test:.3f}", "undecided" if math.isnan(test) else chance))
        for probe in (*sets.blurs, sets.train, sets.noise, sets.noise_train):
            parts.append(no_peak(name, evidence.last(name, probe), probe))
    return parts or [(f"no network trained on {regime} was measured", "undecided")]
