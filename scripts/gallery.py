"""Measure one model of every timm family, with random weights, and print which run, how fast, and why others do not.

Not in the paper. ``python scripts/gallery.py --out FILE``. The point is the machinery: derivatives, precision, noise
rule and features of every architecture without anybody's action; random weights say nothing about trained models.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import timm
import torch

from lit_bump.encoders import load_encoder
from lit_bump.errors import LitBumpError
from lit_bump.images import draw_shapes
from lit_bump.measure import Profile, Protocol, measure_profile

_SMALL = (
    "test_", "atto", "femto", "pico", "nano", "xxt", "xxs", "xs", "zepto", "tiny", "mini", "small", "lite", "_s", "_0",
    "18", "10", "_t", "b0", "050", "_n",
)  # fmt: skip
_CANDIDATES = 5  # of a family, built without memory to find the one of the fewest parameters
_COLUMNS = ("family", "model", "parameters, M", "images", "features", "seconds", "max r", "engine")
HEAD = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|"


def families(only: str) -> Iterator[tuple[str, str, float]]:
    """Yield every family with its smallest model.

    Args:
        only: a part of the family's name; empty for all.

    Yields:
        Family, model, and millions of parameters.

    """
    for family in timm.list_modules():
        if only not in family:
            continue
        names = sorted(
            timm.list_models(module=family), key=lambda name: (-sum(mark in name for mark in _SMALL), len(name))
        )
        sizes = {}
        for name in names[:_CANDIDATES]:
            try:
                with torch.device("meta"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    network = timm.create_model(name)
            except Exception:  # some cannot be built without memory
                continue
            sizes[name] = sum(parameter.numel() for parameter in network.parameters()) / 1e6
        if sizes:
            smallest = min(sizes, key=sizes.__getitem__)
            yield family, smallest, sizes[smallest]
        elif names:
            yield family, names[0], float("nan")


def measured_row(family: str, name: str, millions: float, seconds: int) -> str:
    """Measure a model, at 64 pixels where it takes them.

    Args:
        family: for the table.
        name: of the model.
        millions: of parameters.
        seconds: that it may take.

    Returns:
        A row of the table; the reason in one line where it could not be measured.

    """
    reason = ""
    for size in (64, 96, 128, None):
        spec = f"random:timm:{name}" + (f"@size={size}" if size else "")
        try:
            with limit(seconds), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                encoder = load_encoder(spec)
                shapes = draw_shapes(2, seed=0, split="test")[0].float() / 255
                images = torch.stack([encoder.preprocessing(image) for image in shapes])
                protocol = Protocol.quick(encoder.input_size)
                began = time.perf_counter()
                profile = measure_profile(encoder, images, protocol, progress=False)
                taken = time.perf_counter() - began
        except (LitBumpError, RuntimeError, TimeoutError, TypeError, ValueError, AssertionError) as error:
            kind = "" if isinstance(error, LitBumpError) else f"{type(error).__name__}: "
            reason = kind + " ".join(str(error).split())[:160]
            if isinstance(error, TimeoutError):
                break
            continue
        px = f"{encoder.input_size[1]} px"
        cells = (
            family,
            name,
            f"{millions:.1f}",
            px,
            encoder.n_features,
            f"{taken:.1f}",
            _height(profile),
        )
        return "| " + " | ".join(map(str, (*cells, profile.context["engine"]))) + " |"
    return f"| {family} | {name} | {millions:.1f} | - | - | - | - | {reason.replace('|', '/')} |"


def _height(profile: Profile) -> str:
    bump = profile.bump()
    return "undefined" if bump.verdict == "undefined" else f"{bump.height:.3g}"


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """End a block that takes too long.

    Raises:
        TimeoutError: in that case.

    """

    def late(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    """Print the table, row by row, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a family's name")
    parser.add_argument("--limit", type=int, default=10**6, help="families at most")
    parser.add_argument("--seconds", type=int, default=120, help="a model may take")
    parser.add_argument("--out", type=Path, help="Markdown file")
    options = parser.parse_args()
    rows = [HEAD]
    print(HEAD, flush=True)
    for number, (family, name, millions) in enumerate(families(options.only)):
        if number >= options.limit:
            break
        rows.append(measured_row(family, name, millions, options.seconds))
        print(rows[-1], flush=True)
        if options.out is not None:
            options.out.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
