"""What the runs of all conditions have left: profiles by condition and probe set, and their final accuracies.

Paper: section 3. Imports ``measure``. Read from files alone, so that a table can be made again without a measurement.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lit_bump.claims.condition import Condition
from lit_bump.measure import Formation, Profile, load_formation

RESULT = "result.json"  # written last: a condition that has one is finished


@dataclass(frozen=True, eq=False)
class Evidence:
    """Hold the measurements of some conditions.

    Args:
        formations: by condition, then probe set.
        metrics: final metrics of each condition, such as ``train/accuracy``.
        facts: of each condition, for the records: seconds, versions, command.

    """

    formations: Mapping[str, Mapping[str, Formation]]
    metrics: Mapping[str, Mapping[str, float]]
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def first(self, condition: str, probe: str) -> Profile | None:
        """Return the profile at initialisation, or None where there is none.

        Args:
            condition: its name.
            probe: name of the probe set.

        Returns:
            The profile of step 0.

        """
        formation = self.formations.get(condition, {}).get(probe)
        return formation.profiles[0] if formation is not None and formation.steps[:1] == (0,) else None

    def last(self, condition: str, probe: str) -> Profile | None:
        """Return the profile at the end of training, or None where there is none.

        Args:
            condition: its name.
            probe: name of the probe set.

        Returns:
            The profile of the last step.

        """
        formation = self.formations.get(condition, {}).get(probe)
        return formation.profiles[-1] if formation is not None and len(formation) else None


def load_evidence(folder: Path, conditions: Iterable[Condition]) -> Evidence:
    """Return what the finished conditions in a folder have left.

    Args:
        folder: of all conditions.
        conditions: those that are asked for.

    Returns:
        The evidence; a condition that has not ended is left out.

    """
    formations: dict[str, Mapping[str, Formation]] = {}
    metrics: dict[str, Mapping[str, float]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for condition in conditions:
        result = read_result(folder / condition.name)
        if result is not None:
            formations[condition.name] = load_formation(folder / condition.name / result["run"])
            metrics[condition.name] = result["metrics"]
            facts[condition.name] = {key: value for key, value in result.items() if key != "metrics"}
    return Evidence(formations, metrics, facts)


def read_result(folder: Path) -> dict[str, Any] | None:
    """Return the result of a finished condition.

    Args:
        folder: of the condition.

    Returns:
        Plain values, or None if it is not finished.

    """
    path = folder / RESULT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
