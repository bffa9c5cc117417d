"""Training loops without Lightning's Trainer: a prober for any loop, a torchmetrics metric, a Hugging Face callback."""

from __future__ import annotations

from lit_bump.integrations.prober import Prober as Prober
from lit_bump.integrations.response_profile import ResponseProfile as ResponseProfile
