"""Which images are measured: probe sets as given, by name, or seeded images of the run's own validation set.

Paper: A.2 "Probe sets" (fixed, seeded sets). Imports Lightning and ``probes``.
A name is asked of the data module first, then of the registry. Images are drawn without touching the training loader
or any global random stream, even where the data set augments at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities.model_helpers import is_overridden
from lightning.pytorch.utilities.seed import isolate_rng
from torch.utils.data import Dataset

from lit_bump.errors import LitBumpError
from lit_bump.probes import ProbeSet, named_probe_set

ProbeChoice = ProbeSet | str | Sequence[ProbeSet | str] | None
N_IMAGES = 32
# What a test loader raises whose data were not set up: that is no fault in training.
_NOT_READY = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, OSError)


def listed_probes(choice: ProbeChoice) -> tuple[ProbeSet | str, ...]:
    """Return a choice as a tuple, empty for the validation images.

    Args:
        choice: as the callback takes it.

    Returns:
        Sets and names.

    Raises:
        LitBumpError: if an entry is neither, or a list is empty.

    """
    if choice is None:
        return ()
    entries = (choice,) if isinstance(choice, (str, ProbeSet)) else tuple(choice)
    if not entries:
        raise LitBumpError("probes is an empty list: name a probe set, or leave it out for validation images")
    for entry in entries:
        if not isinstance(entry, (str, ProbeSet)):
            cure = "give a name or a ProbeSet (ProbeSet.from_tensor(images, name=...))"
            raise LitBumpError(f"probes hold {type(entry).__name__}: {cure}")
    return entries


def chosen_probe(entry: ProbeSet | str, trainer: Trainer) -> ProbeSet:
    """Return a probe set, asked of the data module or of the registry where it is a name.

    Args:
        entry: a set or a name.
        trainer: with its data module, if there is one.

    Returns:
        The set.

    Raises:
        LitBumpError: if neither knows the name.

    """
    if isinstance(entry, ProbeSet):
        return entry
    datamodule: Any = getattr(trainer, "datamodule", None)
    with isolate_rng(include_cuda=False):
        if not callable(getattr(datamodule, "probe_set", None)):
            return named_probe_set(entry)
        try:
            found: ProbeSet = datamodule.probe_set(entry)
        except LitBumpError as unknown:
            try:
                return named_probe_set(entry)
            except LitBumpError:
                raise unknown from None
    return found


def validation_probe(
    trainer: Trainer, pl_module: LightningModule, mean: Sequence[float] | None, std: Sequence[float] | None
) -> ProbeSet:
    """Return 32 seeded images of the validation set; of the test or training set where there is none.

    Args:
        trainer: with its loaders set up.
        pl_module: may bring the loaders itself.
        mean: of the module's normalisation; images that come normalised are brought back to [0, 1] pixels by it.
        std: of the module's normalisation.

    Returns:
        A set named after the split and the number of images.

    Raises:
        LitBumpError: if there is no such set, or its images are not in [0, 1] pixels and nothing says why.

    """
    with isolate_rng(include_cuda=False):
        for split, loaders in _loaders(trainer, pl_module):
            for loader in _flat(loaders):
                dataset = getattr(loader, "dataset", None)
                if _is_listed(dataset):
                    return _drawn(dataset, split, mean, std)
    raise LitBumpError("no validation, test or training set has images that can be picked by number: give probes=")


def _loaders(trainer: Trainer, pl_module: LightningModule) -> Iterator[tuple[str, Any]]:
    yield "val", trainer.val_dataloaders
    for owner in (getattr(trainer, "datamodule", None), pl_module):
        if owner is not None and is_overridden("test_dataloader", owner):
            try:
                yield "test", owner.test_dataloader()
            except _NOT_READY:
                continue
    yield "train", trainer.train_dataloader


def _flat(loaders: Any) -> Iterator[Any]:
    if isinstance(loaders, dict):
        loaders = list(loaders.values())
    if isinstance(loaders, (list, tuple)):
        for loader in loaders:
            yield from _flat(loader)
    elif loaders is not None:
        yield getattr(loaders, "loader", loaders)


def _is_listed(dataset: Any) -> bool:
    try:
        return hasattr(dataset, "__getitem__") and len(dataset) > 0
    except (TypeError, NotImplementedError):
        return False


def _drawn(dataset: Any, split: str, mean: Sequence[float] | None, std: Sequence[float] | None) -> ProbeSet:
    n_images = min(N_IMAGES, len(dataset))
    random.seed(0)  # for a data set that augments at random; isolate_rng puts the streams back
    np.random.seed(0)  # noqa: NPY002
    torch.default_generator.manual_seed(0)
    name = f"{split}{n_images}"
    try:
        return ProbeSet.from_dataset(dataset, name=name, n_images=n_images, seed=0)
    except LitBumpError:
        if mean is None or std is None:
            raise
    return ProbeSet.from_dataset(_InPixels(dataset, mean, std), name=name, n_images=n_images, seed=0)


class _InPixels(Dataset[torch.Tensor]):
    """A data set of normalised images, brought back to [0, 1] pixels."""

    def __init__(self, dataset: Any, mean: Sequence[float], std: Sequence[float]) -> None:
        self.dataset = dataset
        self.mean = torch.tensor(mean, dtype=torch.float64).view(-1, 1, 1)
        self.std = torch.tensor(std, dtype=torch.float64).view(-1, 1, 1)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> torch.Tensor:
        item = self.dataset[index]
        if isinstance(item, (tuple, list, dict)):
            item = item["image"] if isinstance(item, dict) else item[0]
        pixels = torch.as_tensor(item, dtype=torch.float64) * self.std + self.mean
        nearly = (pixels > -1e-3) & (pixels < 1 + 1e-3)  # what rounding leaves outside; anything more is refused
        return torch.where(nearly, pixels.clamp(0, 1), pixels).float()
