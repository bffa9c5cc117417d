"""One condition, trained and measured in a process of its own; what is there already is not done again.

Paper: A.2. Imports ``runs``; the training command is handed in. ``result.json`` is written last. Before it is there, a
second start goes on from the last checkpoint, and with the measurements that are missing.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from filelock import FileLock

from lit_bump import config_files
from lit_bump.claims.condition import Condition
from lit_bump.claims.evidence import RESULT, is_finished, read_json, read_result
from lit_bump.errors import LitBumpError
from lit_bump.whole_file import whole_file

Train = Callable[[list[str], str], Any]  # words after ``fit`` and the run's name -> the Trainer after its run
MADE_OF = "made_of.json"
TRAINED = "trained.json"  # written when training has ended and measuring has not
ACCURACY = "train/accuracy"
_POLL = 2.0  # seconds between two looks at the parent process


def fit_words(condition: Condition, folder: Path, *, data_dir: str | None, extra: tuple[str, ...] = ()) -> list[str]:
    """Return the words after ``fit`` that train a condition.

    Args:
        condition: which one.
        folder: of all conditions.
        data_dir: where CIFAR-10 is, for conditions that need it.
        extra: options for all conditions, which come last.

    Returns:
        Words of a command line.

    Raises:
        LitBumpError: if the condition starts from another one that is not finished, or has lost its checkpoint.

    """
    words = ["--config", condition.config, *condition.options, f"--rprofile.probes=[{condition.live}]"]
    words += [f"--trainer.default_root_dir={folder}", f"--run_name={condition.name}"]
    if data_dir is not None:
        words.append(f"--data.data_dir={data_dir}")
    if condition.init_from is not None:
        before = read_result(folder / condition.init_from)
        if before is None:
            raise LitBumpError(f"{condition.name} starts from {condition.init_from}, which is not finished")
        checkpoint = folder / condition.init_from / before["run"] / before["checkpoint"]
        if not checkpoint.is_file():
            cure = f"remove {folder / condition.init_from}, and it is trained again"
            raise LitBumpError(f"{condition.name} starts from {checkpoint}, which is gone: {cure}")
        words.append(f"--model.init_from={checkpoint}")
    return [*words, *extra]


def complete(
    condition: Condition,
    folder: Path,
    *,
    train: Train,
    protocol: Any,
    data_dir: str | None = None,
    extra: tuple[str, ...] = (),
    threads: int | None = None,
) -> dict[str, Any]:
    """Train and measure a condition, as far as it is not done, and write its result.

    Args:
        condition: which one.
        folder: of all conditions; this one's is inside.
        train: the training command.
        protocol: of the measurements after training.
        data_dir: where CIFAR-10 is.
        extra: options for all conditions.
        threads: of torch in this process.

    Returns:
        The result: the run's folder, its last checkpoint, final metrics, seconds, versions.

    """
    own = folder / condition.name
    own.mkdir(parents=True, exist_ok=True)
    with FileLock(own / ".lock"):  # a killed command may have left a process that is still at work
        if (result := read_result(own)) and is_finished(folder, condition):
            return result
        import torch

        if threads is not None:
            torch.set_num_threads(threads)
        _write(own / MADE_OF, made_of(condition, protocol, extra))
        result = read_json(own / TRAINED)
        if result is None:
            result = _trained(train, condition, folder, data_dir, extra)
            result |= {"torch": torch.__version__, "threads": threads}
            _write(own / TRAINED, result)
        began = time.perf_counter()
        _measure(condition, own / result["run"], protocol, data_dir)
        result["measured_seconds"] = time.perf_counter() - began
        _write(own / RESULT, result)
    return result


def made_of(condition: Condition, protocol: Any, extra: tuple[str, ...]) -> dict[str, Any]:
    """Return all that a condition's result depends on, but for the versions of the software.

    Args:
        condition: which one.
        protocol: of the measurements after training.
        extra: options for all conditions.

    Returns:
        Plain values.

    """
    text = config_files.find_config(condition.config).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    made = {**asdict(condition), "protocol": protocol, "extra": extra, "config": lines}
    plain: dict[str, Any] = json.loads(json.dumps({name: made[name] for name in made if name != "cost"}))
    return plain


def check_made_of(condition: Condition, folder: Path, *, protocol: Any, extra: tuple[str, ...] = ()) -> None:
    """Refuse to go on with what was begun with other options.

    Args:
        condition: which one.
        folder: of all conditions.
        protocol: of the measurements after training.
        extra: options for all conditions.

    Raises:
        LitBumpError: if the condition's folder was made with another config, other options or another protocol.

    """
    before, now = read_json(folder / condition.name / MADE_OF), made_of(condition, protocol, extra)
    if before is not None and before != now:
        name = next(name for name in now if now[name] != before.get(name))
        old, new = before.get(name), now[name]
        if isinstance(old, list) and isinstance(new, list):
            old, new = [word for word in old if word not in new], [word for word in new if word not in old]
        where = folder / condition.name
        raise LitBumpError(f"{where} was made with {name} {old}, now {new}: give another --out, or remove it")


def complete_in_child(
    outcome: Connection, condition: Condition, folder: Path, log: Path, parent: int, options: dict[str, Any]
) -> None:
    """Do the work of ``complete`` in a process of its own, with its output in a file.

    Args:
        outcome: takes an empty text at the end, or what went wrong, in one line.
        condition: which one.
        folder: of all conditions.
        log: the file.
        parent: process that asked; this one ends when that is gone.
        options: of ``complete``.

    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    log.parent.mkdir(parents=True, exist_ok=True)
    problem = ""
    with log.open("a", encoding="utf-8") as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
        try:
            complete(condition, folder, **options)
        except KeyboardInterrupt:
            problem = "interrupted"
        except Exception as error:
            traceback.print_exc()
            text = " ".join(str(error).split())
            problem = text if isinstance(error, LitBumpError) else f"{type(error).__name__}: {text}"
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    outcome.send(problem)


