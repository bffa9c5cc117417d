"""Laws of the classifier module: the recipe, the tags, the seam, resuming, and checkpoints that load anywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningDataModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.cli import LightningCLI
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from lit_bump.errors import LitBumpError
from lit_bump.modules.classifier import ClassifierModule, cosine_to_zero

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have a `val_dataloader`"),
]
N_IMAGES, BATCH = 24, 8


def random_set(n: int = N_IMAGES) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % 10
    images = torch.rand(n, 3, 32, 32, generator=generator) * 0.5 + labels.view(-1, 1, 1, 1) / 20
    return TensorDataset(images, labels)


def loader(data: Dataset[Any] | None = None) -> DataLoader[Any]:
    return DataLoader(random_set() if data is None else data, batch_size=BATCH)


def trainer(**arguments: Any) -> Trainer:
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return Trainer(**{"accelerator": "cpu", **quiet, **arguments})


def small(**arguments: Any) -> ClassifierModule:
    torch.manual_seed(0)
    return ClassifierModule(**{"network": "resnet18", "width": 4, **arguments})


class LearningRates(Callback):
    """Keep the learning rate of every update, and the one after the last."""

    def __init__(self) -> None:
        self.used: list[float] = []
        self.last = -1.0

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: Any, optimizer: torch.optim.Optimizer) -> None:
        """Note the rate of an update."""
        self.used.append(optimizer.param_groups[0]["lr"])

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Note the rate after the last update."""
        self.last = trainer.optimizers[0].param_groups[0]["lr"]


class Tags(Callback):
    """Keep every tag that reaches the trainer's metrics."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Note the tags of a step."""
        self.seen |= set(trainer.logged_metrics)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Note the tags of an epoch."""
        self.seen |= set(trainer.logged_metrics)


class Data(LightningDataModule):
    """The random set, for the command line."""

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the images in their order."""
        return loader()


# --- the recipe ---------------------------------------------------------------------------------------------------


def test_cosine_is_exactly_one_at_the_start_and_zero_from_the_end_on() -> None:
    for total in (1, 2, 3, 7, 39100):
        assert cosine_to_zero(0, total) == 1.0
        assert cosine_to_zero(total, total) == cosine_to_zero(total + 5, total) == 0.0
    assert cosine_to_zero(10, 20) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "n_updates"),
    [
        ({"max_epochs": 2}, 6),
        ({"max_epochs": 2, "accumulate_grad_batches": 2}, 4),
        ({"max_steps": 4}, 4),
        ({"max_epochs": -1, "max_steps": 5}, 5),
        ({"max_epochs": 1, "limit_train_batches": 1}, 1),
    ],
    ids=str,
)
def test_learning_rate_is_the_cosine_of_each_update_and_ends_at_zero(arguments: dict[str, Any], n_updates: int) -> None:
    rates = LearningRates()
    trainer(callbacks=[rates], **arguments).fit(small(lr=0.05), loader())
    expected = [0.05 * (1 + math.cos(math.pi * step / n_updates)) / 2 for step in range(n_updates)]
    assert rates.used == pytest.approx(expected, rel=1e-12)
    assert rates.last == 0.0


def test_optimizer_is_sgd_without_nesterov_with_decay_on_everything() -> None:
    module = small(lr=0.3, momentum=0.8, weight_decay=0.01)
    runner = trainer(max_steps=1)
    runner.fit(module, loader())
    (optimizer,) = runner.optimizers
    assert isinstance(optimizer, torch.optim.SGD)
    (group,) = optimizer.param_groups
    assert (group["momentum"], group["weight_decay"], group["nesterov"]) == (0.8, 0.01, False)
    assert {id(parameter) for parameter in group["params"]} == {id(parameter) for parameter in module.parameters()}


