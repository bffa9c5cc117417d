"""Laws of every data module: its splits, its options, its independence, and its life in a Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torch.utils.data import DistributedSampler

from lit_bump.datamodules import ImageDataModule, PermutedLabelsShapesDataModule, ShapesDataModule
from lit_bump.errors import LitBumpError
from tests.conftest import RunPython

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers")


def shapes(**options: Any) -> ShapesDataModule:
    """Return a small data module."""
    return ShapesDataModule(**{"n_train": 50, "n_test": 20, "batch_size": 16, **options})


def images_of(loader: Any) -> Tensor:
    """Return all images of one pass."""
    return torch.cat([images for images, _ in loader])


def test_batches_are_unit_floats_and_whole_numbers() -> None:
    data = shapes()
    for loader in (data.train_dataloader(), data.val_dataloader(), data.test_dataloader(), data.predict_dataloader()):
        for images, labels in loader:
            assert images.dtype == torch.float32
            assert images.shape[1:] == data.input_size
            assert 0 <= float(images.min()) <= float(images.max()) <= 1
            assert labels.dtype == torch.int64
            assert len(labels) == len(images) <= 16
    assert len(data.train_dataloader()) == 4
    assert len(shapes(drop_last=True).train_dataloader()) == 3


def test_drop_last_without_a_whole_batch_is_refused() -> None:
    assert len(shapes(drop_last=True, batch_size=50).train_dataloader()) == 1
    with pytest.raises(LitBumpError, match="batch_size=51 leaves no batch of the 50 training images"):
        shapes(drop_last=True, batch_size=51).train_dataloader()


def test_an_epoch_of_cifar_has_391_steps() -> None:
    data = shapes(batch_size=128)
    data._sets["train"] = type(data._set("train"))(torch.zeros(50_000, 1, 1, 1), torch.zeros(50_000, dtype=torch.int64))
    assert len(data.train_dataloader()) == 391


def test_the_test_split_validates_unless_images_are_held_out() -> None:
    data = shapes()
    assert torch.equal(images_of(data.val_dataloader()), images_of(data.test_dataloader()))
    data = shapes(n_val=10, augment=False)
    train, val, test = (
        images_of(load()) for load in (data.train_dataloader, data.val_dataloader, data.test_dataloader)
    )
    assert (len(train), len(val), len(test)) == (40, 10, 20)
    pictures = [{image.numpy().tobytes() for image in images} for images in (train, val, test)]
    assert len(set.union(*pictures)) == 70


def test_a_subset_is_balanced_nested_and_free_of_the_seed() -> None:
    few, many = (images_of(shapes(subset=n, augment=False, seed=n).train_dataloader()) for n in (20, 30))
    assert {image.numpy().tobytes() for image in few} < {image.numpy().tobytes() for image in many}
    labels = torch.cat([labels for _, labels in shapes(subset=20).train_dataloader()])
    assert labels.bincount().tolist() == [2] * 10


def test_training_probes_are_images_that_are_trained_on() -> None:
    data = shapes(subset=32, augment=False, shapes_seed=3)
    trained = {image.numpy().tobytes() for image in images_of(data.train_dataloader())}
    assert {image.numpy().tobytes() for image in data.probe_set("shapes32train").images} == trained


def test_batches_depend_on_the_seed_and_not_on_the_global_one() -> None:
    torch.manual_seed(0)
    one = images_of(shapes().train_dataloader())
    torch.manual_seed(1)
    assert torch.equal(images_of(shapes().train_dataloader()), one)
    assert not torch.equal(images_of(shapes(seed=1).train_dataloader()), one)


def test_workers_change_no_batch_of_any_split() -> None:
    alone, helped = shapes(), shapes(num_workers=2)
    for name in ("train_dataloader", "test_dataloader"):
        assert torch.equal(images_of(getattr(alone, name)()), images_of(getattr(helped, name)()))


def test_no_global_random_state_is_read_or_advanced(run_python: RunPython) -> None:
    """In a process of its own: the run-time type checks of the test suite draw from Python's generator."""
    code = """
import random, numpy, torch
from lit_bump.datamodules import NoiseShapesDataModule, PermutedLabelsShapesDataModule, ShapesDataModule
def state():
    return str((torch.get_rng_state().tolist(), numpy.random.get_state(), random.getstate()))
def use():
    for kind, workers in ((ShapesDataModule, 1), (NoiseShapesDataModule, 0), (PermutedLabelsShapesDataModule, 0)):
        data = kind(n_train=20, n_test=10, num_workers=workers)
        for load in (data.train_dataloader, data.val_dataloader):
            yield [float(batch[0].sum()) for batch in load()]
        yield data.probe_set("shapes4b1").digest
before = state()
first = list(use())
assert state() == before, "advanced"
random.seed(5), numpy.random.seed(5), torch.manual_seed(5)
assert list(use()) == first, "read"
"""
    done = run_python("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0: give a whole number of at least 1"),
        ({"num_workers": -1}, "num_workers=-1: give a whole number of at least 0"),
        ({"subset": 0}, "subset=0: give a whole number of at least 1"),
        ({"n_val": -1}, "n_val=-1: give a whole number of at least 0"),
        ({"seed": -1}, "seed=-1 is not a seed"),
    ],
)
def test_numbers_out_of_range_are_refused_at_once(options: dict[str, int], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        shapes(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subset": 51}, "subset=51 with n_val=0 asks for more than the 50 training images"),
        ({"subset": 41, "n_val": 10}, "subset=41 with n_val=10 asks for more than the 50"),
        ({"n_val": 50}, "n_val=50 asks for more than the 50"),
    ],
)
def test_more_images_than_there_are_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        shapes(**options).setup("fit")


