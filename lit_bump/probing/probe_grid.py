"""The grid: every encoder on every image set, by one process or by many, finished cells never measured again.

Paper: figs. 1a, 1b, 3 to 5, A.2. Processes share nothing but the folder: each measures its blocks and writes them
there; the first joins them. The numbers are the same for any number of processes and after any interruption.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from lit_bump.callbacks.protocol_choice import ProtocolChoice, chosen_protocol
from lit_bump.encoders import Encoder, load_encoders
from lit_bump.errors import LitBumpError
from lit_bump.measure import Protocol
from lit_bump.probes import ImageSet, image_set
from lit_bump.probes.image_manifest import save_manifest
from lit_bump.probing.probe_cell import ProbeCell
from lit_bump.probing.probe_progress import ProbeProgress
from lit_bump.probing.results import ProbeResult, is_probe_folder, load_results, slug, write_record


class IncompleteProbeError(LitBumpError):
    """Signal that some profiles could not be measured; the others are there.

    Args:
        message: names the first that could not be, and why.
        results: of the others.

    """

    def __init__(self, message: str, results: list[ProbeResult]) -> None:
        super().__init__(message)
        self.results = results


def probe(
    encoders: Sequence[str | Encoder],
    images: Sequence[str | ImageSet],
    *,
    out: str | Path = "probe",
    protocol: ProtocolChoice = None,
    chunk: int | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    accelerator: str = "auto",
    devices: int | str = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
    overwrite: bool = False,
    allow_mixed_protocols: bool = False,
    progress: bool | None = None,
) -> list[ProbeResult]:
    """Measure the response profiles of frozen encoders on image sets.

    Profiles go to ``<out>/profiles/<encoder>/<images>.npz`` as soon as they are finished, tables to
    ``<out>/profiles.csv`` and ``summary.csv``, names and digests of the images to ``<out>/manifests``. What is there
    already, of the same weights, images and protocol, is not measured again: what was interrupted goes on.

    Args:
        encoders: specs as ``python -m lit_bump encoders`` lists, or loaded encoders.
        images: image sets, or their specs as ``python -m lit_bump probes`` lists.
        out: folder of the results.
        protocol: ``quick`` (3 % standard error an image), ``accurate`` (1 %) or ``paper``, or fields that replace those
            of ``quick`` (of another, where the key ``preset`` says so); None for ``quick``.
        chunk: perturbed images a forward; the answer does not depend on it.
        data_dir: where CIFAR-10 is, for the probe sets that need it.
        seed: seed of the draws of images.
        accelerator: of Lightning Fabric: ``auto``, ``cpu``, ``gpu`` or ``mps``.
        devices: how many, or ``auto`` for all; images are shared out among them.
        num_nodes: machines, each with its devices, under torchrun or SLURM.
        strategy: of Lightning Fabric, for several devices; ``auto`` takes ``ddp``.
        overwrite: replace profiles of other weights, images or protocol instead of refusing.
        allow_mixed_protocols: accept a folder that holds profiles of another protocol.
        progress: True for a bar always, False never, None on a terminal.

    Returns:
        The results of these encoders and images, in their order; in the first process only.

    Raises:
        LitBumpError: if an encoder or image set is wrong, before anything is measured.
        IncompleteProbeError: if one could not be measured; all others are, and are its ``results``.

    """
    if not encoders or not images:
        raise LitBumpError(f"no {'encoder' if not encoders else 'image set'} given: there is nothing to measure")
    fabric = _fabric(accelerator, devices, num_nodes, strategy)
    options = (encoders, images, Path(out), protocol, chunk, data_dir, seed, overwrite, allow_mixed_protocols, progress)
    if fabric.world_size == 1:
        return _probe(fabric, *options)
    task: Any = _probe
    found: list[ProbeResult] = fabric.launch(task, *options)
    return found


def _probe(
    fabric: Fabric,
    encoders: Sequence[str | Encoder],
    images: Sequence[str | ImageSet],
    out: Path,
    protocol: ProtocolChoice,
    chunk: int | None,
    data_dir: str | Path | None,
    seed: int,
    overwrite: bool,
    allow_mixed_protocols: bool,
    progress: bool | None,
) -> list[ProbeResult]:
    loaded = _loaded(encoders)
    sets = _unique([_image_set(one, data_dir, seed) for one in images], "image set", lambda one: one.name)
    cells = [
        ProbeCell(encoder, one, chosen_protocol(protocol, encoder.input_size), out)
        for encoder in loaded
        for one in sets
    ]
    first = fabric.global_rank == 0
    _check_folder(out, cells, overwrite=overwrite, allow_mixed_protocols=allow_mixed_protocols)
    if first:
        _begin(out, loaded, sets)
    todo = [cell for cell in cells if cell.finished() is None]
    mine = {id(cell): cell.missing()[fabric.global_rank :: fabric.world_size] for cell in todo}
    fabric.barrier()  # every process has seen the same blocks before one of them writes another
    n_images = sum(stop - start for blocks in mine.values() for start, stop in blocks)
    failures: dict[str, str] = {}
    with ProbeProgress(n_images, show=progress if first else False) as bar:
        for cell in todo:
            blocks = mine[id(cell)]
            bar.begin(str(cell), sum(stop - start for start, stop in blocks))
            try:
                if blocks:
                    cell.encoder.to(fabric.device)
                    cell.measure(
                        blocks, rank=fabric.global_rank, chunk=chunk, progress=bar.within, device=fabric.device
                    )
                if fabric.world_size == 1:
                    cell.join()
            except Exception as error:  # an encoder may raise anything; the other cells are worth their measurement
                kind = "" if isinstance(error, LitBumpError) else f"{type(error).__name__}: "
                failures[str(cell)] = kind + " ".join(str(error).split())[:300]
                sys.stderr.write(f"left out {cell}: {failures[str(cell)]}\n")
                with contextlib.suppress(OSError):  # the reason is said above, too
                    cell.fail(fabric.global_rank, failures[str(cell)])
            finally:
                cell.encoder.to("cpu")
    fabric.barrier()
    if not first:
        return []
    return _finish(out, cells, todo if fabric.world_size > 1 else [], failures)


def _finish(
    out: Path, cells: list[ProbeCell], unjoined: list[ProbeCell], failures: dict[str, str]
) -> list[ProbeResult]:
    from lit_bump.probing.probe_tables import write_tables

    for cell in unjoined:
        if str(cell) in failures:
            continue
        try:
            cell.join()
        except LitBumpError as error:  # another process could not measure its blocks, and has said why
            failures[str(cell)] = str(error)
    finished = [cell for cell in cells if str(cell) not in failures]
    if finished:
        try:
            write_tables(out, load_results(out))
        except OSError as error:
            raise LitBumpError(f"--out {str(out)!r} cannot be written to: {error.strerror or error}") from error
    if failures:
        what, why = next(iter(failures.items()))
        text = f"{len(failures)} of {len(cells)} profiles could not be measured; {what}: {why}"
        raise IncompleteProbeError(text, _results(out, finished))
    return _results(out, finished)


def _results(out: Path, cells: list[ProbeCell]) -> list[ProbeResult]:
    wanted = {(cell.encoder.spec, cell.images.name) for cell in cells}
    held = load_results(out) if cells else []
    return [result for result in held if (result.facts.get("spec"), result.images) in wanted]


def _fabric(accelerator: str, devices: int | str, num_nodes: int, strategy: str) -> Fabric:
    if isinstance(devices, str) and devices.lstrip("-").isdigit():
        devices = int(devices)
    if accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise LitBumpError(f"accelerator is {accelerator!r}, but no CUDA device is there: leave it out for the CPU")
    several = num_nodes > 1 or devices not in (1, "1")
    try:
        return Fabric(
            accelerator=accelerator,
            devices=devices,
            num_nodes=num_nodes,
            strategy="ddp" if strategy == "auto" and several else strategy,
        )
    except Exception as error:  # Fabric and torch raise many kinds for what is not there
        raise LitBumpError(
            f"{devices} devices of {accelerator!r} cannot be used: {' '.join(str(error).split())}"
        ) from error


def _loaded(encoders: Sequence[str | Encoder]) -> list[Encoder]:
    loaded: list[Encoder] = []
    for one in encoders:
        loaded += load_encoders(one) if isinstance(one, str) else [one]
    return _unique(loaded, "encoder", lambda one: slug(one.spec))


def _image_set(one: str | ImageSet, data_dir: str | Path | None, seed: int) -> ImageSet:
    return image_set(one, data_dir=data_dir, seed=seed) if isinstance(one, str) else one


def _unique(things: list[Any], what: str, name: Any) -> list[Any]:
    """Return the things, each once.

    Raises:
        LitBumpError: if two different ones have one name.

    """
    by_name: dict[str, Any] = {}
    for thing in things:
        held = by_name.setdefault(name(thing), thing)
        if _digest(held) != _digest(thing):
            hint = "; @name=OTHER names one differently" if what == "image set" else ""
            raise LitBumpError(f"two different {what}s are called {name(thing)!r}: measure them in two folders{hint}")
    return list(by_name.values())


def _digest(thing: Any) -> str:
    return str(thing.weights_digest if isinstance(thing, Encoder) else thing.digest)


def _check_folder(out: Path, cells: list[ProbeCell], *, overwrite: bool, allow_mixed_protocols: bool) -> None:
    """Refuse to put other things beside, or in place of, what a folder holds.

    Raises:
        LitBumpError: naming the difference and the cure.

    """
    if out.exists() and not out.is_dir():
        raise LitBumpError(f"--out {str(out)!r} is a file: give a folder")
    if not is_probe_folder(out):
        return
    for cell in cells:
        if not overwrite and cell.path.is_file() and cell.finished() is None:
            raise LitBumpError(
                f"{str(cell.path)!r} is of other {_difference(cell)}: give --overwrite true or another --out"
            )
    if allow_mixed_protocols or overwrite:
        return
    try:
        results = load_results(out)
    except LitBumpError:
        return  # nothing finished yet
    for result in results:
        size = result.facts.get("input_size")
        for cell in cells:
            ours = _comparable(cell.protocol, cell.encoder.input_size)
            if size and _comparable(result.profile.protocol, size) != ours:
                raise LitBumpError(
                    f"{str(out)!r} holds another protocol ({result.profile.protocol}; now {cell.protocol}): "
                    "give another --out, or --allow_mixed_protocols true"
                )


def _difference(cell: ProbeCell) -> str:
    from lit_bump.measure import Profile

    held = Profile.load(cell.path)
    if held.protocol != cell.protocol:
        return f"protocol ({held.protocol})"
    facts = held.context.get("encoder_facts", {})
    ours = cell.encoder.facts()
    same = all(facts.get(name) == ours.get(name) for name in ("weights_digest", "code_digest"))
    return "images or preprocessing" if same else "weights"


def _comparable(protocol: Protocol, size: Sequence[int]) -> dict[str, Any]:
    """Return a protocol with its ladder per pixel, so that protocols for two input sizes can be compared."""
    values = protocol.to_dict()
    values["etas"] = [round(math.log10(eta / math.sqrt(math.prod(size))), 2) for eta in protocol.etas]
    return values


def _begin(out: Path, encoders: list[Encoder], sets: list[ImageSet]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for one in sets:
            save_manifest(one, out / "manifests" / f"{one.name}.json")
        write_record(
            out,
            [{"slug": slug(one.spec), "label": one.label, "facts": one.facts()} for one in encoders],
            [{"name": one.name, "source": one.source, "digest": one.digest, "notes": list(one.notes)} for one in sets],
        )
    except OSError as error:
        raise LitBumpError(f"--out {str(out)!r} cannot be written to: {error.strerror or error}") from error
