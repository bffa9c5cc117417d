"""What TensorBoard gets beside the scalars: curves on a log-step axis, the cumulative figure, the tab's tensors.

Paper: fig. 1c. Needs TensorBoard's own messages; works with the writers of torch and of tensorboardX. Everything goes
through the run's own writer: a second event file in its folder would freeze the user's curves in some readers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from lit_bump.callbacks.formation_table import Row
from lit_bump.callbacks.profile_scalars import FIGURE_TAG, LOG_STEP_TAG, TENSOR_TAG, log_step
from lit_bump.measure import Profile
from lit_bump.measure.bump import median_over_images

Array = np.ndarray

PLUGIN = "lit_bump"
TENSOR_ROWS = ("log10_eta", "median", "q25", "q75", "n_kept", "low", "high", "response", "prediction", "bump")
BUMP_ENTRIES = ("height", "log10_eta", "width_decades", "verdict", "onset_eta", "height_low", "height_high")
VERDICTS = ("undefined", "none", "rising", "bump")  # their codes, as the tab knows them
MOST_IMAGES = 64  # rows of single images: 64 of 17 rungs are 4 kB a step


def tensorboard_writer(logger: Any) -> Any | None:
    """Return the summary writer of a logger, or None where it has none.

    Args:
        logger: any logger.

    Returns:
        An object with ``add_scalar``, ``add_image`` and ``flush``.

    """
    try:
        writer = getattr(logger, "experiment", None)
    except Exception:  # a server that is gone, a folder that cannot be made: what is logged later tells
        return None
    needed = ("add_scalar", "add_image", "flush", "_get_file_writer")
    # A logger of another kind may answer to any name, so the class is asked.
    return writer if writer is not None and all(hasattr(type(writer), name) for name in needed) else None


def write_profiles(
    writer: Any,
    step: int,
    rows: Sequence[Row],
    profiles: Mapping[str, Profile],
    figures: Mapping[str, np.ndarray],
) -> None:
    """Write all of a measurement but its scalars, which loggers may want to write themselves.

    Args:
        writer: of the run.
        step: optimiser step.
        rows: of the formation table, one a probe set.
        profiles: by probe set.
        figures: rendered cumulative figures by probe set; none where figures are off.

    """
    for row in rows:
        write_log_step(writer, row["probe"], step, row["max_r"])
    for label, pixels in figures.items():
        write_figure(writer, label, step, pixels)
    writer.flush()  # before what may fail: the tab's tensors go through a private method
    for label, profile in profiles.items():
        write_tensor(writer, label, step, profile)
    writer.flush()


def write_log_step(writer: Any, label: str, step: int, height: float) -> None:
    """Write the height of the profile at the place of its step on a logarithmic axis.

    Args:
        writer: of the run.
        label: of the probe set.
        step: optimiser step.
        height: largest median ratio; NaN is not written.

    """
    if np.isfinite(height):
        writer.add_scalar(LOG_STEP_TAG.format(label), height, log_step(step))


def write_figure(writer: Any, label: str, step: int, pixels: np.ndarray) -> None:
    """Write a rendered figure.

    Args:
        writer: of the run.
        label: of the probe set.
        step: optimiser step.
        pixels: ``(height, width, 3)``, 8 bits a channel.

    """
    writer.add_image(FIGURE_TAG.format(label), pixels, step, dataformats="HWC")


def write_tensor(writer: Any, label: str, step: int, profile: Profile) -> None:
    """Write the numbers of a profile for the tab; runs that are opened later, with the tab installed, show them too.

    Args:
        writer: of the run.
        label: of the probe set.
        step: optimiser step.
        profile: the profile.

    """
    _add_summary(writer, tensor_summary(label, profile), step)


def tensor_summary(label: str, profile: Profile) -> Any:
    """Return a profile as one tensor summary of float32, ``(row, rung)``.

    The rows are those of ``profile_table``: with the ladder inside, every step reads correctly by itself.

    Args:
        label: of the probe set.
        profile: the profile.

    Returns:
        A ``Summary`` message of TensorBoard.

    """
    from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_FLOAT

    table = profile_table(profile)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in table.shape])
    tensor = TensorProto(dtype=DT_FLOAT, tensor_shape=shape, tensor_content=table.tobytes())
    content = json.dumps({"version": 2, "probe": label, "rows": TENSOR_ROWS, "bump": BUMP_ENTRIES}).encode()
    plugin = SummaryMetadata.PluginData(plugin_name=PLUGIN, content=content)
    metadata = SummaryMetadata(plugin_data=plugin, data_class=DATA_CLASS_TENSOR)
    return Summary(value=[Summary.Value(tag=TENSOR_TAG.format(label), metadata=metadata, tensor=tensor)])


def profile_table(profile: Profile) -> Float32[Array, "row rung"]:
    """Return a profile as a table: the rows of ``TENSOR_ROWS``, then the ratio of each image.

    Log10 eta; median, lower and upper quartile of the ratio; number of images kept; the median's 90 % interval; medians
    of the response and of what is predicted for it, eta^2 tr G / d; the bump (``BUMP_ENTRIES``, the rest NaN).

    Args:
        profile: the profile.

    Returns:
        NaN where no image is kept.

    """
    bump = profile.bump()
    facts = (bump.height, bump.log10_eta, bump.width_decades, float(VERDICTS.index(str(bump.verdict))), bump.onset_eta)
    entries = np.full(max(len(profile.etas), len(BUMP_ENTRIES)), np.nan)
    entries[: len(BUMP_ENTRIES)] = (*facts, *bump.height_interval)
    known = profile.prediction[np.isfinite(profile.prediction)]
    expected = profile.etas**2 * (np.median(known) if known.size else np.nan)
    rows = (
        np.log10(profile.etas),
        profile.median(),
        *profile.quantiles([0.25, 0.75]),
        profile.n_kept(),
        *profile.median_interval(),
        median_over_images(profile.response),
        expected,
        entries[: len(profile.etas)],
        *profile.ratio[:MOST_IMAGES],
    )
    return np.stack(rows).astype("<f4")


def write_hparam_metrics(writer: Any, hparams: Mapping[str, Any], tags: Sequence[str]) -> None:
    """Name the tags as metrics of the run's hyper-parameters, so that the HParams tab shows their last values.

    TensorBoard believes the first such message of a run, so this has to come before the logger's own. No value is
    written: the tab reads those of the scalars.

    Args:
        writer: of the run.
        hparams: the hyper-parameters.
        tags: of the scalars.

    """
    from torch.utils.tensorboard.summary import hparams as hparam_summaries

    flat = {
        name: value if isinstance(value, (bool, int, float, str)) else str(value)
        for name, value in _flat(hparams).items()
    }
    for summary in hparam_summaries(flat, dict.fromkeys(tags, 0.0)):  # type: ignore[no-untyped-call]
        _add_summary(writer, summary, 0)


def discard_from(writer: Any, step: int) -> None:
    """Tell readers that whatever the run wrote at this step or later belongs to a history that it has left.

    Args:
        writer: of the run.
        step: first step to discard, of all tags.

    """
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog

    event = Event(step=step, session_log=SessionLog(status=SessionLog.START))
    file_writer = writer._get_file_writer()
    if _is_tensorboardx(file_writer):
        from tensorboardX.proto.event_pb2 import Event as OtherEvent  # type: ignore[import-not-found,unused-ignore]

        event = OtherEvent.FromString(event.SerializeToString())
    for _ in range(2):  # a reader takes the first such event of a run for its beginning, and only later ones for this
        file_writer.add_event(event, step)


def _add_summary(writer: Any, summary: Any, step: int) -> None:
    file_writer = writer._get_file_writer()
    if _is_tensorboardx(file_writer):
        from tensorboardX.proto.summary_pb2 import Summary  # type: ignore[import-not-found,unused-ignore]

        summary = Summary.FromString(summary.SerializeToString())
    file_writer.add_summary(summary, step)


def _is_tensorboardx(file_writer: Any) -> bool:
    return type(file_writer).__module__.startswith("tensorboardX")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{name}/")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
