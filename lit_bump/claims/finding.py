"""What was found about one claim: expected, measured, and whether it holds. Plain values, for every kind of report.

Standard library only.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["holds", "does not hold", "undecided"]
Part = tuple[str, Verdict]  # one piece of evidence in words, and what it says of the claim


@dataclass(frozen=True)
class Finding:
    """Hold the row of one claim.

    Args:
        claim: its number, ``C1`` to ``C7``.
        statement: the claim, in one sentence.
        where: in the paper.
        expected: what would show it.
        measured: what was found, with intervals.
        verdict: ``holds``, ``does not hold``, or ``undecided`` where the measurement cannot tell.
        reason: why the verdict is not ``holds``; empty if it is.

    """

    claim: str
    statement: str
    where: str
    expected: str
    measured: tuple[str, ...]
    verdict: Verdict
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**asdict(self), "measured": list(self.measured)}


def overall(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict on a claim that is made of several parts.

    Args:
        verdicts: of the parts.

    Returns:
        One part that does not hold decides; then one that is undecided; without parts nothing is decided.

    Example:
        >>> overall(["holds", "undecided"]), overall(["undecided", "does not hold"]), overall([])
        ('undecided', 'does not hold', 'undecided')

    """
    if "does not hold" in verdicts:
        return "does not hold"
    return "undecided" if "undecided" in verdicts or not verdicts else "holds"
