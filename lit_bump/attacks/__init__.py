"""Attacks on the images of a classifier: projected gradient descent, as plain functions over any callable.

Paper: fig. 2a (adversarially trained encoders). Needs torch alone; never Lightning. Everything is in raw [0, 1] pixels:
the normalisation is inside the model, so that a radius means the same for every model.
"""

from lit_bump.attacks.attack_mode import attack_mode
from lit_bump.attacks.norm_ball import ascent_step, projected, random_start
from lit_bump.attacks.pgd import PGD, attacked

__all__ = ["PGD", "ascent_step", "attack_mode", "attacked", "projected", "random_start"]
