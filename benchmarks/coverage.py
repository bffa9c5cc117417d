"""Do the stated errors of estimator ``controlled`` hold?  ``python -m benchmarks.coverage`` prints a Markdown table.

Whole measurements of one image are repeated with independent directions and compared with a float64 truth: an explicit
Jacobian, and many directions that no measurement uses. A repeat is a copy of the image, since the number of an image
is part of the seed of its directions; no copy knows of another. Needs the package alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from lit_bump.measure import Protocol, measure_profile
from lit_bump.measure.directions import directions

SIZE = (3, 8, 8)
TRUTH_SEED = 10**6
HALF_WIDTH = 1.6448536269514722  # standard errors in half a 90 % interval
_BLOCK = 4096  # directions a forward of the truth


@dataclass(frozen=True)
class Case:
    """Name an encoder and what is asked of it.

    Args:
        build: returns the encoder, under a seed that is set before.
        etas: the ladder.
        n_sketch: rows of the sketch.
        n_truth: pairs behind the truth.

    """

    build: Callable[[], nn.Module]
    etas: tuple[float, ...]
    n_sketch: int = 32
    n_truth: int = 100_000


@dataclass(frozen=True)
class Coverage:
    """Hold what repeated measurements of one image show, axis ``rung``; NaN where the noise rule leaves nothing.

    Args:
        truth: the ratio.
        truth_error: its own standard error.
        covered: share of the 90 % intervals that hold the truth.
        stated: root mean square of the stated standard errors.
        spread: standard deviation of the ratios.
        bias: mean of the ratios less the truth.
        n_pairs: mean number of pairs.
        n_kept: ratios that are defined.
        coarse: share of the pairs that were evaluated in low precision.

    """

    truth: np.ndarray
    truth_error: np.ndarray
    covered: np.ndarray
    stated: np.ndarray
    spread: np.ndarray
    bias: np.ndarray
    n_pairs: np.ndarray
    n_kept: np.ndarray
    coarse: np.ndarray

    @property
    def pooled(self) -> float:
        """Share of all intervals, of whatever rung, that hold the truth."""
        return float(np.nansum(self.covered * self.n_kept) / self.n_kept.sum())


class Offset(nn.Module):
    """A small net on a large constant: its smallest rungs are lost in the rounding."""

    def __init__(self, net: nn.Module, scale: float, offset: float) -> None:
        super().__init__()
        self.net, self.scale, self.offset = net, scale, offset

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        features: Tensor = self.scale * self.net(images) + self.offset
        return features


class NearlyLinear(nn.Module):
    """W x with a ripple of a few per cent."""

    def __init__(self, n_features: int = 6) -> None:
        super().__init__()
        self.linear = nn.Linear(192, n_features)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        features: Tensor = self.linear(images.flatten(1))
        return features + 0.05 * torch.sin(3 * features)


class Thresholds(nn.Module):
    """W x, and units that a step in few directions switches on, with a large effect: a heavy upper tail of D."""

    def __init__(self, n_features: int = 8, n_units: int = 6, gain: float = 2.0, threshold: float = 0.3) -> None:
        super().__init__()
        self.linear, self.units = nn.Linear(192, n_features), nn.Linear(192, n_units, bias=False)
        self.gain, self.threshold = gain, threshold

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        centred = images.flatten(1) - 0.5
        jump = nn.functional.relu(self.units(centred) - self.threshold)
        return torch.cat([self.linear(centred), self.gain * jump], dim=1)


def _conv_net(activation: type[nn.Module], gain: float, bias: float, channels: int = 8) -> nn.Module:
    """Return a net of two convolutions; a negative bias leaves units that only a large step switches on."""
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), activation(), nn.Conv2d(8, channels, 3, stride=2), activation(), nn.Flatten()
    )
    with torch.no_grad():
        for part in net:
            if isinstance(part, nn.Conv2d):
                part.weight.mul_(gain)
                part.bias.fill_(bias)  # type: ignore[union-attr]
    return net


_LADDER = (0.03, 0.3, 1.0, 2.0, 5.0, 15.0)
CASES: dict[str, Case] = {
    "relu": Case(lambda: _conv_net(nn.ReLU, 5.0, -0.6), _LADDER),
    "gelu": Case(lambda: _conv_net(nn.GELU, 4.0, -0.5), _LADDER),
    "nearly linear": Case(NearlyLinear, _LADDER),
    "heavy tail": Case(Thresholds, (1.0, 3.0, 5.0, 8.0, 12.0, 30.0), n_truth=400_000),
    "near the noise": Case(
        lambda: Offset(_conv_net(nn.ReLU, 5.0, -0.6), 1e-3, 1000.0), (0.1, 0.3, 0.6, 1.2, 2.5, 10.0)
    ),
    "sketched": Case(lambda: _conv_net(nn.ReLU, 3.0, -0.4, channels=40), _LADDER, n_sketch=8),
    "sketched, 4 rows": Case(lambda: _conv_net(nn.GELU, 4.0, -0.5, channels=40), _LADDER, n_sketch=4),
    "no sketch": Case(lambda: _conv_net(nn.GELU, 4.0, -0.5), _LADDER, n_sketch=0),
}


def encoder_of(case: Case) -> nn.Module:
    """Return the case's encoder, leaving the global random stream as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return case.build().eval()


