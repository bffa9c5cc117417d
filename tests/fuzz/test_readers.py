"""Broken and hostile files give a value or the documented error; ``scripts/fuzz.py`` tries many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from lit_bump.callbacks.formation_table import read_table, write_table
from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile
from scripts.fuzz import Reader, outcomes, readers

READERS = readers()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_nothing_else_comes_of_it(reader: Reader) -> None:
    bad = {outcome for outcome, _ in outcomes(reader, 250, seed=1) if outcome not in ("value", "documented error")}
    assert not bad
    first = next(outcome for outcome, _ in outcomes(reader, 1))
    assert first == "value"  # the harness reads what is valid


def test_an_archive_that_unpacks_to_more_than_a_profile_is_refused(tmp_path: Path) -> None:
    npz = next(one for one in READERS if one.name.startswith("profile"))
    path = tmp_path / "a.npz"
    for seed, says in ((npz.seeds[1], "Unable to allocate|cannot be read"), (npz.seeds[2], "would unpack to")):
        path.write_bytes(seed)
        with pytest.raises(LitBumpError, match=says):
            Profile.load(path)


def test_a_table_that_is_none_is_named_when_read_and_made_anew_when_written(tmp_path: Path) -> None:
    path = tmp_path / "formation.csv"
    path.write_bytes(b"step,probe\n\xff\xfe,p\n")
    with pytest.raises(LitBumpError, match=r"no table of profiles .* remove it"):
        read_table(path)
    write_table(path, [])
    assert read_table(path) == []
