"""What a config names is imported only where it is of the right kind, and what it refuses is said in one line."""

from __future__ import annotations

import pytest
import torch
from lightning.pytorch import LightningDataModule

from lit_bump import NoiseShapesDataModule
from lit_bump.errors import LitBumpError
from lit_bump.runs.configured_class import built, described, imported_class


def test_a_data_module_is_built_with_its_arguments() -> None:
    before = torch.get_rng_state()
    made = built({"class_path": "lit_bump.NoiseShapesDataModule", "init_args": {"noise_seed": 3}}, LightningDataModule)
    assert isinstance(made, NoiseShapesDataModule)
    assert made.noise_seed == 3
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("class_path", "message"),
    [
        ("no_such.Data", r"'no_such\.Data' cannot be imported"),
        ("lit_bump.Shapes", r"'lit_bump\.Shapes' cannot be imported"),
        ("lit_bump.Profile", r"'lit_bump\.Profile' is no LightningDataModule"),
        ("os.system", r"'os\.system' is no LightningDataModule"),
    ],
)
def test_another_class_is_refused(class_path: str, message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        imported_class(class_path, LightningDataModule)


def test_refused_arguments_end_in_one_line() -> None:
    section = {"class_path": "lit_bump.ShapesDataModule", "init_args": {"n_train": 0}}
    with pytest.raises(LitBumpError, match=r"^ShapesDataModule cannot be built[^\n]*n_train=0[^\n]*$"):
        built(section, LightningDataModule)


def test_a_long_error_is_cut() -> None:
    assert described(ValueError("a\nb")) == "ValueError: a b"
    assert len(described(RuntimeError("x" * 5000))) < 300
