"""The sizes at which the claims can be checked: on a laptop, on CIFAR-10 with narrow networks, and as in the paper.

Paper: section 3, A.2 "Training". Standard library only. Each condition is a packaged config with options, so that any
of them can be run alone by the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from lit_bump.claims.condition import Condition
from lit_bump.claims.verdicts import Sets
from lit_bump.errors import LitBumpError

REGIMES_OF = {  # what a claim needs, as the conditions' names end
    "C1": ("clean",),
    "C2": ("clean",),
    "C3": ("clean",),
    "C4": ("clean", "adv"),
    "C5": ("clean", "blur"),
    "C6": ("randlabel",),
    "C7": ("noise",),
}


@dataclass(frozen=True)
class Scale:
    """Hold the conditions of one size.

    Args:
        name: as on the command line.
        summary: what it is, for people.
        conditions: all training runs.
        sets: the probe sets.
        protocol: preset of the measurements after training.
        threads: of each training process; None for torch's own choice and one process at a time.
        needs_data: whether a folder with CIFAR-10 has to be given.
        unit: what a condition's cost was found on.

    """

    name: str
    summary: str
    conditions: tuple[Condition, ...]
    sets: Sets
    protocol: str = "quick"
    threads: int | None = 1
    needs_data: bool = False
    unit: str = "one core"

    def for_claims(self, claims: list[str]) -> Scale:
        """Return the scale with only the conditions that some claims need.

        Args:
            claims: such as ``["C4"]``.

        Returns:
            The smaller scale.

        Raises:
            LitBumpError: if there is no such claim.

        """
        for claim in claims:
            if claim not in REGIMES_OF:
                raise LitBumpError(f"there is no claim {claim!r} (valid: {', '.join(REGIMES_OF)})")
        regimes = tuple(regime for claim in claims for regime in REGIMES_OF[claim])
        networks = {c.name.partition("_")[0] for c in self.conditions} if {"C1", "C2", "C3"} & set(claims) else None
        kept = [c for c in self.conditions if c.name.partition("_")[2].startswith(regimes)]
        if networks is None:  # the clean networks are only there to be compared with
            others = {c.name.partition("_")[0] for c in kept if not c.name.endswith("_clean")}
            kept = [c for c in kept if c.name.partition("_")[0] in others]
        return replace(self, conditions=tuple(kept))


_UNSPARED = "--rprofile.max_share=null"  # every scheduled step, each at the protocol's own standard error
_ENDS = ("--rprofile.schedule={n_points: 2, per_decade: 4}",)  # step 0 and the last


def _formation(total: int, shares: tuple[float, ...] = (0.03, 0.1, 0.2, 0.33, 0.5, 0.75)) -> tuple[str, ...]:
    """Return the option that measures step 0, some shares of a training of known length, and its end."""
    steps = [0, *(round(share * total) for share in shares), total]
    return (f"--rprofile.schedule={{steps: {steps}, per_decade: 4}}",)


def _grid(sets: Sets) -> dict[str, tuple[str, ...]]:
    """Return the probe sets that a condition is measured on when it has ended, by what it is for."""
    return {
        "clean": (sets.test, sets.train),
        "compared": (*sets.blurs, sets.train),  # with the blurred ones
        "blur": sets.blurs,
        "adv": (sets.test,),
        "control": (*sets.blurs, sets.train, sets.noise, sets.noise_train),
    }


def _laptop() -> Scale:
    sets = Sets.of("shapes", 8)
    grid = _grid(sets)

    def of(name: str, config: str, probes: str, cost: float, *options: str, **more: Any) -> Condition:
        return Condition(name, f"{config}.yaml", (_UNSPARED, *options), sets.test, grid[probes], cost=cost, **more)

    clean = ("--trainer.check_val_every_n_epoch=6", *_formation(942))
    blurred = ("--data=BlurredShapesDataModule", "--trainer.check_val_every_n_epoch=6", *_ENDS)
    adversarial = (
        *("--model=AdversarialClassifierModule", "--model.eps=0.5", "--model.attack_steps=2", "--model.eval_steps=5"),
        *("--model.eval_batches=4", "--trainer.max_epochs=2", "--trainer.check_val_every_n_epoch=2", *_ENDS),
    )
    memorising = ("--data.n_train=1000", "--trainer.max_epochs=48", *_ENDS)
    conditions = (
        of("resnet18_clean", "quickstart", "compared", 2.5, *clean),
        of(
            "vgg16_clean",
            "quickstart",
            "clean",
            3.0,
            *clean,
            "--model.network=vgg16",
            "--model.width=16",
            "--model.lr=0.02",
        ),
        of("wrn_clean", "quickstart", "clean", 4.5, *clean, "--model.network=wrn28x10", "--model.lr=0.1"),
        of("resnet18_blur1", "quickstart", "blur", 2.3, *blurred, "--data.sigma=1"),
        of("resnet18_blur2", "quickstart", "blur", 2.3, *blurred, "--data.sigma=2"),
        of("resnet18_randlabel", "quickstart_randlabel", "control", 4.0, *memorising),
        of("resnet18_noise", "quickstart_noise", "control", 2.3, *_ENDS),
        of("resnet18_adv", "quickstart", "adv", 2.2, *adversarial, init_from="resnet18_clean", is_extended=True),
    )
    return Scale("laptop", "drawn shapes, narrow networks, 2 cores", conditions, sets)


def _cifar_small() -> Scale:
    sets = Sets.of("cifar", 32)
    grid = _grid(sets)
    short = (
        *("--model.width=16", "--trainer.precision=bf16-mixed", "--data.num_workers=0"),
        *("--rprofile.protocol=quick", _UNSPARED),
    )

    def of(name: str, config: str, probes: str, cost: float, *options: str, **more: Any) -> Condition:
        return Condition(name, f"{config}.yaml", (*short, *options), sets.test, grid[probes], cost=cost, **more)

    steps = ("--trainer.max_epochs=-1", "--trainer.max_steps=2500")
    formation = _formation(2500, (0.03, 0.1, 0.33))  # a measurement of 32 images takes as long as 100 steps
    memorising = ("--data.subset=5000", "--model.lr=0.05", "--trainer.max_epochs=40", *_ENDS)
    adversarial = (
        *("--model.attack_steps=2", "--model.lr=0.05", "--model.eval_batches=8"),
        *("--trainer.max_epochs=-1", "--trainer.max_steps=350", *_ENDS),
    )
    conditions = (
        of("resnet18_clean", "resnet18_clean", "compared", 12.0, *steps, *formation),
        of("vgg16_clean", "vgg16_clean", "clean", 12.0, *steps, *formation, "--model.lr=0.02"),
        of("wrn_clean", "wrn_clean", "clean", 20.0, *steps, *formation),
        of("resnet18_blur1", "resnet18_blur1", "blur", 9.0, *steps, *_ENDS),
        of("resnet18_blur2", "resnet18_blur2", "blur", 9.0, *steps, *_ENDS),
        of("resnet18_randlabel", "resnet18_randlabel", "control", 9.0, *memorising),
        of("resnet18_noise", "resnet18_noise", "control", 9.0, *memorising),
        of(
            *("resnet18_adv_l2_05", "resnet18_adv_l2_05", "adv", 6.0, *adversarial),
            init_from="resnet18_clean",
            is_extended=True,
        ),
    )
    return Scale("cifar-small", "CIFAR-10, width 16, 2,500 steps a run", conditions, sets, needs_data=True)


_GFLOP = {"resnet18": 1.11, "vgg16": 0.63, "wrn": 10.5}  # of one image, forward, at full width
_GPU = 20e12 * 60  # FLOP a minute that a run is taken to sustain; an assumption, for an estimate of hours
_PGD7 = 17 / 3  # passes of a step, seven forward and backward to the pixels more, over those of a clean one


def _paper() -> Scale:
    sets = Sets.of("cifar", 32)
    grid = _grid(sets)

    def of(name: str, probes: str, n_profiles: int, *options: str, factor: float = 1.0, **more: Any) -> Condition:
        flop = 1e9 * _GFLOP[name.partition("_")[0]]
        profiles = (n_profiles + len(grid[probes])) * 32 * 36_000  # images forward; a product counts as three
        cost = flop * (3 * factor * 39_100 * 128 + profiles) / _GPU
        words = ("--rprofile.protocol=paper", _UNSPARED, *options)
        return Condition(name, f"{name}.yaml", words, sets.test, grid[probes], cost=cost, **more)

    adversarial = ("l2_025", "l2_05", "l2_1", "linf_8")
    names = [*(f"resnet18_adv_{attack}" for attack in adversarial), "vgg16_adv_l2_05", "wrn_adv_l2_05"]
    conditions = (
        of("resnet18_clean", "compared", 20),
        of("vgg16_clean", "clean", 20),
        of("wrn_clean", "clean", 20),
        *(of(f"resnet18_blur{sigma}", "blur", 2, *_ENDS) for sigma in (1, 2)),
        *(of(f"{network}_randlabel", "control", 2, *_ENDS) for network in _GFLOP),
        *(of(f"{network}_noise", "control", 2, *_ENDS) for network in ("resnet18", "wrn")),
        *(of(name, "adv", 2, *_ENDS, factor=_PGD7, is_extended=True) for name in names),
    )
    summary = "the paper's configs; meant for a GPU"
    unit = "one GPU that sustains 20 TFLOP/s (an estimate from FLOPs)"
    return Scale("paper", summary, conditions, sets, "paper", threads=None, needs_data=True, unit=unit)


SCALES = MappingProxyType({scale.name: scale for scale in (_laptop(), _cifar_small(), _paper())})
