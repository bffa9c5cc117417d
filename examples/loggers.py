"""Response profiles in TensorBoard, CSV, W&B and MLflow at once. ``python examples/loggers.py --out runs/loggers``.

Needs ``pip install wandb mlflow-skinny``. W&B runs offline (``wandb sync`` sends it later), MLflow writes plain files.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger, MLFlowLogger, TensorBoardLogger, WandbLogger

from lit_bump import ClassifierModule, RProfileCallback, ShapesDataModule


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a small network with four loggers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/loggers"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--target_se", type=float, default=0.03, help="relative standard error of every ratio")
    options = parser.parse_args(arguments)

    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # plain files, no data base
    loggers = [
        TensorBoardLogger(options.out / "tensorboard"),
        CSVLogger(options.out / "csv"),
        WandbLogger(project="bump", save_dir=options.out, offline=True),
        MLFlowLogger("bump", tracking_uri=(options.out / "mlruns").resolve().as_uri()),
    ]
    pl.seed_everything(0)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=options.steps,
        logger=loggers,
        log_every_n_steps=1,
        limit_val_batches=1,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[RProfileCallback("shapes8", protocol={"target_se": options.target_se}, max_share=None)],
    )
    trainer.fit(
        ClassifierModule("resnet18", width=8), datamodule=ShapesDataModule(n_train=1_000, n_test=100, num_workers=0)
    )


if __name__ == "__main__":
    main()
