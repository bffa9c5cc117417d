"""How near the engine comes to what the machine multiplies: measured rates, and the engine's share of them.

Needs the package. Rates are floating-point operations a second (a multiplication and an addition are two). The
engine's operations are those that torch counts in one forward, times the forward-equivalents of the measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.shared import Setting, Table
from benchmarks.subjects import Subject, random_subject
from lit_bump.measure import Protocol, measure_profile

CONVOLUTIONS = ((16, 32), (64, 32), (128, 8), (512, 4))  # channels, side: as in a ResNet-18 of width 16 and 64
BATCH = 256
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def tables(setting: Setting) -> list[Table]:
    """Return the machine's rates and the engine's."""
    rates = Table("Rates of the machine, best of several", ("operation", *(f"{name}, GFLOP/s" for name in TYPES)))
    side = setting.pick(64, 2048, 2048)
    gemm = [_rate(_gemm(side, dtype, setting.device), 2.0 * side**3, setting) for dtype in TYPES.values()]
    rates.add(f"product of two {side} x {side} matrices", *gemm)
    batch = setting.pick(2, BATCH, BATCH)
    convolutions = []
    for channels, width in CONVOLUTIONS[: setting.pick(1, 2, 4)]:
        n_operations = 2.0 * 9 * batch * (channels * width) ** 2
        found = [_rate(_convolution(channels, width, batch, t, setting), n_operations, setting) for t in TYPES.values()]
        rates.add(f"3x3 convolution, {channels} channels, {width} px, batch {batch}, channels last", *found)
        convolutions.append(found[0])
    head = ("network", "protocol", "MFLOP a forward", "forward-equivalents/s", "GFLOP/s",
            "% of the float32 product", "% of the best float32 convolution")  # fmt: skip
    engine = Table("The engine, one image, random weights", head)
    names = setting.pick(["ResNet-18 width 4"], ["ResNet-18 width 16"], ["ResNet-18 width 16", "ResNet-18 width 64"])
    for name in names:
        _add(engine, random_subject(name, setting), setting, gemm[0], max(convolutions))
    engine.notes.append(
        "Drawing directions, noise rule (partly float64) and checks are in the time and not in the operations. A share "
        "above 100 % is bfloat16's."
    )
    return [rates, engine]


def _add(table: Table, subject: Subject, setting: Setting, gemm: float, convolution: float) -> None:
    image = subject.images(1)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        subject.encoder(image)
    n_operations = float(counter.get_total_flops())
    etas = setting.etas(Protocol.paper(subject.size).etas)
    n_pairs, n_jvp = setting.pick((16, 8), (64, 16), (512, 128))
    paper = replace(Protocol.paper(subject.size), etas=etas, n_pairs=n_pairs, n_jvp=n_jvp)
    auto = replace(Protocol.accurate(subject.size), etas=etas, n_pairs=n_pairs, target_se=1e-6)
    for name, protocol in ((f"paper, {n_pairs} pairs, float32", paper), (f"{n_pairs} pairs, auto", auto)):
        measure_profile(subject.encoder, image, replace(protocol, etas=etas[-1:]), progress=False)  # warm up
        runs = [measure_profile(subject.encoder, image, protocol, progress=False) for _ in range(setting.repeats)]
        rate = float(runs[0].forward_equivalents[0]) / min(run.seconds for run in runs)
        speed = rate * n_operations / 1e9
        table.add(
            subject.name, name, n_operations / 1e6, rate, speed, f"{100 * speed / gemm:.0f}",
            f"{100 * speed / convolution:.0f}",
        )  # fmt: skip


def _gemm(side: int, dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    return lambda: left @ right


def _convolution(channels: int, width: int, batch: int, dtype: torch.dtype, setting: Setting) -> Callable[[], Tensor]:
    images = torch.randn(batch, channels, width, width, device=setting.device)
    weight = torch.randn(channels, channels, 3, 3, device=setting.device)
    images, weight = (t.to(dtype, memory_format=torch.channels_last) for t in (images, weight))
    return lambda: functional.conv2d(images, weight, padding=1)


def _rate(operation: Callable[[], Tensor], n_operations: float, setting: Setting) -> float:
    """Return the best rate in GFLOP/s over some runs."""
    seconds = []
    with torch.no_grad():
        for _ in range(setting.pick(2, 5, 20)):
            start = time.perf_counter()
            operation()
            if setting.device == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
    return n_operations / min(seconds) / 1e9