def test_a_run_equals_the_recipe_written_out() -> None:
    module, twin = small(lr=0.05), small(lr=0.05)
    trainer(max_epochs=2).fit(module, loader())
    network = twin.network.train()
    parameters = list(network.parameters())
    momenta = [torch.zeros_like(parameter) for parameter in parameters]
    for step, (images, labels) in enumerate([*loader(), *loader()]):
        images = images.contiguous(memory_format=torch.channels_last)
        gradients = torch.autograd.grad(nn.functional.cross_entropy(network(images), labels), parameters)
        with torch.no_grad():
            for parameter, momentum, gradient in zip(parameters, momenta, gradients, strict=True):
                momentum.mul_(0.9).add_(gradient + 5e-4 * parameter)
                parameter.sub_(0.05 * cosine_to_zero(step, 6) * momentum)
    for key, value in network.state_dict().items():
        assert torch.allclose(module.network.state_dict()[key], value, atol=1e-5), key


@pytest.mark.parametrize("max_epochs", [-1, 3])
def test_unknown_length_is_refused_with_the_cure(max_epochs: int) -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            yield from zip(*random_set().tensors, strict=True)

    data = loader() if max_epochs == -1 else loader(Stream())
    with pytest.raises(LitBumpError, match=r"the length of the run, which is unknown: set trainer\.max_steps"):
        trainer(max_epochs=max_epochs).fit(small(), data)
    trainer(max_epochs=max_epochs, max_steps=2).fit(small(), data)


def test_label_smoothing_is_in_the_training_loss_alone() -> None:
    plain, smooth = small(), small(label_smoothing=0.2)
    images, labels = next(iter(loader()))
    for module in (plain, smooth):
        module.log = lambda *_, **__: None  # type: ignore[method-assign]
    expected = nn.functional.cross_entropy(smooth(images), labels, label_smoothing=0.2)
    assert torch.allclose(smooth.training_step((images, labels), 0), expected)
    unsmoothed = nn.functional.cross_entropy(plain(images), labels)
    assert torch.equal(plain.training_step((images, labels), 0), unsmoothed)
    assert not torch.allclose(unsmoothed, expected)
    evaluated = [trainer().validate(small(label_smoothing=value), loader(), verbose=False) for value in (0.0, 0.2)]
    assert evaluated[0] == evaluated[1]


# --- what it logs and returns -------------------------------------------------------------------------------------


def test_tags_are_lower_case_with_slashes() -> None:
    tags = Tags()
    runner = trainer(max_epochs=1, callbacks=[tags], log_every_n_steps=1)
    module = small()
    runner.fit(module, loader(), loader())
    (tested,) = runner.test(module, loader(), verbose=False)
    assert tags.seen | set(tested) == {
        "train/loss", "train/loss_step", "train/accuracy", "val/loss", "val/accuracy", "test/loss", "test/accuracy",
    }  # fmt: skip
    assert {"train/loss", "train/accuracy"} <= set(runner.callback_metrics) | tags.seen


def test_evaluation_is_the_mean_over_all_images_whatever_the_last_batch() -> None:
    module, data = small().eval(), random_set(N_IMAGES - 3)
    (metrics,) = trainer().test(module, loader(data), verbose=False)
    images, labels = data.tensors
    with torch.no_grad():
        logits = module(images)
    assert metrics["test/accuracy"] == pytest.approx((logits.argmax(1) == labels).float().mean().item())
    assert metrics["test/loss"] == pytest.approx(nn.functional.cross_entropy(logits, labels).item(), rel=1e-5)


def test_learns_a_small_set_by_heart() -> None:
    module = small(lr=0.05, weight_decay=0.0)
    trainer(max_epochs=15).fit(module, loader())
    (metrics,) = trainer().test(module, loader(), verbose=False)
    assert metrics["test/accuracy"] > 0.9


def test_prediction_is_class_probabilities_with_or_without_labels() -> None:
    module, (images, labels) = small().eval(), next(iter(loader()))
    with torch.no_grad():
        probabilities = module.predict_step([images, labels], 0)
        assert torch.equal(probabilities, module.predict_step(images, 0))
        assert torch.allclose(probabilities, module(images).softmax(1))
    assert torch.allclose(probabilities.sum(1), torch.ones(BATCH))


