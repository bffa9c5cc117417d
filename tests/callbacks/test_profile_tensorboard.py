"""What the tab will read: one tensor a step, float32-exact, with its ladder inside, in the run's own event file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter

from lit_bump.callbacks.profile_tensorboard import (
    TENSOR_ROWS,
    tensor_summary,
    tensorboard_writer,
    write_hparam_metrics,
    write_tensor,
)
from tests.figures.drawn_profiles import drawn_profile


def test_the_tensor_comes_back_exactly(tmp_path: Path) -> None:
    profile = drawn_profile(9.0, n_lost=2)
    with SummaryWriter(str(tmp_path)) as writer:
        write_tensor(writer, "p", 400, profile)
    events = EventAccumulator(str(tmp_path)).Reload()
    (event,) = events.Tensors("bump/tensor/p")
    table = tensor_util.make_ndarray(event.tensor_proto)
    assert event.step == 400
    assert table.dtype == np.float32
    rows = [np.log10(profile.etas), profile.median(), *profile.quantiles([0.25, 0.75]), profile.n_kept()]
    rows += [*profile.median_interval()]
    np.testing.assert_array_equal(table[:7], np.stack(rows).astype(np.float32))
    np.testing.assert_array_equal(table[len(TENSOR_ROWS) :], profile.ratio.astype(np.float32))
    metadata = events.SummaryMetadata("bump/tensor/p")
    assert metadata.plugin_data.plugin_name == "lit_bump"
    assert json.loads(metadata.plugin_data.content)["rows"] == list(TENSOR_ROWS)
    assert metadata.data_class == 2  # DATA_CLASS_TENSOR
    assert len(list(tmp_path.iterdir())) == 1


def test_a_summary_is_small() -> None:
    assert tensor_summary("cifar32", drawn_profile()).ByteSize() < 1500  # six images


def test_nested_hyper_parameters_are_written_flat(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        write_hparam_metrics(writer, {"model": {"width": 8, "act": None}, "list": [1, 2]}, ["bump/max_r/p"])
    events = EventAccumulator(str(tmp_path)).Reload()
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    start = HParamsPluginData.FromString(content).session_start_info
    assert set(start.hparams) == {"model/width", "model/act", "list"}


@pytest.mark.parametrize("experiment", [None, object(), "AnyName"])
def test_what_is_no_summary_writer_is_passed_over(experiment: Any) -> None:
    class AnyName:
        """Answers to any name, as the clients of some services do."""

        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    class Holder:
        """A logger."""

        def __init__(self) -> None:
            self.experiment = AnyName() if experiment == "AnyName" else experiment

    assert tensorboard_writer(Holder()) is None
