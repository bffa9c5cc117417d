"""No file can make a reader do more than give a value or its documented error: no other exception, warning or hang.

``python scripts/fuzz.py`` tries many more inputs. A fault names its input: ``fuzzed`` with that seed makes it again.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from lit_bump.encoders import weight_file
from tests.fuzz.readers import READERS, Tally, fuzzed

N_INPUTS = 150
MOST_MEMORY = 2**30  # bytes that trying one reader may add to the most that the process has held


@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_a_value_or_its_documented_error(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_file, "_MOST_ENTRIES", 20_000)  # a million checked at run time take half a minute
    before, tally = _most_memory(), Tally()
    for tally in fuzzed(READERS[name], tmp_path, N_INPUTS, seed=0):  # noqa: B007
        pass
    assert not tally.faults, "\n".join(tally.faults[:20])
    assert tally.inputs >= N_INPUTS
    assert _most_memory() - before < MOST_MEMORY
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input"]  # nothing outside of the folder of the inputs


def _most_memory() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used