def test_training_images_is_the_seam() -> None:
    class Black(ClassifierModule):
        def training_images(self, batch: Sequence[Tensor]) -> Tensor:
            return torch.zeros_like(batch[0])

    torch.manual_seed(0)
    black, plain = Black(width=4), small()
    images, labels = random_set().tensors
    blank = loader(TensorDataset(torch.zeros_like(images), labels))
    trainer(max_steps=2).fit(black, loader())
    trainer(max_steps=2).fit(plain, blank)
    assert all(torch.equal(value, plain.state_dict()[key]) for key, value in black.state_dict().items())
    seen = trainer().test(black, loader(), verbose=False)[0]["test/loss"]
    assert seen != trainer().test(black, blank, verbose=False)[0]["test/loss"]


def test_features_are_the_networks() -> None:
    module, (images, _) = small(channels_last=False).eval(), next(iter(loader()))
    assert torch.equal(module.forward_features(images), module.network.forward_features(images))  # type: ignore[operator]
    assert torch.equal(module(images), module.network(images))


# --- precision and memory format ----------------------------------------------------------------------------------


def test_channels_last_changes_the_layout_and_not_the_result() -> None:
    images, _ = next(iter(loader()))
    last, first = small().eval(), small(channels_last=False).eval()
    assert last.network.conv1.weight.is_contiguous(memory_format=torch.channels_last)  # type: ignore[operator, union-attr]
    assert first.network.conv1.weight.is_contiguous()  # type: ignore[operator, union-attr]
    assert torch.allclose(last(images), first(images), atol=1e-5)


def test_layout_survives_training_and_loading(tmp_path: Path) -> None:
    runner, module = trainer(max_steps=1), small()
    runner.fit(module, loader())
    runner.save_checkpoint(tmp_path / "last.ckpt")
    loaded = ClassifierModule.load_from_checkpoint(tmp_path / "last.ckpt")
    for trained in (module, loaded):
        weight = trained.network.layer1[0].conv1.weight  # type: ignore[union-attr, index]
        assert weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true", "64-true"])
def test_trains_and_predicts_in_each_precision(precision: Any) -> None:
    module = small()
    runner = trainer(max_epochs=1, precision=precision)
    runner.fit(module, loader(), loader())
    assert math.isfinite(runner.callback_metrics["val/loss"])
    predictions = runner.predict(module, loader())
    assert predictions is not None
    assert isinstance(predictions[0], Tensor)
    assert predictions[0].dtype == (torch.float64 if precision == "64-true" else torch.float32)


# --- checkpoints --------------------------------------------------------------------------------------------------


def test_resumed_run_ends_as_the_straight_one(tmp_path: Path) -> None:
    straight, broken, resumed = small(), small(), small(width=4)
    trainer(max_epochs=4).fit(straight, loader())

    class SaveAndStop(Callback):
        def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
            if trainer.current_epoch == 1:
                trainer.save_checkpoint(tmp_path / "half.ckpt")
                trainer.should_stop = True

    trainer(max_epochs=4, callbacks=[SaveAndStop()]).fit(broken, loader())
    rates = LearningRates()
    trainer(max_epochs=4, callbacks=[rates]).fit(resumed, loader(), ckpt_path=tmp_path / "half.ckpt")
    assert len(rates.used) == 6
    assert rates.last == 0.0
    for key, value in straight.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], value), key
    assert any(not torch.equal(broken.state_dict()[key], value) for key, value in straight.state_dict().items())


def test_checkpoint_holds_plain_types_even_from_numpy(tmp_path: Path) -> None:
    module = small(lr=np.float64(0.05), num_classes=10)
    runner = trainer(max_steps=1)
    runner.fit(module, loader())
    runner.save_checkpoint(tmp_path / "last.ckpt")
    saved = torch.load(tmp_path / "last.ckpt")["hyper_parameters"]
    assert saved == {
        "network": "resnet18", "width": 4, "num_classes": 10, "lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4,
        "label_smoothing": 0.0, "channels_last": True, "init_from": None,
    }  # fmt: skip
    assert {type(value) for value in saved.values()} <= {str, int, float, bool, type(None)}


