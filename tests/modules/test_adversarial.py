"""Laws of adversarial training: what is attacked, what is left alone, and what robust accuracy means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from lit_bump.errors import LitBumpError
from lit_bump.modules import AdversarialClassifierModule, AdversarialMixin, ClassifierModule
from lit_bump.modules.adversarial import Method
from tests.conftest import RunPython

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have a `val_dataloader`"),
]
METHODS = ("pgd", "trades", "fast")


def images_and_labels(n: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % 3
    return (torch.rand(n, 3, 16, 16, generator=generator) * 0.4 + labels.view(-1, 1, 1, 1) / 5), labels


def loader(n: int = 16, batch_size: int = 8) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*images_and_labels(n)), batch_size=batch_size)


def trainer(**arguments: Any) -> Trainer:
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return Trainer(**{"accelerator": "cpu", "max_epochs": 1, **quiet, **arguments})


def small(**arguments: Any) -> AdversarialClassifierModule:
    torch.manual_seed(0)
    module = {"network": "resnet18", "width": 4, "num_classes": 3, "lr": 0.01}
    return AdversarialClassifierModule(**{**module, "attack_steps": 2, "eval_steps": 2, **arguments})


class Own(LightningModule):
    """A user's module, as it was before the mixin, but for its two calls."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, width), nn.ReLU(), nn.Linear(width, 3))

    def training_images(self, batch: Any) -> Tensor:
        """Return the images, the seam of the mixin."""
        images: Tensor = batch[0]
        return images

    def training_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return nn.functional.cross_entropy(logits, labels)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.net(images)
        return logits

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the loss of a batch."""
        return self.training_loss(self(self.training_images(batch)), batch[1])

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Log the accuracy of a batch."""
        self.log("val/accuracy", (self(batch[0]).argmax(dim=1) == batch[1]).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return plain SGD."""
        return torch.optim.SGD(self.parameters(), lr=0.05)


class OwnAdversarial(AdversarialMixin, Own):
    """The user's module, trained adversarially."""


def test_training_images_are_attacked_and_within_the_ball() -> None:
    batch = images_and_labels()
    for method in ("pgd", "fast"):
        module = small(method=method, eps=0.5)
        near = module.training_images(batch)
        moved = (near - batch[0]).flatten(1).norm(dim=1)
        assert bool((moved > 0.1).all() and (moved <= 0.5 * (1 + 1e-5)).all())
        module.eval()
        losses = [
            nn.functional.cross_entropy(module(images), batch[1], reduction="none") for images in (batch[0], near)
        ]
        assert float((losses[1] >= losses[0]).double().mean()) >= 0.9


def test_trades_sees_clean_images_and_adds_the_divergence() -> None:
    batch, module = images_and_labels(), small(method="trades", eps=0.5, beta=2.0)
    images = module.training_images(batch)
    assert torch.equal(images, batch[0])
    near = module._attacked
    assert near is not None
    module.eval()  # the same statistics in every pass
    logits = module(images)
    clean, moved = logits.log_softmax(dim=1), module(near).log_softmax(dim=1)
    divergence = (clean.exp() * (clean - moved)).sum(dim=1).mean()
    assert float(divergence.detach()) > 0
    expected = nn.functional.cross_entropy(logits, batch[1]) + 2 * divergence
    torch.testing.assert_close(module.training_loss(logits, batch[1]), expected)
    assert module._attacked is None  # nothing is left for the next step


@pytest.mark.parametrize(("method", "passes"), [("pgd", 1), ("fast", 1), ("trades", 2)])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_batch_statistics_move_once_for_every_training_pass(method: str, passes: int, mode: str) -> None:
    module = small(method=method, attack_mode=mode, attack_steps=7, eval_batches=0)
    trainer(max_steps=2, max_epochs=-1).fit(module, loader())
    norms = [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]
    assert {int(norm.get_buffer("num_batches_tracked")) for norm in norms} == {2 * passes}


def test_radius_zero_trains_as_the_clean_module_does() -> None:
    torch.manual_seed(0)
    clean = ClassifierModule("resnet18", width=4, num_classes=3, lr=0.01)
    attacked = small(eps=0.0)
    for module in (clean, attacked):
        trainer().fit(module, loader())
    pairs = zip(clean.network.parameters(), attacked.network.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_gives_the_same_weights(method: str) -> None:
    runs = []
    for attack_seed in (0, 0, 1):
        module = small(method=method, attack_seed=attack_seed)
        trainer().fit(module, loader())
        runs.append(torch.cat([p.detach().flatten() for p in module.parameters()]))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_every_batch_has_its_own_start_also_under_accumulation() -> None:
    seeds: list[int] = []

    class Watched(AdversarialClassifierModule):
        def _seed(self) -> int:
            seeds.append(super()._seed())
            return seeds[-1]

    module = Watched("resnet18", width=4, num_classes=3, attack_steps=1, eval_batches=0)
    trainer(max_epochs=2, accumulate_grad_batches=2).fit(module, loader(32))
    assert len(seeds) == len(set(seeds)) == 8


def test_warm_up_raises_radius_and_step_together() -> None:
    seen: list[tuple[float, float]] = []

    class Watched(AdversarialClassifierModule):
        def training_images(self, batch: Any) -> Tensor:
            """Return what the module returns; note the call."""
            seen.append((self.training_attack().eps, self.training_attack().length))
            return super().training_images(batch)

    module = Watched("resnet18", width=4, num_classes=3, eps=0.4, attack_steps=2, eps_warmup=4, eval_batches=0)
    trainer(max_epochs=3).fit(module, loader())
    assert [radius for radius, _ in seen] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4])
    assert [length for _, length in seen] == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5, 0.5])


