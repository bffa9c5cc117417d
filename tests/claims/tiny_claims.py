"""A script for the tests: two tiny conditions, the second starting from the first, trained, measured and judged.

Used as ``python tests/claims/tiny_claims.py OUT``, so that it can be killed at any moment and started again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from lit_bump.claims.condition import Condition
from lit_bump.claims.scale import Scale
from lit_bump.claims.verdicts import Sets
from lit_bump.cli_claims import check_claims

SETS = Sets.of("shapes", 2)
TINY = (
    "--model.width=4",
    "--data.n_train=96",
    "--data.n_test=32",
    "--data.batch_size=16",
    "--trainer.max_epochs=3",
    "--trainer.accelerator=cpu",
    "--rprofile.figures=false",
    "--rprofile.max_share=null",
    "--rprofile.protocol={n_pairs: 2, etas: [0.01, 0.1, 1.0, 3.0, 10.0]}",
)
PROTOCOL = {"n_pairs": 2, "etas": [0.01, 0.1, 1.0, 3.0, 10.0]}
ADVERSARIAL = ("--model=AdversarialClassifierModule", "--model.attack_steps=1", "--model.eval_steps=1")


def tiny_scale() -> Scale:
    """Return a scale of seconds."""
    clean = Condition("resnet18_clean", "quickstart.yaml", TINY, SETS.test, (SETS.test, SETS.train))
    words = (*ADVERSARIAL, *TINY)
    robust = Condition("resnet18_adv", "quickstart.yaml", words, SETS.test, (SETS.test,), init_from="resnet18_clean")
    return Scale("tiny", "for tests", (clean, robust), SETS)


if __name__ == "__main__":
    _, failed = check_claims(tiny_scale(), Path(sys.argv[1]), console=Console(width=200), jobs=2, protocol=PROTOCOL)
    sys.exit(bool(failed))