def shown_image() -> Tensor:
    """Return the image."""
    return torch.rand(1, *SIZE, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def truth(case: Case, image: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratios and their standard errors: explicit Jacobian, ``n_truth`` pairs, all in float64.

    The exact quadratic form is a control variate, with a slope fitted on all pairs.

    Returns:
        Two arrays, axis ``rung``.

    """
    net, point = encoder_of(case).double(), image.double()
    base = net(point)
    jacobian = torch.func.jacrev(lambda x: net(x.view(point.shape)).flatten())(point.flatten())
    trace = float(jacobian.square().sum()) / point.numel()
    quadratic, values = [], []
    for start in range(0, case.n_truth, _BLOCK):
        stop = min(start + _BLOCK, case.n_truth)
        u = directions(start, stop, point.numel(), seed=TRUTH_SEED, image=0).double()
        quadratic.append((u @ jacobian.T).square().sum(dim=1) / trace)
        rungs = []
        for eta in case.etas:
            step = (eta * u).view(-1, *SIZE)
            two = sum((net(point + sign * step) - base).square().sum(dim=1) for sign in (1.0, -1.0))
            rungs.append(two / (2 * eta * eta * trace))
        values.append(torch.stack(rungs, dim=1))
    c, d = torch.cat(quadratic) - 1.0, torch.cat(values)
    centred = c - c.mean()
    slope = centred @ d / centred.square().sum()
    ratio = d.mean(dim=0) - slope * c.mean()
    residual = d - d.mean(dim=0) - slope * centred[:, None]
    return ratio.numpy(), (residual.std(dim=0) / np.sqrt(len(c))).numpy()


@contextmanager
def low_precision(allowed: bool) -> Iterator[None]:
    """Let bfloat16 be tried, or not, whatever the processor is good at."""
    with mock.patch("lit_bump.measure.coarse_encoder.has_fast_bfloat16", return_value=allowed):
        yield


def coverage(
    case: Case,
    *,
    target: float,
    n_repeats: int,
    coarse: bool = False,
    known: tuple[np.ndarray, np.ndarray] | None = None,
) -> Coverage:
    """Return what repeated measurements of a case show.

    Args:
        case: what to measure.
        target: standard error over ratio that is asked for.
        n_repeats: measurements, each with its own directions.
        coarse: whether bfloat16 is tried.
        known: the truth, where it is there already.

    Returns:
        The record.

    """
    image = shown_image()
    ratio, ratio_error = known or truth(case, image)
    made = Protocol.accurate(SIZE) if target <= 0.02 else Protocol.quick(SIZE)
    protocol = replace(
        made, etas=case.etas, target_se=target, n_sketch=case.n_sketch, precision="auto" if coarse else "float32"
    )
    with low_precision(coarse):
        profile = measure_profile(
            encoder_of(case), image.expand(n_repeats, *SIZE).contiguous(), protocol, progress=False
        )
    kept = np.isfinite(profile.ratio)
    inside = np.abs(profile.ratio - ratio) <= HALF_WIDTH * profile.standard_error
    inside |= np.isclose(profile.ratio, ratio, rtol=1e-6)  # float32's rounding, where the error is stated as nothing

    def mean(values: np.ndarray) -> np.ndarray:
        chosen = np.where(kept, values, 0.0).sum(axis=0)
        return np.where(kept.any(axis=0), chosen / np.maximum(kept.sum(axis=0), 1), np.nan)

    centre = mean(profile.ratio)
    return Coverage(
        truth=ratio,
        truth_error=ratio_error,
        covered=mean(inside),
        stated=np.sqrt(mean(np.square(profile.standard_error))),
        spread=np.sqrt(mean(np.square(profile.ratio - centre))),
        bias=centre - ratio,
        n_pairs=mean(profile.n_directions / 2),
        n_kept=kept.sum(axis=0),
        coarse=mean(profile.n_coarse / profile.n_directions),
    )


def _table_rows(name: str, case: Case, found: Coverage) -> Iterator[str]:
    yield f"| {name} | all | | {100 * found.pooled:.1f} | | | | {np.nanmean(found.n_pairs):.0f} | |"
    for k, eta in enumerate(case.etas):
        if not found.n_kept[k]:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = [found.stated[k] / found.spread[k], found.bias[k] / found.spread[k]]
            scaled.append(found.truth_error[k] / found.stated[k])
        yield (
            f"| | {eta:g} | {found.truth[k]:.3f} | {100 * found.covered[k]:.1f} | {scaled[0]:.2f} | {scaled[1]:+.2f} | "
            f"{scaled[2]:.2f} | {found.n_pairs[k]:.0f} | {100 * found.coarse[k]:.0f} |"
        )


def main() -> None:
    """Print coverage of the encoders that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="measurements of every encoder")
    parser.add_argument("--encoders", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--targets", nargs="+", type=float, default=[0.03, 0.01])
    parser.add_argument("--precision", nargs="+", choices=["float32", "auto"], default=["float32", "auto"])
    parser.add_argument("--pooled", action="store_true", help="no rungs")
    options = parser.parse_args()
    print(f"{options.seeds} measurements of one image of {SIZE}; intervals of 90 %\n")
    columns = ["encoder, target, precision", "eta", "r", "covered %", "stated / spread", "bias / spread"]
    columns += ["truth's error / stated", "pairs", "coarse %"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name in options.encoders:
        case = CASES[name]
        known = truth(case, shown_image())
        for target in options.targets:
            for precision in options.precision:
                start = time.perf_counter()
                found = coverage(case, target=target, n_repeats=options.seeds, coarse=precision == "auto", known=known)
                label = f"{name}, {target:g}, {precision} ({time.perf_counter() - start:.0f} s)"
                rows = list(_table_rows(label, case, found))
                print("\n".join(rows[:1] if options.pooled else rows), flush=True)


if __name__ == "__main__":
    main()
