"""LightningModules that train the paper's classifiers.

Paper: A.2 "Training". Imports Lightning, torchmetrics and the networks.
A module takes raw [0, 1] pixels: the normalisation is inside its network, not in the data pipeline.
"""

from lit_bump.modules.adversarial import AdversarialClassifierModule, AdversarialMixin
from lit_bump.modules.classifier import ClassifierModule

__all__ = ["AdversarialClassifierModule", "AdversarialMixin", "ClassifierModule"]
