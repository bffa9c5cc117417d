"""Train image encoders and measure, scale by scale, how far they depart from their local linear description.

The names below load on first use (PEP 562): ``import lit_bump`` itself imports neither torch nor lightning, so the
command line answers ``--help`` at once and TensorBoard may import us at its start. Paper: section 2 defines the
measured ratio. A new public name goes into ``_HOME`` and beneath ``TYPE_CHECKING``; a test holds the two together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lit_bump.attacks import PGD as PGD
    from lit_bump.attacks import attacked as attacked
    from lit_bump.callbacks import RProfileCallback as RProfileCallback
    from lit_bump.callbacks import StepCheckpoint as StepCheckpoint
    from lit_bump.datamodules import BlurredCIFAR10DataModule as BlurredCIFAR10DataModule
    from lit_bump.datamodules import BlurredShapesDataModule as BlurredShapesDataModule
    from lit_bump.datamodules import CIFAR10DataModule as CIFAR10DataModule
    from lit_bump.datamodules import NoiseCIFAR10DataModule as NoiseCIFAR10DataModule
    from lit_bump.datamodules import NoiseShapesDataModule as NoiseShapesDataModule
    from lit_bump.datamodules import PermutedLabelsCIFAR10DataModule as PermutedLabelsCIFAR10DataModule
    from lit_bump.datamodules import PermutedLabelsShapesDataModule as PermutedLabelsShapesDataModule
    from lit_bump.datamodules import ShapesDataModule as ShapesDataModule
    from lit_bump.encoders import Encoder as Encoder
    from lit_bump.encoders import load_encoder as load_encoder
    from lit_bump.errors import LitBumpError as LitBumpError
    from lit_bump.integrations import Prober as Prober
    from lit_bump.integrations import ResponseProfile as ResponseProfile
    from lit_bump.measure import Bump as Bump
    from lit_bump.measure import Formation as Formation
    from lit_bump.measure import Profile as Profile
    from lit_bump.measure import Protocol as Protocol
    from lit_bump.measure import load_formation as load_formation
    from lit_bump.measure import measure_profile as measure_profile
    from lit_bump.measure import no_trace as no_trace
    from lit_bump.measure import paired_difference as paired_difference
    from lit_bump.modules import AdversarialClassifierModule as AdversarialClassifierModule
    from lit_bump.modules import AdversarialMixin as AdversarialMixin
    from lit_bump.modules import ClassifierModule as ClassifierModule
    from lit_bump.networks import VGG16 as VGG16
    from lit_bump.networks import ResNet18 as ResNet18
    from lit_bump.networks import WideResNet28x10 as WideResNet28x10
    from lit_bump.networks import build_network as build_network
    from lit_bump.probes import ImageSet as ImageSet
    from lit_bump.probes import ProbeSet as ProbeSet
    from lit_bump.probes import image_set as image_set
    from lit_bump.probes import named_probe_set as named_probe_set
    from lit_bump.probing import ProbeResult as ProbeResult
    from lit_bump.probing import load_results as load_results
    from lit_bump.probing import probe as probe
    from lit_bump.runs import SavedRun as SavedRun
    from lit_bump.runs import measure_run as measure_run
    from lit_bump.schedules import LogSteps as LogSteps

    __version__: str

_PUBLIC = {
    "attacks": ("PGD", "attacked"),
    "errors": ("LitBumpError",),
    "measure": (
        "Bump",
        "Formation",
        "Profile",
        "Protocol",
        "load_formation",
        "measure_profile",
        "no_trace",
        "paired_difference",
    ),
    "networks": ("ResNet18", "VGG16", "WideResNet28x10", "build_network"),
    "probes": ("ImageSet", "ProbeSet", "image_set", "named_probe_set"),
    "probing": ("ProbeResult", "load_results", "probe"),
    "encoders": ("Encoder", "load_encoder"),
    "schedules": ("LogSteps",),
    "modules": ("AdversarialClassifierModule", "AdversarialMixin", "ClassifierModule"),
    "datamodules": (
        "BlurredCIFAR10DataModule",
        "BlurredShapesDataModule",
        "CIFAR10DataModule",
        "NoiseCIFAR10DataModule",
        "NoiseShapesDataModule",
        "PermutedLabelsCIFAR10DataModule",
        "PermutedLabelsShapesDataModule",
        "ShapesDataModule",
    ),
    "callbacks": ("RProfileCallback", "StepCheckpoint"),
    "integrations": ("Prober", "ResponseProfile"),
    "runs": ("SavedRun", "measure_run"),
}
_HOME = {name: f"lit_bump.{module}" for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *_HOME]


def _load(name: str) -> object:
    """Import a public name, or read the version of the installed package, on its first use.

    Args:
        name: the attribute asked for.

    Returns:
        The class, function or string of that name; it is kept, so a second use costs nothing.

    Raises:
        AttributeError: if the package has no such name; the message gives the nearest one.

    """
    if name == "__version__":
        value: object = _installed_version()
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'lit_bump' has no attribute {name!r}{_hint(name)}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a type checker takes the names from the imports above, and refuses all others
    __getattr__ = _load


def __dir__() -> list[str]:
    """List the public names, loaded or not.

    Returns:
        The names, sorted.

    """
    return sorted({*globals(), *__all__})


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lit-bump")
    except PackageNotFoundError:  # a checkout on the path, never installed
        return "0+unknown"


def _hint(name: str) -> str:
    if name.startswith("_"):
        return ""
    from lit_bump.errors import nearest

    return nearest(name, _HOME)
