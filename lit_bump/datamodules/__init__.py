"""Lightning data modules: shapes and CIFAR-10, each clean, blurred, with permuted labels, or as noise.

Paper: A.2 "Training" (the variants). May import ``images`` and ``probes``. Batches are images in [0, 1] and labels;
normalisation is the network's. The folder ``datamodules`` at the root is a link to this one, for readers only.
"""

from __future__ import annotations

if __name__ != "lit_bump.datamodules":  # through the link at the root: every class would exist twice
    raise ImportError(f"import lit_bump.datamodules instead of {__name__}: that folder is a link for readers")
