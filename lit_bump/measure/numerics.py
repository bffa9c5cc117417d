"""The state of torch in which every measurement runs: full float32, exact attention, no autocast, no gradients.

Paper: A.2 (exact Jacobian-vector products; rungs near the floating-point resolution). Needs torch alone.
TF32 and bfloat16 shortcuts round far above the displacement of the smallest rungs. torch keeps two generations of
switches for them that refuse to be read after one another; both are set and put back here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

_NODES = ("cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn", "")


@contextmanager
def exact_numerics(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Run a block in full precision without gradients; put every switch back afterwards, also on an exception.

    Args:
        device: where the encoder runs.
        dtype: default dtype for tensors that the encoder makes.

    Yields:
        Nothing.

    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))  # torch.func transforms need ordinary tensors
        stack.enter_context(torch.no_grad())
        for kind in {device.type, "cpu"}:
            stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(_ieee_float32())
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the only attention kernel with a forward derivative
        stack.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(dtype)
        if hasattr(torch.compiler, "set_stance"):
            # compiled regions drop tangents silently, and our odd batches would recompile the user's training graph
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        if device.type == "cuda":
            stack.callback(setattr, torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
            stack.callback(setattr, torch.backends.cudnn, "deterministic", torch.backends.cudnn.deterministic)
            torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
        yield


@contextmanager
def _ieee_float32() -> Iterator[None]:
    new = {name: node.fp32_precision for name in _NODES if hasattr(node := _node(name), "fp32_precision")}
    old = {key: _read_legacy(read) for key, (read, _) in _LEGACY.items()}
    try:
        for key, exact in (("cuda", False), ("cudnn", False), ("matmul", "highest")):
            _LEGACY[key][1](exact)
        for name in new:
            if _node(name).fp32_precision not in ("none", "ieee"):
                _node(name).fp32_precision = "ieee"
        yield
    finally:
        for key, value in old.items():
            if value is not None:
                _LEGACY[key][1](value)
        for name in reversed(new):  # the general switch first: setting it overrides the particular ones
            _node(name).fp32_precision = new[name]


def _node(name: str) -> Any:
    node: Any = torch.backends
    for part in filter(None, name.split(".")):
        node = getattr(node, part, None)
    return node


def _set_cuda(value: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = value


def _set_cudnn(value: bool) -> None:
    torch.backends.cudnn.allow_tf32 = value


_LEGACY: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {  # matmul last: "cuda" overwrites it
    "cuda": (lambda: torch.backends.cuda.matmul.allow_tf32, _set_cuda),
    "cudnn": (lambda: torch.backends.cudnn.allow_tf32, _set_cudnn),
    "matmul": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
}


def _read_legacy(read: Callable[[], Any]) -> Any:
    """Return an old switch; torch refuses while it contradicts the new ones, so those are tried in each state."""
    try:
        return read()
    except RuntimeError:
        pass
    saved = {name: node.fp32_precision for name in _NODES if hasattr(node := _node(name), "fp32_precision")}
    try:
        for state in ("ieee", "tf32", "none"):
            for name in saved:
                try:
                    _node(name).fp32_precision = state
                except RuntimeError:
                    continue
            try:
                return read()
            except RuntimeError:
                continue
        return None
    finally:
        for name in reversed(saved):
            _node(name).fp32_precision = saved[name]
