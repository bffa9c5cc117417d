"""A checkpoint becomes the module that was saved, and only a class that the user knows is built."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml
from torch import nn

from lit_bump import ClassifierModule
from lit_bump.errors import LitBumpError
from lit_bump.runs import SavedRun, load_module
from lit_bump.runs.checkpoint_file import read_checkpoint
from tests.runs.tiny_saved_run import Elementwise, saved_by_hand


class Net(nn.Module):
    """A network that a config gives as a class."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.head = nn.Linear(size, 2)


def same_weights(module: nn.Module, path: Path) -> bool:
    """Return whether a module has the weights of a checkpoint."""
    saved, own = read_checkpoint(path)["state_dict"], module.state_dict()
    return saved.keys() == own.keys() and all(torch.equal(saved[name], own[name]) for name in saved)


def test_weights_are_those_of_the_step(run_folder: Path) -> None:
    for step, path in SavedRun.find(run_folder).checkpoints().items():
        module = load_module(run_folder, step)
        assert isinstance(module, ClassifierModule)
        assert same_weights(module, path)
        assert same_weights(load_module(path), path)
        assert not any(part.training for part in module.modules())


def test_the_last_step_is_loaded_by_default(run_folder: Path) -> None:
    assert same_weights(load_module(run_folder), run_folder / "checkpoints" / "step_00000002.ckpt")


def test_trained_weights_are_loaded_where_averaged_ones_stand_beside_them(tmp_path: Path) -> None:
    module, average = Elementwise("cosine"), Elementwise("cosine")
    with torch.no_grad():
        average.weight.fill_(0.5)
    path = saved_by_hand(tmp_path, average, current_model_state=module.state_dict(), averaging_state={})
    loaded = load_module(path, model=Elementwise)
    assert torch.equal(loaded.state_dict()["weight"], module.weight)


def test_building_draws_from_no_global_stream(run_folder: Path) -> None:
    before = torch.get_rng_state()
    load_module(run_folder)
    assert torch.equal(before, torch.get_rng_state())


def test_a_step_without_checkpoint_is_refused(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match=r"no checkpoint of step 7 \(valid: 0, 1, 2\)"):
        load_module(run_folder, 7)
    (tmp_path / "empty" / "checkpoints").mkdir(parents=True)
    with pytest.raises(LitBumpError, match="holds no checkpoints: train with"):
        load_module(tmp_path / "empty")


def test_a_plain_checkpoint_needs_the_class(tmp_path: Path) -> None:
    path = saved_by_hand(tmp_path, Elementwise("cosine"))
    with pytest.raises(LitBumpError, match="does not name its class: give --model CLASS"):
        load_module(path)
    for model in (Elementwise, "tests.runs.tiny_saved_run.Elementwise"):
        module = load_module(path, model=model)
        assert getattr(module, "kind", None) == "cosine"


def test_a_class_that_only_the_checkpoint_names_is_not_imported(tmp_path: Path) -> None:
    hparams = {"_class_path": "unheard_of.Module", "_instantiator": "lightning.pytorch.cli.instantiate_module"}
    path = saved_by_hand(tmp_path, Elementwise(), hyper_parameters=hparams)
    with pytest.raises(LitBumpError, match=r"names the class unheard_of\.Module, which is not imported: give --model"):
        load_module(path)
    hparams["_class_path"] = "os.system"
    with pytest.raises(LitBumpError, match="give --model"):
        load_module(saved_by_hand(tmp_path, Elementwise(), hyper_parameters=hparams))


def test_a_class_that_is_imported_may_be_named_by_the_checkpoint(tmp_path: Path) -> None:
    hparams = {"_class_path": f"{Elementwise.__module__}.Elementwise", "kind": "cosine"}
    hparams["_instantiator"] = "lightning.pytorch.cli.instantiate_module"
    module = load_module(saved_by_hand(tmp_path, Elementwise(), hyper_parameters=hparams))
    assert getattr(module, "kind", None) == "cosine"


def test_what_the_checkpoint_lacks_comes_from_the_config(tmp_path: Path) -> None:
    network = {"class_path": f"{__name__}.Net", "init_args": {"size": 3}}
    arguments = {"network": network, "num_classes": 2, "lr": 0.5}
    config = {"model": {"class_path": "lit_bump.ClassifierModule", "init_args": arguments}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    saved = ClassifierModule(Net(3), num_classes=2, lr=0.25)
    module = load_module(saved_by_hand(tmp_path, saved))
    assert isinstance(module, ClassifierModule)
    assert isinstance(module.network, Net)
    assert module.lr == 0.25  # the checkpoint knows better than the config


def test_weights_that_do_not_fit_end_in_one_line(run_folder: Path) -> None:
    path = run_folder / "config.yaml"
    saved = saved_by_hand(run_folder, ClassifierModule(width=4), hyper_parameters={"width": 8, "network": "resnet18"})
    with pytest.raises(LitBumpError, match=r"^[^\n]*cannot be loaded as ClassifierModule: RuntimeError: [^\n]*$"):
        load_module(saved)
    path.write_text(path.read_text(encoding="utf-8").replace("ClassifierModule", "Nope"), encoding="utf-8")
    with pytest.raises(LitBumpError, match=r"class 'lit_bump\.Nope' cannot be imported"):
        load_module(run_folder)
