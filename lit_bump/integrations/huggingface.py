"""A callback for the Trainer of Hugging Face transformers: response profiles at logarithmic steps.

Paper: section 3 "Formation". Needs transformers, which lit_bump does not install.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn
from transformers import TrainerCallback

from lit_bump.integrations.prober import Prober
from lit_bump.probes import ProbeSet


class ProberCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Measure the model of a ``transformers.Trainer``.

    Args:
        probes: probe sets, or names that the registry knows.
        encoder: the trained model -> Phi, a module or callable images in [0, 1] pixels -> features; for instance
            ``lambda model: lambda images: model.vit(images).pooler_output``.
        log_dir: folder of the profiles; the Trainer's output folder if None.
        options: of ``Prober``, such as ``protocol``, ``schedule``, ``mean``, ``std``, ``max_share``.

    Example::

        trainer = Trainer(model, arguments, train_dataset=data, callbacks=[ProberCallback(probe, encoder)])

    """

    def __init__(
        self,
        probes: ProbeSet | str | Sequence[ProbeSet | str],
        encoder: Callable[[Any], nn.Module | Callable[..., Any]],
        log_dir: str | None = None,
        **options: Any,
    ) -> None:
        self.probes, self.encoder, self.log_dir, self.options = probes, encoder, log_dir, options
        self.prober: Prober | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure the initialisation, or go on where a resumed run is."""
        if not state.is_world_process_zero:
            return
        folder = Path(self.log_dir or args.output_dir)
        self.prober = Prober(self.probes, folder, total_steps=int(state.max_steps), **self.options)
        self.prober(int(state.global_step), self.encoder(kwargs["model"]))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure where an optimiser step is due."""
        if self.prober is not None:
            self.prober(int(state.global_step), self.encoder(kwargs["model"]))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure the last step, draw the figures, print the table."""
        if self.prober is not None:
            self.prober.close(self.encoder(kwargs["model"]))
