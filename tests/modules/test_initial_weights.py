"""Laws of fine-tuning: it starts from the trained weights, exactly, and from no others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lit_bump.errors import LitBumpError
from lit_bump.modules import ClassifierModule
from lit_bump.modules.initial_weights import load_network
from lit_bump.networks import build_network


def network(seed: int = 0, width: int = 4) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build_network("resnet18", num_classes=10, width=width)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    trained = ClassifierModule("resnet18", width=4)
    trained.network.load_state_dict(network(1).state_dict())
    path = tmp_path / "trained.ckpt"
    torch.save({"state_dict": trained.state_dict(), "pytorch-lightning_version": "2.6.4"}, path)
    return path


def test_weights_and_buffers_are_those_of_the_checkpoint(checkpoint: Path) -> None:
    mine = network(0)
    load_network(mine, checkpoint)
    expected = network(1).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in mine.state_dict().items())


def test_setup_loads_for_training_alone(checkpoint: Path) -> None:
    module = ClassifierModule("resnet18", width=4, init_from=str(checkpoint))
    name, tensor = next(iter(module.network.named_parameters()))
    before = tensor.detach().clone()
    module.setup("test")
    assert torch.equal(module.network.state_dict()[name], before)
    module.setup("fit")
    assert torch.equal(module.network.state_dict()[name], network(1).state_dict()[name])


def test_weights_are_taken_once_and_never_over_those_of_a_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    module = ClassifierModule("resnet18", width=4, init_from=str(checkpoint))
    module.setup("fit")
    with torch.no_grad():
        for parameter in module.network.parameters():
            parameter.add_(1.0)  # what training would change
    learnt = {name: tensor.clone() for name, tensor in module.network.state_dict().items()}
    module.setup("fit")
    assert all(torch.equal(tensor, learnt[name]) for name, tensor in module.network.state_dict().items())
    saved = tmp_path / "tuned.ckpt"
    hparams = dict(module.hparams)
    torch.save(
        {"state_dict": module.state_dict(), "hyper_parameters": hparams, "pytorch-lightning_version": "2.6.4"}, saved
    )
    again = ClassifierModule.load_from_checkpoint(saved, weights_only=True)
    checkpoint.unlink()  # the source may be gone by then
    again.setup("fit")
    assert all(torch.equal(tensor, learnt[name]) for name, tensor in again.network.state_dict().items())


def test_another_network_is_refused_and_nothing_is_changed(checkpoint: Path) -> None:
    mine = network(0, width=8)
    before = {name: tensor.clone() for name, tensor in mine.state_dict().items()}
    with pytest.raises(LitBumpError, match=r"is of another network: .* has shape .* there, .* here; give the network"):
        load_network(mine, checkpoint)
    assert all(torch.equal(tensor, before[name]) for name, tensor in mine.state_dict().items())


def test_missing_file_names_the_nearest(checkpoint: Path) -> None:
    with pytest.raises(LitBumpError, match=r"is no file \(did you mean 'trained.ckpt'\?\)"):
        load_network(network(), checkpoint.with_name("trianed.ckpt"))
    with pytest.raises(LitBumpError, match=r"is no file"):
        load_network(network(), checkpoint.parent / "nowhere" / "a.ckpt")


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"PK\x03\x04 cut off"])
def test_junk_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "junk.ckpt"
    path.write_bytes(content)
    with pytest.raises(LitBumpError, match=r"is no checkpoint of a ClassifierModule \(.+\)\Z"):
        load_network(network(), path)