def test_unknown_probe_sets_are_refused_with_the_nearest() -> None:
    with pytest.raises(LitBumpError, match=r"no probe set 'shape32' \(did you mean 'shapes32'"):
        shapes().probe_set("shape32")
    with pytest.raises(LitBumpError, match="'cifar32' needs CIFAR-10: give data_dir"):
        shapes().probe_set("cifar32")


def test_the_base_says_what_a_subclass_must_define() -> None:
    with pytest.raises(NotImplementedError, match="ImageDataModule must define load_split"):
        ImageDataModule().setup("fit")


class Recorder(LightningModule):
    """A linear classifier that keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 10)
        self.seen: list[tuple[int, int, float]] = []

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Keep the epoch, the batch and the sum of its pixels.

        Returns:
            The loss.

        """
        images, labels = batch
        self.seen.append((self.current_epoch, batch_idx, float(images.double().sum())))
        return torch.nn.functional.cross_entropy(self.layer(images.flatten(1)), labels)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Do nothing."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return plain SGD."""
        return torch.optim.SGD(self.parameters(), 0.01)


class EveryStep(Callback):
    """Keep a checkpoint of every step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_batch_end(self, trainer: Trainer, *args: Any) -> None:
        """Save it under the number of the step."""
        trainer.save_checkpoint(self.folder / f"{trainer.global_step}.ckpt")


def trainer(**options: Any) -> Trainer:
    """Return a quiet Trainer."""
    quiet = ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing")
    options.update(dict.fromkeys(quiet, False))
    return Trainer(accelerator="cpu", max_epochs=2, num_sanity_val_steps=0, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, int, float]]]:
    """Train two epochs of four batches.

    Returns:
        The folder of the checkpoints, and what was seen.

    """
    folder, module = tmp_path_factory.mktemp("run"), Recorder()
    trainer(callbacks=[EveryStep(folder)]).fit(module, shapes())
    return folder, module.seen


@pytest.mark.parametrize("step", [1, 4, 6])
def test_a_resumed_run_sees_what_the_whole_run_saw(run: tuple[Path, list[tuple[int, int, float]]], step: int) -> None:
    folder, seen = run
    module = Recorder()
    trainer().fit(module, shapes(), ckpt_path=str(folder / f"{step}.ckpt"), weights_only=True)
    assert module.seen == seen[step:]
    assert len({total for _, _, total in seen}) == 8  # epochs differ


def test_resuming_with_other_data_is_noticed(run: tuple[Path, list[tuple[int, int, float]]]) -> None:
    checkpoint = str(run[0] / "4.ckpt")
    with pytest.warns(UserWarning, match="was trained with shapes_seed=0, and training goes on with 2"):
        trainer().fit(Recorder(), shapes(shapes_seed=2), ckpt_path=checkpoint, weights_only=True)
    trainer().validate(Recorder(), shapes(shapes_seed=2), ckpt_path=checkpoint, weights_only=True)


def test_options_in_a_checkpoint_are_plain() -> None:
    state = PermutedLabelsShapesDataModule(permutation_seed=3).state_dict()
    assert state["permutation_seed"] == 3
    assert all(value is None or isinstance(value, (int, float)) for value in state.values())


@pytest.mark.filterwarnings("ignore:You requested to overfit")
def test_overfitting_on_a_few_batches_works() -> None:
    module = Recorder()
    trainer(overfit_batches=1).fit(module, shapes())
    assert [batch for _, batch, _ in module.seen] == [0, 0]


def test_each_rank_gets_its_share_and_lightning_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class OfRank:
        def __init__(self, rank: int) -> None:
            self.distributed_sampler_kwargs = {"num_replicas": 2, "rank": rank}

    monkeypatch.setattr(ShapesDataModule, "_loader_options", lambda self: {"batch_size": 5})
    shares = []
    for rank in (0, 1):
        data = shapes()
        data.trainer = OfRank(rank)  # type: ignore[assignment]
        loader = data.train_dataloader()
        assert isinstance(loader.sampler, DistributedSampler)  # so Lightning puts no other in its place
        shares.append(images_of(loader))
    assert [len(share) for share in shares] == [25, 25]
    assert not {image.numpy().tobytes() for image in shares[0]} & {image.numpy().tobytes() for image in shares[1]}
