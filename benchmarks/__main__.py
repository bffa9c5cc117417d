"""Measured claims: time against the obvious code, and peak memory at 224 px.  ``python -m benchmarks``.

Both sides run in one process, in turn, so that a noisy machine disturbs both; the ratio is what counts.
Needs the package and torchvision. Random weights do for speed.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time

import torch
from torch import nn

from benchmarks.naive import naive_ratio
from lit_bump.measure import Protocol, measure_profile
from lit_bump.networks import ResNet18


class _Features(nn.Module):
    """Phi of a classifier, as a module."""

    def __init__(self, network: ResNet18) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.network.forward_features(images)


def engine(n_pairs: int, n_jvp: int, repeats: int, width: int) -> None:
    """Print the time of one image under the paper's ladder, ours and the obvious code's, in turn."""
    torch.manual_seed(0)
    encoder = _Features(ResNet18(width=width)).eval()
    image = torch.rand(3, 32, 32)
    etas = Protocol.paper((3, 32, 32)).etas
    protocol = Protocol(etas=etas, n_pairs=n_pairs, n_jvp=n_jvp)
    ours, naive = [], []
    naive_ratio(encoder, image, etas[:2], 128, 64)  # warm up both sides
    measure_profile(encoder, image[None], Protocol(etas=etas[:2], n_pairs=64, n_jvp=16), progress=False)
    for _ in range(repeats):
        start = time.perf_counter()
        naive_ratio(encoder, image, etas, n_pairs, n_jvp)
        middle = time.perf_counter()
        measure_profile(encoder, image[None], protocol, progress=False)
        naive.append(middle - start)
        ours.append(time.perf_counter() - middle)
    print(f"ResNet-18 width {width}, one image of 3x32x32, 17 rungs, {n_pairs} pairs, {n_jvp} JVPs, n = {repeats}:")
    print(f"  obvious code {min(naive):.1f} s, lit_bump {min(ours):.1f} s (noise rule and checks included)")
    print(f"  ratio {min(naive) / min(ours):.2f} (above 1: lit_bump is faster)")


def memory(n_pairs: int) -> None:
    """Print the peak memory of a process that measures ResNet-18 at 224 px, and what torch alone takes."""
    code = (
        "import resource, sys, torch, torchvision\n"
        "from lit_bump.measure import Protocol, measure_profile\n"
        "net = torchvision.models.resnet18(weights=None)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "protocol = Protocol(etas=Protocol.paper((3, 224, 224)).etas[8:9], n_pairs=int(sys.argv[1]), n_jvp=64)\n"
        "measure_profile(net, torch.rand(2, 3, 224, 224), protocol, progress=False)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(f'  {after / 2**20:.2f} GB at its peak, {before / 2**20:.2f} GB before measuring')\n"
    )
    print(f"torchvision ResNet-18 at 3x224x224, 2 images, {n_pairs} pairs, one rung:", flush=True)
    subprocess.run([sys.executable, "-c", code, str(n_pairs)], check=True)


def main() -> None:
    """Run the benchmarks that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=["all", "engine", "memory"], default="all")
    parser.add_argument("--n_pairs", type=int, default=1024)
    parser.add_argument("--n_jvp", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--width", type=int, default=16)
    options = parser.parse_args()
    print(f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    if options.part in ("all", "engine"):
        engine(options.n_pairs, options.n_jvp, options.repeats, options.width)
    if options.part in ("all", "memory"):
        memory(options.n_pairs // 8)


if __name__ == "__main__":
    main()
