"""What the runs of all conditions have left: profiles by condition and probe set, and their final accuracies.

Paper: section 3. Imports ``measure``. Read from files alone, so that a table can be made again without a measurement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lit_bump.claims.condition import Condition
from lit_bump.measure import Formation, Profile, load_formation
from lit_bump.measure.formation import step_file

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
        """Return the profile at the end of training, or None where that step is not there.

        Args:
            condition: its name.
            probe: name of the probe set.

        Returns:
            The profile of the last step.

        """
        formation = self.formations.get(condition, {}).get(probe)
        if formation is None or not len(formation):
            return None
        end = self.facts.get(condition, {}).get("steps", formation.steps[-1])
        return formation.profiles[-1] if formation.steps[-1] == end else None  # never an earlier step in its place


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
        Plain values, or None if it is not finished, or what it says cannot be of a condition.

    """
    result = read_json(folder / RESULT)
    if result is None or not {"run", "checkpoint", "steps", "metrics"} <= result.keys():
        return None
    steps, metrics = result["steps"], result["metrics"]
    is_sound = _is_below(result["run"]) and _is_below(result["checkpoint"]) and isinstance(metrics, dict)
    is_sound = is_sound and isinstance(steps, int) and 0 <= steps < 2**63
    is_sound = is_sound and all(type(value) in (int, float) and abs(value) < 2.0**1000 for value in metrics.values())
    if not is_sound:
        return None
    return {**result, "metrics": {name: float(value) for name, value in metrics.items()}}


def is_finished(folder: Path, condition: Condition) -> bool:
    """Return whether a condition has its result, and all the profiles that were measured at its end.

    Args:
        folder: of all conditions.
        condition: which one.

    Returns:
        False also where a profile has been removed since: it is then measured again.

    """
    own = folder / condition.name
    result = read_result(own)
    if result is None:
        return False
    return all(step_file(own / result["run"], probe, result["steps"]).is_file() for probe in condition.probes)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file, or None where there is none, or none that can be read (a full disk).

    Args:
        path: the file.

    Returns:
        Plain values.

    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_below(name: Any) -> bool:
    """Return whether a name is that of a file or folder below the one that it is relative to, on any system."""
    parts = name.split("/") if isinstance(name, str) else [""]
    return all(part.strip(".") and len(part) <= 200 and not re.search(r"[\\:\0\ud800-\udfff]", part) for part in parts)
