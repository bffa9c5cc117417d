"""A faster form of the same forward: exported, BatchNorm folded into the convolutions, compiled for one batch shape.

Not in the paper. Needs torch alone; compiling needs a C++ compiler, without which the folded graph runs eagerly. The
user's module is only run, never changed. What comes out is compared with the plain forward before it is trusted, on
two batches, so that a graph which depends on the values of its example is found.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, fx, nn
from torch.utils.flop_counter import FlopCounterMode

from lit_bump.measure.frozen_encoder import FrozenEncoder
from lit_bump.measure.no_trace import no_trace

PAYS_FROM_FLOPS = 5e10  # operations for each part that is compiled: about half a second of a laptop's CPU
_TOLERANCES = {torch.float32: 1e-3, torch.float64: 1e-8, torch.bfloat16: 0.1}  # of a feature vector's length
_LOG = logging.getLogger(__name__)
_said: set[str] = set()


def pays(encoder: FrozenEncoder, image: Float[Tensor, "1 channel height width"], n_forwards: float) -> bool:
    """Return whether so many forwards are enough work to make up for the seconds that compiling takes.

    The decision rests on counted operations and parts, never on a clock: a run that is repeated takes the same path.
    Only CPUs are known to gain; on other devices it is made where it is asked for.

    Args:
        encoder: the encoder.
        image: one image in its dtype, on its device.
        n_forwards: expected in all.

    Returns:
        False also where the operations cannot be counted.

    """
    if encoder.device.type != "cpu":
        return False
    counter = FlopCounterMode(display=False)
    with counter:
        encoder(image)
    n_parts = sum(1 for part in encoder.module.modules() if not list(part.children()))
    return counter.get_total_flops() * n_forwards >= PAYS_FROM_FLOPS * n_parts


def compile_encoder(encoder: FrozenEncoder, images: Float[Tensor, "image channel height width"], chunk: int) -> str:
    """Give an encoder a faster forward for batches of ``chunk`` images, where that can be had.

    Args:
        encoder: the encoder; its calls with that batch shape are faster afterwards.
        images: probe images in its dtype, on its device.
        chunk: batch size.

    Returns:
        What runs now, in words for the record: ``compiled``, ``folded`` (no compiler) or ``eager``.

    """
    if encoder.is_scripted:
        return "eager"
    example = images[torch.arange(chunk) % len(images)]
    other = torch.lerp(example.flip(0), torch.full_like(example, 0.5), 0.3)  # unlike the example, yet a picture
    expected = [encoder(batch) for batch in (example, other)]
    try:
        with no_trace(encoder.module), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, about its parts; a failure is said below
            folded = _folded(encoder, example)
        _check(folded, encoder, (example, other), expected)
    except Exception as error:  # whatever export cannot follow runs as it is
        _say_once("no faster form of the encoder can be exported", error)
        return "eager"
    encoder.use_faster(folded, example.shape)
    _LOG.info("compiling the encoder for batches of %d", chunk)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = _compiled(folded)
            _check(compiled, encoder, (example, other), expected)
    except Exception as error:  # no C++ compiler, say
        _say_once("the encoder cannot be compiled", error)
        return "folded"
    encoder.use_faster(compiled, example.shape)
    return "compiled"


class _Frozen(nn.Module):
    """Run an encoder's own tensors through its module, so that export takes them as constants."""

    def __init__(self, encoder: FrozenEncoder) -> None:
        super().__init__()
        self.forward = encoder.run_plainly  # the encoder is no submodule


def _folded(encoder: FrozenEncoder, example: Tensor) -> fx.GraphModule:
    graph_module = torch.export.export(_Frozen(encoder), (example,), strict=False).module()
    assert isinstance(graph_module, fx.GraphModule)
    _fold_batch_norms(graph_module)
    return graph_module


def _compiled(folded: fx.GraphModule) -> Callable[[Tensor], Tensor]:
    import torch._inductor.config as inductor

    def run(images: Tensor) -> Tensor:
        # measurements run under the stance force_eager, for the sake of what the user has compiled
        with torch.compiler.set_stance("default"), inductor.patch(freezing=True):
            features: Tensor = graph(images)
        return features

    graph = torch.compile(folded, dynamic=False, fullgraph=True)
    return run


def _check(
    faster: Callable[[Tensor], Tensor], encoder: FrozenEncoder, batches: tuple[Tensor, ...], expected: list[Tensor]
) -> None:
    """Compare a faster form with the plain one.

    Raises:
        ValueError: if they differ by more than rounding explains.

    """
    for batch, features in zip(batches, expected, strict=True):
        with torch.no_grad():
            found = faster(batch.clone(memory_format=encoder.memory_format))
        length = features.double().norm(dim=1)
        off = (found.double() - features.double()).norm(dim=1)
        if found.dtype != features.dtype or not bool((off <= _TOLERANCES[encoder.dtype] * length).all()):
            raise ValueError(f"it differs from the plain one by up to {float((off / length).max()):.1e}")


def _fold_batch_norms(graph_module: fx.GraphModule) -> None:
    """Fold every BatchNorm that follows a convolution alone into its weight and bias, computed in float64."""
    aten = torch.ops.aten
    for node in list(graph_module.graph.nodes):
        if node.op != "call_function" or node.target is not aten.batch_norm.default or node.args[5]:
            continue
        convolution = node.args[0]
        if convolution.target is not aten.conv2d.default or len(convolution.users) != 1:
            continue
        scale, shift, mean, variance = (_value(graph_module, argument) for argument in node.args[1:5])
        weight, bias = (_value(graph_module, argument) for argument in (*convolution.args[1:3], None)[:2])
        if weight is None or mean is None or variance is None:
            continue
        factor = (variance.double() + node.args[7]).rsqrt() * (1.0 if scale is None else scale.double())
        offset = (0.0 if bias is None else bias.double()) - mean.double()
        new_bias = offset * factor + (0.0 if shift is None else shift.double())
        new_weight = (weight.double() * factor.view(-1, 1, 1, 1)).to(weight)
        if weight.is_contiguous(memory_format=torch.channels_last):
            new_weight = new_weight.contiguous(memory_format=torch.channels_last)
        arguments = [convolution.args[0]]
        with graph_module.graph.inserting_before(convolution):
            for kind, tensor in (("weight", new_weight), ("bias", new_bias.to(weight))):
                name = f"folded_{kind}_of_{convolution.name}"
                graph_module.register_buffer(name, tensor)
                arguments.append(graph_module.graph.get_attr(name))
        convolution.args = (*arguments, *convolution.args[3:])
        node.replace_all_uses_with(convolution)
        graph_module.graph.erase_node(node)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()


def _value(graph_module: fx.GraphModule, argument: object) -> Tensor | None:
    """Return the tensor that a node of the graph reads; None where it is none, or computed."""
    if not isinstance(argument, fx.Node) or argument.op != "get_attr":
        return None
    value: object = graph_module
    for part in str(argument.target).split("."):
        value = getattr(value, part)
    return value.detach() if isinstance(value, Tensor) else None


def _say_once(what: str, error: Exception) -> None:
    cause = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    if what not in _said:
        _said.add(what)
        warnings.warn(f"{what} ({cause}): measuring goes on with the plain one, more slowly", stacklevel=2)