@pytest.mark.parametrize("inference_mode", [True, False])
def test_robust_accuracy_is_never_above_clean(inference_mode: bool) -> None:
    for seed in range(3):
        module = small(eps=2.0)
        torch.manual_seed(seed)
        for parameter in module.network.parameters():
            nn.init.normal_(parameter, std=0.2)
        runner = trainer(inference_mode=inference_mode)
        for stage, outcome in (
            ("val", runner.validate(module, loader(), verbose=False)[0]),
            ("test", runner.test(module, loader(), verbose=False)[0]),
        ):
            assert 0 <= outcome[f"{stage}/robust_accuracy"] <= outcome[f"{stage}/accuracy"]


def test_an_image_that_only_an_attack_puts_right_is_not_robust(monkeypatch: pytest.MonkeyPatch) -> None:
    class Brightness(AdversarialMixin, Own):
        """Call bright images 1 and dark ones 0."""

        def forward(self, images: Tensor) -> Tensor:
            """Return logits."""
            bright = images.mean(dim=(1, 2, 3)) - 0.5
            return torch.stack([-bright, bright], dim=1)

    def inverted(model: Any, images: Tensor, *_: Any, **__: Any) -> Tensor:
        return 1 - images

    monkeypatch.setattr("lit_bump.modules.adversarial.attacked", inverted)
    dark = DataLoader(TensorDataset(torch.zeros(4, 3, 16, 16), torch.tensor([1, 1, 1, 1])), batch_size=4)
    outcome = trainer().validate(Brightness(), dark, verbose=False)[0]
    assert outcome["val/attacked_accuracy"] == 0
    assert outcome["val/robust_accuracy"] == 0


def test_robust_accuracy_of_a_radius_of_zero_is_the_clean_one() -> None:
    outcome = trainer().validate(small(eps=0.0), loader(), verbose=False)[0]
    assert outcome["val/robust_accuracy"] == outcome["val/accuracy"]


def test_evaluation_leaves_weights_modes_and_statistics_alone() -> None:
    module = small()
    before = {name: tensor.clone() for name, tensor in module.network.state_dict().items()}
    trainer().validate(module, loader(), verbose=False)
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.network.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


