"""Compare one GPU with several: the same run, measured by the callback under DDP, must give the same profiles.

``python scripts/distributed_gpu.py --devices 2 4 8`` on a machine with as many GPUs (``--accelerator cpu`` to try it).
Each number of devices trains the same steps with the same whole batch. Step 0, where all weights are equal, must agree
with one device within rounding; the time of a measurement is printed beside it, and its speed-up.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import lightning.pytorch as pl
import numpy as np

from lit_bump import ClassifierModule, LogSteps, RProfileCallback, ShapesDataModule, load_formation

BATCH = 256


def train(folder: Path, devices: int, accelerator: str) -> None:
    """Train a few steps on some devices, measured at 0 and at the end."""
    pl.seed_everything(0)
    callback = RProfileCallback(
        "shapes32",
        {"preset": "accurate", "precision": "float32"},
        LogSteps(steps=(0, 10)),
        max_share=None,
        figures=False,
    )
    trainer = pl.Trainer(
        accelerator=accelerator, devices=devices, strategy="ddp" if devices > 1 else "auto", max_steps=10, logger=False,
        enable_checkpointing=False, default_root_dir=folder, callbacks=[callback], limit_val_batches=0,
    )  # fmt: skip
    data = ShapesDataModule(n_train=4 * BATCH, n_test=64, batch_size=BATCH // devices, num_workers=0)
    trainer.fit(ClassifierModule("resnet18", width=64 if accelerator == "gpu" else 8), datamodule=data)


def main() -> None:
    """Print a table; exit code 1 if any profile differs from that of one device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[2])
    parser.add_argument("--accelerator", default="gpu")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:  # a process of its own for each: strategies start from a fresh one
        train(options.folder, options.devices[0], options.accelerator)
        return
    print("| devices | largest difference at step 0, % | seconds at step 0 | speed-up |\n|---|---|---|---|")
    wrong = False
    with tempfile.TemporaryDirectory() as base:
        profiles = {}
        for devices in (1, *options.devices):
            folder = Path(base, str(devices))
            words = ["--devices", str(devices), "--accelerator", options.accelerator, "--folder", str(folder)]
            subprocess.run([sys.executable, __file__, *words], check=True)
            profiles[devices] = load_formation(folder)["shapes32"].profiles[0]
            one, now = profiles[1], profiles[devices]
            difference = float(np.nanmax(np.abs(now.ratio / one.ratio - 1)))
            wrong |= not difference < 1e-3 or not np.array_equal(one.reason, now.reason)
            seconds = now.context["seconds"]
            speed = one.context["seconds"] / seconds
            print(f"| {devices} | {100 * difference:.2g} | {seconds:.1f} | {speed:.2f} |", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