def _trained(
    train: Train, condition: Condition, folder: Path, data_dir: str | None, extra: tuple[str, ...]
) -> dict[str, Any]:
    quiet = ("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false")
    words = [*fit_words(condition, folder, data_dir=data_dir, extra=extra), *quiet]
    checkpoint = _epoch_checkpoint(folder / condition.name)
    began = time.perf_counter()
    trainer = train([*words, f"--ckpt_path={checkpoint}"] if checkpoint else words, condition.name)
    if (
        checkpoint and ACCURACY not in trainer.callback_metrics
    ):  # killed after the last epoch: nothing was left to train
        checkpoint = None
        trainer = train(words, condition.name)
    seconds = time.perf_counter() - began
    log_dir, metrics = Path(str(trainer.log_dir)), dict(trainer.callback_metrics)
    # the checkpoint and the accuracy of an epoch may be of an earlier step
    last = Path("checkpoints") / f"step_{trainer.global_step:08d}.ckpt"
    trainer.save_checkpoint(log_dir / last, weights_only=True)
    step = trainer.global_step
    trainer.validate(trainer.lightning_module, datamodule=trainer.datamodule, verbose=False)
    metrics = {name: float(value) for name, value in {**metrics, **trainer.callback_metrics}.items()}
    return {
        "condition": condition.name,
        "command": f"python -m lit_bump fit {' '.join(words)}",
        "run": log_dir.name,
        "checkpoint": last.as_posix(),
        "steps": step,
        "was_resumed": checkpoint is not None,  # the seconds are then those of the last part
        "metrics": {name: value for name, value in metrics.items() if math.isfinite(value)},
        "trained_seconds": seconds,
    }


def _measure(condition: Condition, run: Path, protocol: Any, data_dir: str | None) -> None:
    from lit_bump.runs import measure_run

    measure_run(
        run, condition.probes, protocol=protocol, steps="last", data_dir=data_dir, extend=condition.is_extended,
        progress=False,
    )  # fmt: skip


def _epoch_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that training can go on from: one of a whole epoch."""
    found = [(path.stat().st_mtime, path) for path in folder.glob("version_*/checkpoints/epoch=*.ckpt")]
    return max(found)[1] if found else None


def _write(path: Path, result: dict[str, Any]) -> None:
    with whole_file(path) as partial:
        partial.write_text(json.dumps(result, indent=1), encoding="utf-8")


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(1)