def test_only_some_batches_are_attacked_on_request() -> None:
    assert "val/robust_accuracy" not in trainer().validate(small(eval_batches=0), loader(), verbose=False)[0]
    seen: list[int] = []

    class Watched(AdversarialClassifierModule):
        def forward(self, images: Tensor) -> Tensor:
            """Return what the module returns; note the call."""
            seen.append(len(images))
            return super().forward(images)

    module = Watched("resnet18", width=4, num_classes=3, eval_steps=1, eval_batches=1)
    trainer().validate(module, loader(), verbose=False)
    assert len(seen) == 2 + 3  # two batches; of the first also one step and two verdicts


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_in_every_precision(method: str, precision: Any) -> None:
    module = small(method=method)
    before = [parameter.detach().clone() for parameter in module.parameters()]
    trainer(precision=precision).fit(module, loader(), loader())
    assert all(parameter.isfinite().all() for parameter in module.parameters())
    assert any(not torch.equal(now, was) for now, was in zip(module.parameters(), before, strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_users_own_module_takes_the_mixin(method: Method) -> None:
    torch.manual_seed(0)
    module = OwnAdversarial(width=8, method=method, eps=0.5, attack_steps=2, eval_steps=2)
    runner = trainer(max_epochs=2)
    runner.fit(module, loader(), loader())
    metrics = runner.callback_metrics
    assert 0 <= float(metrics["val/robust_accuracy"]) <= float(metrics["val/accuracy"])


class Forgetful(AdversarialMixin, Own):
    """A module whose step was never changed."""

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the loss on clean images."""
        return nn.functional.cross_entropy(self(batch[0]), batch[1])


class WithoutItsLoss(AdversarialMixin, Own):
    """A module that takes the images and not the loss, which is all of TRADES."""

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the loss without the attack."""
        return nn.functional.cross_entropy(self(self.training_images(batch)), batch[1])


def test_training_on_clean_images_unnoticed_is_refused() -> None:
    with pytest.raises(LitBumpError, match=r"Forgetful trained on clean images: take them from self\.training_images"):
        trainer().fit(Forgetful(), loader())
    with pytest.raises(LitBumpError, match=r"left the attack out of its loss: take it from self\.training_loss"):
        trainer().fit(WithoutItsLoss(method="trades", attack_steps=1), loader())


class DictBatches(AdversarialMixin, Own):
    """A module whose batches are dicts."""

    def images_and_labels(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return what the dict holds."""
        return batch["image"], batch["label"]

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the loss of a batch."""
        return self.training_loss(self(self.training_images(batch)), batch["label"])


class BatchAlone(Own):
    """A module whose validation step takes no number, which Lightning allows."""

    def validation_step(self, batch: Any) -> None:  # type: ignore[override]
        """Log nothing."""


class BatchAloneAdversarial(AdversarialMixin, BatchAlone):  # type: ignore[misc]
    """The same, adversarially."""


def test_dict_batches_and_steps_without_numbers_are_taken() -> None:
    images, labels = images_and_labels()
    rows = [{"image": image, "label": label} for image, label in zip(images, labels, strict=True)]
    runner = trainer()
    runner.fit(DictBatches(attack_steps=1), DataLoader(rows, batch_size=8))  # type: ignore[arg-type]
    with pytest.raises(LitBumpError, match="a batch is a dict, no pair: override images_and_labels in OwnAdversarial"):
        OwnAdversarial().images_and_labels({"image": images})
    assert "val/robust_accuracy" in trainer().validate(BatchAloneAdversarial(eval_steps=1), loader(), verbose=False)[0]


def test_mixin_on_the_wrong_side_is_refused() -> None:
    with pytest.raises(LitBumpError, match=r"put the mixin left of the module: class Wrong\(AdversarialMixin, Own\)"):

        class Wrong(Own, AdversarialMixin):
            """The module's own steps would come first."""


def test_several_loaders_keep_apart() -> None:
    images, _ = images_and_labels()
    module = OwnAdversarial(eps=0.0, eval_steps=1)
    right = module(images).argmax(dim=1)
    loaders = [DataLoader(TensorDataset(images, wanted), batch_size=8) for wanted in (right, (right + 1) % 3)]
    outcome: dict[str, float] = {}
    for one in trainer().validate(module, loaders, verbose=False):
        outcome |= one
    assert outcome["val/robust_accuracy/dataloader_idx_0"] == 1
    assert outcome["val/robust_accuracy/dataloader_idx_1"] == 0


def test_robust_accuracy_stands_beside_the_clean_one_of_the_same_images() -> None:
    outcome = trainer().validate(small(eps=1.0, eval_batches=1), loader(), verbose=False)[0]
    assert outcome["val/robust_accuracy"] <= outcome["val/attacked_accuracy"]


def test_trades_of_a_certain_model_has_finite_gradients() -> None:
    logits = torch.tensor([[200.0, -200.0, -200.0]], requires_grad=True)
    module = small(method="trades")
    module._attacked = torch.rand(1, 3, 16, 16)
    loss = module.training_loss(logits, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert bool(gradient.isfinite().all())


def test_two_processes_attack_from_seeds_of_their_own_and_agree_on_the_evaluation(run_python: RunPython) -> None:
    done = run_python("-m", "tests.modules.adversarial_processes", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    report = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("REPORT"))[6:])
    seeds = [seed for of_process in report["seeds"] for seed in of_process]
    assert len(seeds) == len(set(seeds)) == 4
    assert report["metrics"]["val/robust_accuracy"] <= report["metrics"]["val/attacked_accuracy"]
    assert report["metrics"]["val/attacked_accuracy"] == pytest.approx(report["metrics"]["val/accuracy"])


def test_checkpoint_holds_the_attack_and_loads_without_the_command_line(tmp_path: Path) -> None:
    module = small(method="trades", norm="Linf", eps=0.03, beta=3.0)
    runner = trainer(max_steps=1, max_epochs=-1)
    runner.fit(module, loader())
    runner.save_checkpoint(tmp_path / "a.ckpt")
    again = AdversarialClassifierModule.load_from_checkpoint(tmp_path / "a.ckpt", weights_only=True)
    assert (again.method, again.attack, again.beta) == ("trades", module.attack, 3.0)
    assert again.hparams["width"] == 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "pdg"}, "method is 'pdg' .did you mean 'pgd'"),
        ({"eps": -0.1}, "eps is -0.1"),
        ({"norm": "Linf", "eps": 8.0}, "for 8/255 write"),
        ({"attack_steps": 0}, "steps is 0"),
        ({"beta": -1.0}, "beta is -1.0"),
        ({"eps_warmup": -1}, "eps_warmup is -1"),
        ({"eval_batches": -1}, "eval_batches is -1"),
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users do not have the checks of these tests
    with pytest.raises(LitBumpError, match=message):
        small(**wrong)


def test_normalised_images_are_refused() -> None:
    images, labels = images_and_labels()
    with pytest.raises(LitBumpError, match="expects unnormalised images"):
        small().training_images(((images - 0.5) / 0.25, labels))
