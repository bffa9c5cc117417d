"""The encoder as it is measured: detached tensors of one dtype, evaluation mode, features flattened per image.

Paper: section 2 ("a frozen image encoder") and A.2. Needs torch alone.
The module runs through ``functional_call`` on copies of its tensors and of its input, so that an encoder that writes to
them in place changes nothing, low-precision weights are measured in float32, and a float64 twin needs no deepcopy.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jvp

from lit_bump.errors import LitBumpError
from lit_bump.measure.encoder import CallableEncoder

SHARED_TOLERANCE = 1e-3  # of the largest component: shared and plain products round differently, no more


class ForwardDerivativeError(LitBumpError):
    """Signal that a part of the encoder has no forward-mode derivative."""


class ReverseDerivativeError(LitBumpError):
    """Signal that the encoder has no reverse-mode derivative; the measurement goes on without."""


class OutOfMemoryError(RuntimeError):
    """Signal that a batch did not fit; the caller tries a smaller one."""


class FrozenEncoder:
    """Run an encoder on batches of images, and its exact directional derivative.

    Args:
        module: the encoder; its per-module modes must already be those of evaluation (``no_trace``).
        dtype: dtype of the arithmetic.
        device: where the images go.
        channels_last: memory format of the images and of convolution weights; the values are the same, it is faster.

    """

    def __init__(self, module: nn.Module, dtype: torch.dtype, device: torch.device, *, channels_last: bool) -> None:
        self.module = module
        self.dtype = dtype
        self.device = device
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self._faster: Callable[[Tensor], Tensor] | None = None
        self._faster_shape = torch.Size()
        self._shares_primal: bool | None = None  # not yet known
        self.is_scripted = any(isinstance(part, torch.jit.ScriptModule) for part in module.modules())
        self.tensors: dict[str, Tensor] = {}
        if not self.is_scripted:  # functional_call cannot run them
            copies: dict[int, Tensor] = {}  # tied weights stay tied
            for name, tensor in _named_tensors(module):
                if id(tensor) not in copies:
                    copies[id(tensor)] = self._own(tensor)
                self.tensors[name] = copies[id(tensor)]

    def _own(self, tensor: Tensor) -> Tensor:
        own = tensor.detach()
        if own.is_floating_point():
            own = own.to(self.dtype)
        elif own.is_complex():
            own = own.to(torch.complex128 if self.dtype == torch.float64 else torch.complex64)
        if own.dim() == 4 and self.memory_format is torch.channels_last:
            own = own.to(memory_format=torch.channels_last)
        shared = own.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
        return own.clone() if own.is_inference() or shared else own

    def use_faster(self, forward: Callable[[Tensor], Tensor], shape: torch.Size) -> None:
        """Take another forward for batches of one shape; derivatives stay as they are.

        Args:
            forward: images, in this encoder's memory format -> features, equal to the plain ones but for rounding.
            shape: of the batches.

        """
        self._faster, self._faster_shape = forward, shape

    def run_plainly(self, images: Tensor) -> Tensor:
        """Return the flattened features without a faster form and without translating errors."""
        return features_of(self._run(images), len(images))

    def _run(self, images: Tensor) -> Any:
        if self.is_scripted:
            return self.module(images)
        return functional_call(self.module, self.tensors, (images,), tie_weights=False)

    def __call__(self, images: Float[Tensor, "image channel height width"]) -> Float[Tensor, "image feature"]:
        """Return the flattened features.

        Args:
            images: batch in this encoder's dtype, on its device.

        Returns:
            One row an image, in the dtype that the encoder returns.

        Raises:
            OutOfMemoryError: if the batch does not fit.
            RuntimeError: whatever else the encoder raises.
            MemoryError: never; it becomes an OutOfMemoryError.

        """
        try:
            if self._faster is not None and images.shape == self._faster_shape:
                return self._faster(self._copy(images))
            return self.run_plainly(self._copy(images))
        except (RuntimeError, MemoryError) as error:
            raise_out_of_memory(error)
            raise

    def derivative(
        self,
        images: Float[Tensor, "image channel height width"],
        directions: Float[Tensor, "image channel height width"],
    ) -> Float[Tensor, "image feature"]:
        """Return J u for every image and its direction, by forward-mode differentiation.

        Args:
            images: points at which to differentiate.
            directions: one direction an image.

        Returns:
            One row an image.

        Raises:
            ForwardDerivativeError: if a part of the encoder has no forward derivative; the message names it.
            OutOfMemoryError: if the batch does not fit.

        """
        _load_forward_mode()
        try:
            tangent = self._tangent(images, directions)
        except (RuntimeError, MemoryError) as error:  # NotImplementedError is a RuntimeError
            raise_out_of_memory(error)
            where = self._failing_module(images, directions)
            cause = str(error).strip().splitlines()[0][:160]
            raise ForwardDerivativeError(
                f"{where} has no forward-mode derivative ({cause}); replace it by plain torch operations, "
                "or give its autograd.Function a jvp"
            ) from error
        return features_of(tangent, len(images))

    def derivatives(
        self,
        images: Float[Tensor, "image channel height width"],
        directions: Float[Tensor, "image product channel height width"],
    ) -> Float[Tensor, "image product feature"]:
        """Return J u for every image and each of its directions.

        The primal computation is shared by the directions of an image where the encoder allows it, which halves the
        cost; one product is compared with ``derivative`` before that is trusted.

        Args:
            images: points at which to differentiate.
            directions: the same number of directions for every image.

        Returns:
            Products by image and direction.

        Raises:
            ForwardDerivativeError: if a part of the encoder has no forward derivative; the message names it.
            OutOfMemoryError: if the batch does not fit.

        """
        n_images, n_products = directions.shape[:2]
        if n_products > 1 and self._shares_primal is None:
            self._shares_primal = self._can_share_primal(images[:1], directions[:1, :2])
        if n_products > 1 and self._shares_primal:
            try:
                return self._shared_tangents(images, directions)
            except (RuntimeError, MemoryError) as error:
                raise_out_of_memory(error)
                self._shares_primal = False
        rows = self.derivative(images.repeat_interleave(n_products, dim=0), directions.flatten(0, 1))
        return rows.view(n_images, n_products, -1)

    def _shared_tangents(self, images: Tensor, directions: Tensor) -> Tensor:
        points = self._copy(images)
        directions = directions.clone()  # an encoder that writes into its input writes into the tangent too

        def tangent(direction: Tensor) -> Tensor:
            result: Tensor = jvp(lambda x: features_of(self._run(x), len(images)), (points,), (direction,))[1]
            return result

        with warnings.catch_warnings():
            # Of large maps torch takes views one product after the other, which costs nothing; all else is batched.
            warnings.filterwarnings("ignore", message=r".*aten::as_strided_\.")
            return torch.vmap(tangent, in_dims=1, out_dims=1)(directions)

    def _can_share_primal(self, image: Tensor, directions: Tensor) -> bool:
        plain = self.derivative(image, directions[:, 0])  # raises where there is no forward derivative at all
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a slow path, one product after the other
                shared = self._shared_tangents(image, directions)[:, 0]
        except (RuntimeError, MemoryError, ValueError, TypeError, UserWarning) as error:
            raise_out_of_memory(error)
            return False
        difference = (shared - plain).nan_to_num().abs().max()
        return bool(difference <= SHARED_TOLERANCE * plain.nan_to_num().abs().max())

    def cotangent_products(
        self,
        images: Float[Tensor, "image channel height width"],
        cotangents: Float[Tensor, "image product feature"],
    ) -> Float[Tensor, "image product pixel"]:
        """Return the vector-Jacobian products c J for every image and each of its cotangents, by reverse mode.

        Args:
            images: points at which to differentiate.
            cotangents: the same number of feature vectors for every image.

        Returns:
            Products by image and cotangent, flattened over channel, height and width.

        Raises:
            ReverseDerivativeError: if the encoder has no reverse derivative with respect to its images.
            OutOfMemoryError: if the batch does not fit.

        """
        n_products = cotangents.shape[1]
        try:
            with torch.enable_grad():
                points = images.clone().requires_grad_()
                features = features_of(self._run(self._copy(points)), len(images))
                rows = [
                    torch.autograd.grad(features, points, cotangents[:, k].to(features), retain_graph=True)[0]
                    for k in range(n_products)
                ]
        except (RuntimeError, MemoryError) as error:
            raise_out_of_memory(error)
            raise ReverseDerivativeError(str(error).strip().splitlines()[0][:160]) from error
        return torch.stack([row.flatten(1) for row in rows], dim=1)

    def _copy(self, images: Tensor) -> Tensor:
        """Return a copy in this encoder's memory format: an encoder may write into its input."""
        return images.clone(memory_format=self.memory_format)

    def _tangent(self, images: Tensor, directions: Tensor) -> Tensor:
        points, tangents = self._copy(images), self._copy(directions)
        tangent: Tensor = jvp(lambda x: features_of(self._run(x), len(images)), (points,), (tangents,))[1]
        return tangent

    def _failing_module(self, images: Tensor, directions: Tensor) -> str:
        """Return the module that is running when the derivative, taken once more, fails."""
        stack: list[str] = []
        handles = []
        failed_at: list[str] = []
        for name, part in self.module.named_modules():
            label = f"{name or 'the encoder'} ({type(part).__name__})"
            handles.append(part.register_forward_pre_hook(lambda *_, label=label: stack.append(label)))
            handles.append(part.register_forward_hook(lambda *_: stack.pop() and None))
        try:
            self._tangent(images, directions)
        except (RuntimeError, MemoryError):
            failed_at = stack[-1:]
        finally:
            for handle in handles:
                handle.remove()
        return failed_at[0] if failed_at else "the encoder"

    def digest(self) -> str:
        """Return SHA-256 over all tensors of the encoder, or the name of a plain function that has none."""
        state = hashlib.sha256()
        tensors = [*self.module.parameters(), *self.module.buffers()]
        if not tensors:
            function = self.module.function if isinstance(self.module, CallableEncoder) else type(self.module)
            return f"function:{getattr(function, '__qualname__', type(function).__qualname__)}"
        for tensor in tensors:
            flat = tensor.detach().cpu().contiguous()
            state.update(f"{flat.dtype}{tuple(flat.shape)}".encode())
            state.update(flat.reshape(-1).view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
        return state.hexdigest()


def _named_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield parameters and buffers, once for each place that holds them.

    A module registered under two names is one place: ``functional_call``, given both, would swap its tensors twice and
    put back the wrong ones. One tensor in two modules is two places.
    """
    for prefix, part in module.named_modules():
        named = [*part.named_parameters(recurse=False, remove_duplicate=False)]
        named += [*part.named_buffers(recurse=False, remove_duplicate=False)]
        for name, tensor in named:
            yield f"{prefix}.{name}" if prefix else name, tensor


@lru_cache(maxsize=1)
def _load_forward_mode() -> None:
    """Let torch load its forward-mode rules, once, without the deprecation warning that torch gives itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`torch.jit", category=FutureWarning)
        warnings.filterwarnings("ignore", message="`torch.jit", category=DeprecationWarning)
        jvp(torch.sin, (torch.zeros(1),), (torch.ones(1),))


def features_of(output: Any, n_images: int) -> Float[Tensor, "image feature"]:
    """Return an encoder's output as one row of features an image, or say what is wrong with it.

    Args:
        output: what the encoder returned.
        n_images: batch size that it was given.

    Returns:
        The output, flattened per image.

    Raises:
        LitBumpError: if it is no floating-point tensor with one row of features an image.

    """
    if not isinstance(output, Tensor):
        inside = f" with keys {sorted(map(str, output))[:5]}" if isinstance(output, dict) else ""
        raise LitBumpError(
            f"the encoder returned {type(output).__name__}{inside}, not a tensor; pick one: lambda x: model(x)[...]"
        )
    if not output.is_floating_point():
        raise LitBumpError(f"the encoder returned {output.dtype}; features must be floating-point numbers")
    if output.dim() < 1 or output.shape[0] != n_images:
        raise LitBumpError(
            f"the encoder returned shape {tuple(output.shape)} for {n_images} images; it must return a row for each"
        )
    if output.numel() == 0:
        raise LitBumpError(f"the encoder returned shape {tuple(output.shape)}: there are no features in it")
    return output.reshape(n_images, -1)


def raise_out_of_memory(error: BaseException) -> None:
    """Raise ``OutOfMemoryError`` if an error means that memory ran out, on a GPU or on the CPU; else do nothing.

    Args:
        error: what the encoder raised.

    Raises:
        OutOfMemoryError: in that case.

    """
    text = str(error).lower()
    phrases = ("out of memory", "can't allocate memory", "not enough memory")
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(phrase in text for phrase in phrases):
        raise OutOfMemoryError(str(error)) from error
