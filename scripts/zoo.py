"""Train one model of every torchvision and timm family for a step, measured by the callback, and print what came of it.

Not in the paper. ``python scripts/zoo.py --out FILE``. Random weights, random images, the smallest model and size: the
point is the callback in a real Trainer. Each model is trained twice from the same seed, with the callback and without:
its weights, buffers and optimiser state have to be the same bit for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from lit_bump import LogSteps, ProbeSet, RProfileCallback, load_formation
from scripts.gallery import families, limit

_COLUMNS = (
    "library",
    "family",
    "model",
    "images",
    "features",
    "seconds",
    "max r at step 0 and 1",
    "training untouched",
)
HEAD = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|"
PROTOCOL: dict[str, Any] = {"estimator": "matched", "n_pairs": 4, "n_noise": 1}


class OneStep(pl.LightningModule):
    """Train any classifier on random images."""

    def __init__(self, net: nn.Module, size: int) -> None:
        super().__init__()
        self.net, self.size = net, size

    def forward(self, images: Tensor) -> Any:
        """Return logits; of a training model's several outputs the first."""
        found = self.net(images)
        while not isinstance(found, Tensor):
            found = found[0]
        return found.flatten(1)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return a loss."""
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return plain SGD with momentum."""
        return torch.optim.SGD(self.parameters(), lr=1e-3, momentum=0.9)

    def train_dataloader(self) -> DataLoader[Any]:
        """Return one batch of two images."""
        images = torch.rand(2, 3, self.size, self.size, generator=torch.Generator().manual_seed(0))
        return DataLoader(TensorDataset(images, torch.tensor([0, 1])), batch_size=2)


def torchvision_families() -> Iterator[tuple[str, str]]:
    """Yield every family of torchvision's classifiers with its smallest model."""
    smallest: dict[str, tuple[int, str]] = {}
    for name in torchvision.models.list_models(module=torchvision.models):
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder = torchvision.models.get_model_builder(name)
            try:
                size = sum(p.numel() for p in builder(weights=None).parameters())
            except (TypeError, ValueError, RuntimeError):
                size = 10**12
        family = builder.__module__.rpartition(".")[2]
        if family not in smallest or size < smallest[family][0]:
            smallest[family] = (size, name)
    yield from ((family, name) for family, (_, name) in sorted(smallest.items()))


def built(library: str, name: str, size: int | None) -> tuple[nn.Module, int]:
    """Return a classifier of random weights, and the size of its images."""
    torch.manual_seed(0)
    if library == "torchvision":
        at = {"image_size": size} if name.startswith("vit") and size else {}
        aside = {"aux_logits": False} if name in ("googlenet", "inception_v3") else {}
        net = torchvision.models.get_model(name, weights=None, **at, **aside)
        return net, size or (299 if name == "inception_v3" else 224)
    sized: dict[str, Any] = {"img_size": size} if size else {}
    try:
        net = timm.create_model(name, num_classes=10, **sized)
    except TypeError:  # it takes any size, or none
        net = timm.create_model(name, num_classes=10)
    config: Any = net.pretrained_cfg
    return net, size or int(config["input_size"][1])


def digest(module: pl.LightningModule, optimizer: torch.optim.Optimizer) -> str:
    """Return SHA-256 over weights, buffers and the optimiser's momentum."""
    state = hashlib.sha256()
    momenta = [one.get("momentum_buffer") for one in optimizer.state.values()]
    kept = [*module.parameters(), *module.buffers(), *(one for one in momenta if one is not None)]
    for tensor in (tensor for tensor in kept if tensor.numel()):
        state.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return state.hexdigest()


def trained(net: nn.Module, size: int, folder: Path, *, measured: bool) -> tuple[str, Any]:
    """Train for a step.

    Args:
        net: classifier; it is changed.
        size: of its images.
        folder: for profiles.
        measured: whether the callback is there.

    Returns:
        Digest of what training has left, and the formation.

    """
    probe = ProbeSet.from_tensor(torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(1)), name="zoo")
    schedule = LogSteps(steps=(0, 1))
    callback = RProfileCallback(
        probe, PROTOCOL, schedule, encoder="forward", figures=False, max_share=None, enable=measured
    )
    module = OneStep(net, size)
    torch.manual_seed(2)
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder, callbacks=[callback],
    )  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):  # the callback's own table
        trainer.fit(module)
    return digest(module, trainer.optimizers[0]), load_formation(folder)["zoo"] if measured else None


def row(library: str, family: str, name: str, seconds: int) -> str:
    """Return a row of the table; the reason in one line where there is no profile."""
    reason = ""
    for size in (64, 96, 128, None):
        try:
            with limit(seconds), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
                warnings.simplefilter("ignore")
                net, px = built(library, name, size)
                other = copy.deepcopy(net)
                began = time.perf_counter()
                left, formation = trained(net, px, Path(folder), measured=True)
                took = time.perf_counter() - began
                same = left == trained(other, px, Path(folder), measured=False)[0]
        except Exception as error:
            kind = "" if type(error).__name__ == "LitBumpError" else f"{type(error).__name__}: "
            reason = kind + " ".join(str(error).split())[:160].replace("|", "/")
            if isinstance(error, TimeoutError):
                break
            continue
        heights = ", ".join("undefined" if b.verdict == "undefined" else f"{b.height:.3g}" for b in formation.bumps())
        cells = (library, family, name, f"{px} px", f"{took:.1f}", heights, "yes" if same else "NO")
        return f"| {' | '.join(map(str, cells))} |"
    return f"| {library} | {family} | {name} | - | - | {reason} | - |"


def main() -> None:
    """Print the table, row by row, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a family's name")
    parser.add_argument("--limit", type=int, default=10**6, help="families of each library at most")
    parser.add_argument("--seconds", type=int, default=60, help="a model may take")
    parser.add_argument("--out", type=Path, help="Markdown file")
    options = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    rows = [HEAD]
    print(HEAD, flush=True)
    vision = [("torchvision", *one) for one in torchvision_families() if options.only in one[0]][: options.limit]
    for library, family, name in (*vision, *(("timm", *one[:2]) for one in families(options.only))):
        if sum(library in line.split("|")[1] for line in rows[1:]) >= options.limit:
            continue
        rows.append(row(library, family, name, options.seconds))
        print(rows[-1], flush=True)
        if options.out is not None:
            options.out.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
