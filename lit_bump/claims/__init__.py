"""The paper's seven claims about trained CIFAR networks: their conditions, trained and measured, and what they show.

Paper: section 3, figs. 1c and 2. Imports ``runs`` and ``figures``; the training command is handed in. What counts as
evidence for a claim stands in ``verdicts``; a claim that does not hold is a result, not an error.
"""

from lit_bump.claims.condition import Condition
from lit_bump.claims.finding import Finding
from lit_bump.claims.scale import SCALES, Scale
from lit_bump.claims.verdicts import judge

__all__ = ["SCALES", "Condition", "Finding", "Scale", "judge"]
