"""One cell of the grid: an encoder on an image set, in blocks of images that are kept as soon as they are measured.

Paper: A.2. Blocks are fixed by the size of the images alone, so that a block has the same numbers whichever process
measures it, and after whatever interruption. A block belongs to weights, images and protocol: with any other it has
another name, and is never taken for one of these.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lit_bump.encoders import Encoder
from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, measure_parts
from lit_bump.probes import ImageSet, ProbeSet
from lit_bump.probing.results import profile_path, slug
from lit_bump.whole_file import whole_file

_SMALL = 128  # pixels: up to here a block is of 8 images, above of 4
Block = tuple[int, int]


@dataclass(frozen=True)
class ProbeCell:
    """Hold what is measured, and where it is kept.

    Args:
        encoder: Phi.
        images: the set.
        protocol: for the encoder's input size.
        folder: of all results.

    """

    encoder: Encoder
    images: ImageSet
    protocol: Protocol
    folder: Path

    @property
    def path(self) -> Path:
        """Where the finished profile is, or will be."""
        return profile_path(self.folder, slug(self.encoder.spec), self.images.name)

    @property
    def key(self) -> str:
        """SHA-256 over all that the numbers depend on."""
        facts = self.encoder.facts()
        parts = [
            *(facts[name] for name in ("spec", "feature", "weights_digest", "preprocessing", "mean", "std")),
            facts.get("code_digest", ""),  # of a function of the user's: no tensor tells when it was edited
            self.images.digest,
            self.protocol.to_dict(),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def parts(self) -> Path:
        """Folder of the blocks of a cell that is not finished."""
        return self.folder / "parts" / self.key[:24]

    def __str__(self) -> str:
        """Return encoder and images in words."""
        return f"{self.encoder.label} on {self.images.name}"

    def finished(self) -> Profile | None:
        """Return the profile, where it is there with the same weights, images and protocol."""
        if not self.path.is_file():
            return None
        profile = Profile.load(self.path)
        return profile if profile.context.get("cell") == self.key else None

    def blocks(self) -> list[Block]:
        """Return first image and the one after the last of every block."""
        size = 8 if max(self.encoder.input_size[1:]) <= _SMALL else 4
        return [(start, min(start + size, len(self.images))) for start in range(0, len(self.images), size)]

    def missing(self) -> list[Block]:
        """Return the blocks that are not there."""
        return [block for block in self.blocks() if not self._part(block).is_file()]

    def measure(
        self, blocks: list[Block], *, rank: int, chunk: int | None, progress: Callable[[int, int], None], device: Any
    ) -> None:
        """Measure blocks, and keep each at once.

        Args:
            blocks: some of those that are missing.
            rank: of this process.
            chunk: perturbed images a forward.
            progress: told (done, total) in perturbed images.
            device: where the encoder is.

        Raises:
            LitBumpError: if images or encoder cannot be measured.

        """
        self._failure(rank).unlink(missing_ok=True)
        probe: ProbeSet = self.images.prepared(self.encoder.preprocessing)
        images = probe.images.to(device)
        measured = measure_parts(self.encoder, images, self.protocol, blocks, chunk=chunk, progress=progress)
        for block, profile in zip(blocks, measured, strict=True):
            profile.save(self._part(block))

    def fail(self, rank: int, reason: str) -> None:
        """Keep the reason why a process could not measure its blocks, for the one that joins them.

        Args:
            rank: of the process.
            reason: in one line.

        """
        with whole_file(self._failure(rank)) as partial:
            partial.write_text(reason, encoding="utf-8")

    def join(self) -> Profile:
        """Join the blocks to the profile of the set, and remove them.

        Returns:
            The profile, saved.

        Raises:
            LitBumpError: if a block is missing.

        """
        if missing := self.missing():
            start, stop = missing[0]
            reasons = [file.read_text(encoding="utf-8") for file in sorted(self.parts.glob("failed_*.txt"))]
            raise LitBumpError(reasons[0] if reasons else f"images {start} to {stop - 1} were not measured")
        profiles = [Profile.load(self._part(block)) for block in self.blocks()]
        joined = Profile.concatenate(profiles)
        facts = {
            "cell": self.key,
            "encoder": self.encoder.label,
            "encoder_facts": self.encoder.facts(),
            "probe": self.images.name,
            "images_source": self.images.source,
            "images_digest": self.images.digest,
            "images_notes": list(self.images.notes),
            "device": "; ".join(dict.fromkeys(str(profile.context.get("device")) for profile in profiles)),
            "files": list(self.images.names),
        }
        joined = replace(joined, seconds=sum(profile.seconds for profile in profiles)).with_context(**facts)
        joined.save(self.path)
        shutil.rmtree(self.parts, ignore_errors=True)
        return joined

    def _failure(self, rank: int) -> Path:
        return self.parts / f"failed_{rank:05d}.txt"

    def _part(self, block: Block) -> Path:
        return self.parts / f"images_{block[0]:05d}-{block[1] - 1:05d}.npz"