@pytest.mark.filterwarnings("ignore::jsonargparse._deprecated.JsonargparseDeprecationWarning")  # Lightning's own calls
def test_checkpoint_of_the_command_line_loads_in_a_fresh_process(
    tmp_path: Path, run_python: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["lit_bump"])
    command = LightningCLI(
        ClassifierModule, Data, save_config_callback=None, run=False, seed_everything_default=0,
        trainer_defaults={
            "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
            "enable_model_summary": False, "max_steps": 2,
        },
        args=["--model.network=vgg16", "--model.width=4", "--model.lr=1e-1", "--model.num_classes=11"],
    )  # fmt: skip
    command.trainer.fit(command.model, command.datamodule)
    command.trainer.save_checkpoint(tmp_path / "last.ckpt")
    torch.save(command.model.eval()(torch.full((1, 3, 32, 32), 0.25)), tmp_path / "logits.pt")
    program = """
import json, torch
from lit_bump.modules import ClassifierModule
checkpoint = torch.load("last.ckpt")
module = ClassifierModule.load_from_checkpoint("last.ckpt").eval()
same = torch.allclose(module(torch.full((1, 3, 32, 32), 0.25)), torch.load("logits.pt"), atol=1e-6)
print(json.dumps([checkpoint["hyper_parameters"], same]))
"""
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr
    saved, same = json.loads(done.stdout.splitlines()[-1])
    assert same
    assert (saved["network"], saved["width"], saved["lr"], saved["num_classes"]) == ("vgg16", 4, 0.1, 11)
    assert all(value is None or isinstance(value, (str, int, float, bool)) for value in saved.values())


def test_network_given_as_a_module_is_given_again_on_loading(tmp_path: Path) -> None:
    def network() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))

    runner, module = trainer(max_steps=1), ClassifierModule(network())
    runner.fit(module, loader())
    runner.save_checkpoint(tmp_path / "last.ckpt")
    assert "network" not in torch.load(tmp_path / "last.ckpt")["hyper_parameters"]
    loaded = ClassifierModule.load_from_checkpoint(tmp_path / "last.ckpt", network=network())
    assert all(torch.equal(value, loaded.state_dict()[key]) for key, value in module.state_dict().items())
    with pytest.raises(LitBumpError, match="this checkpoint's network was given as a module: pass it again"):
        ClassifierModule.load_from_checkpoint(tmp_path / "last.ckpt")


# --- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lr": 0.0}, "lr=0.0: give a learning rate above 0"),
        ({"lr": float("nan")}, "lr=nan: give a learning rate above 0"),
        ({"lr": float("inf")}, "lr=inf: give a learning rate above 0"),
        ({"momentum": 1.0}, r"momentum=1.0: give a value in \[0, 1\)"),
        ({"momentum": -0.1}, r"momentum=-0.1: give a value in \[0, 1\)"),
        ({"weight_decay": -1e-4}, "weight_decay=-0.0001: give a value of at least 0"),
        ({"label_smoothing": 1.0}, r"label_smoothing=1.0: give a value in \[0, 1\)"),
        ({"num_classes": 1}, "num_classes=1: give at least 2"),
        ({"network": "resnet81"}, r"there is no network 'resnet81' \(did you mean 'resnet18'\?\)"),
        ({"width": 0}, "give a width of at least 1"),
        ({"network": nn.Flatten(), "width": 4}, "width=4 is for networks given by name: build Flatten at that width"),
    ],
    ids=str,
)
def test_bad_values_are_named_with_their_cure(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        ClassifierModule(**{"network": "resnet18", "width": None, **arguments})


def test_wrong_logits_are_named_at_the_first_step() -> None:
    module = ClassifierModule(nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 7)))
    with pytest.raises(
        LitBumpError, match=r"Sequential returns shape \(8, 7\), not logits of shape \(8, 10\): check num"
    ):
        trainer(max_steps=1).fit(module, loader())

    class Pair(nn.Module):
        def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
            return images, images

    with pytest.raises(LitBumpError, match="Pair returns tuple, not logits"):
        ClassifierModule(Pair())(torch.rand(2, 3, 32, 32))


def test_network_without_features_says_so() -> None:
    module = ClassifierModule(nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10)))
    with pytest.raises(LitBumpError, match="Sequential has no forward_features: name the layer"):
        module.forward_features(torch.rand(1, 3, 32, 32))
