"""Encoders from checkpoints of training runs: this package's own, or of any LightningModule that the user names.

Paper: A.2 "Training". Needs Lightning to build the module. The normalisation is inside our networks; of other modules
it is taken to be inside, and said.
"""

from __future__ import annotations

from torch import nn

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork
from lit_bump.encoders.normalisation_inside import normalisation_inside
from lit_bump.encoders.preprocessing import Preprocessing
from lit_bump.measure import MethodEncoder
from lit_bump.runs.checkpoint_module import load_module
from lit_bump.runs.saved_run import SavedRun

_SIDE = 32  # pixels of CIFAR-10 and of the drawn shapes


def load_training_checkpoint(spec: EncoderSpec) -> LoadedNetwork:
    """Load the module of a checkpoint.

    Args:
        spec: ``ckpt:FILE``, or a run's folder for its last checkpoint; ``module`` names the class where the file does
            not.

    Returns:
        The module; its features are ``forward_features`` where there is one, else its output.

    Raises:
        LitBumpError: if there is no such checkpoint, its class is unknown, or its weights do not fit.

    """
    run = SavedRun.find(spec.name)
    step = list(run.checkpoints())[-1:]
    module = load_module(run, model=spec.options.get("module"))
    has_features = callable(getattr(module, "forward_features", None))
    features: nn.Module = MethodEncoder(module, "forward_features") if has_features else module
    side = spec.size or _SIDE
    inside = normalisation_inside(module)
    where = f"inside, in {inside}" if inside else "taken to be inside: none was found"
    label = f"{run.name}{f' step {step[0]:,}' if step else ''}"
    return LoadedNetwork(
        module,
        features,
        "forward_features" if has_features else "output of the module",
        Preprocessing(side, (side, side)),
        None,
        None,
        f"checkpoint {spec.name}",
        label,
        (f"every tensor of {type(module).__name__} loaded", f"normalisation {where}"),
        {"step": step[0] if step else None},
    )
