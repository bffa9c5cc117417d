"""Loggers of every kind: each gets what it can show, none is refused or ends a training, files come first."""

# ruff: noqa: D102
from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from matplotlib.text import Text
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from torch import Tensor

from lit_bump.callbacks.formation_table import read_table
from lit_bump.figures import formation_figure, rgb_array
from lit_bump.measure import load_formation
from lit_bump.schedules import LogSteps
from tests.callbacks.test_rprofile import TwoOptimizers
from tests.callbacks.tiny_run import SMALL, STEPS, TinyModule, tiny_callback, tiny_trainer


class StrictLogger(Logger):
    """A logger like W&B's: steps may only increase; pictures are welcome."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.calls: list[tuple[int, dict[str, float]]] = []
        self.pictures: list[tuple[int, str, np.ndarray]] = []
        self.fails = fails

    @property
    def name(self) -> str:
        return "strict"

    @property
    def version(self) -> int:
        return 0

    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        return None

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        assert step >= (self.calls[-1][0] if self.calls else 0), f"step must only increase: {step}"
        if self.fails and any(tag.startswith("bump") for tag in metrics):
            raise ConnectionError("the server is gone")
        self.calls.append((step, dict(metrics)))

    def log_image(self, key: str, images: list[Any], step: int | None = None) -> None:
        assert step is not None
        self.pictures += [(step, key, image) for image in images]

    def steps_of(self, tag: str) -> list[int]:
        return [step for step, metrics in self.calls if tag in metrics]


WIDE = replace(SMALL, etas=(0.01, 0.1, 1.0, 3.0, 10.0, 100.0, 1000.0))


def peaked(images: Tensor) -> Tensor:
    # A bump on the wide ladder: a gentle slope, and steps just outside the range of pixels.
    pixels = images.flatten(1)
    return 0.05 * pixels + torch.tanh(10.0 * (pixels - 1.3)) + torch.tanh(10.0 * (pixels + 0.3))


def events_of(folder: str | None) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0, "images": 0})
    return events.Reload()


@pytest.mark.parametrize("module", [TinyModule, TwoOptimizers])
def test_loggers_that_refuse_smaller_steps_refuse_nothing(tmp_path: Path, module: type[TinyModule]) -> None:
    logger = StrictLogger()
    monitor = LearningRateMonitor("step")
    trainer = tiny_trainer(tmp_path, tiny_callback(), monitor, max_steps=20, logger=logger, num_sanity_val_steps=1)
    trainer.fit(module())
    points = [(step, metrics) for step, metrics in logger.calls if "bump/max_r/p" in metrics]
    expected = [0, 1, 2, 3, 6, 10, 18, 20] if module is TinyModule else [0, 2, 4, 6, 10, 18, 20]
    assert [metrics["trainer/global_step"] for _, metrics in points] == expected
    if module is TinyModule:
        assert [step for step, _ in points] == expected
    assert len(logger.steps_of("train/loss")) == (20 if module is TinyModule else 10)


def test_a_logger_that_takes_pictures_gets_the_cumulative_figure(tmp_path: Path) -> None:
    logger = StrictLogger()
    tiny_trainer(tmp_path, tiny_callback(figures=True), max_steps=1, logger=logger).fit(TinyModule())
    assert [(step, tag, image.shape) for step, tag, image in logger.pictures] == [
        (0, "bump/profile/p", (360, 600, 3)),
        (1, "bump/profile/p", (360, 600, 3)),
    ]


def test_the_newest_picture_holds_every_step(tmp_path: Path) -> None:
    """TensorBoard keeps ten pictures of a tag, and the newest of them always."""
    logger = TensorBoardLogger(tmp_path)
    callback = tiny_callback(figures=True, schedule=LogSteps(steps=tuple(range(25))))
    tiny_trainer(tmp_path, callback, max_steps=24, logger=logger).fit(TinyModule())
    formation = load_formation(str(logger.log_dir))["p"]
    assert formation.steps == tuple(range(25))
    figure = formation_figure(formation)
    drawn = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines]
    for profile in formation.profiles:
        assert any(np.array_equal(curve, profile.median()) for curve in drawn)
    kept = EventAccumulator(str(logger.log_dir)).Reload().Images("bump/profile/p")  # as many as TensorBoard keeps
    assert (kept[-1].step, len(kept) < 25) == (24, True)
    with Image.open(io.BytesIO(kept[-1].encoded_image_string)) as image:
        np.testing.assert_array_equal(np.asarray(image), rgb_array(figure))
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text) if text.get_text()) >= 9
    assert figure.get_size_inches()[0] <= 5  # a card is about 420 pixels wide: larger figures are shrunk


class PlainLogger(StrictLogger):
    """A logger of somebody else that takes numbers and nothing else."""

    log_image = None  # type: ignore[assignment]


def test_loggers_without_pictures_get_the_numbers_and_no_warning(tmp_path: Path) -> None:
    plain, table = PlainLogger(), CSVLogger(tmp_path / "csv")
    for logger in (plain, table):
        folder = tmp_path / type(logger).__name__
        tiny_trainer(folder, tiny_callback(figures=True), logger=logger, max_steps=1).fit(TinyModule())
    assert plain.steps_of("bump/max_r/p") == [0, 1]
    assert not plain.pictures
    rows = read_table(Path(str(table.log_dir)) / "metrics.csv")
    assert [row["step"] for row in rows if row["bump/max_r/p"]] == ["0", "1"]
    for folder in (tmp_path / "PlainLogger", Path(str(table.log_dir))):
        assert load_formation(folder)["p"].steps == (0, 1), sorted(folder.rglob("*"))


def test_a_logger_that_raises_costs_one_warning(tmp_path: Path) -> None:
    trainer = tiny_trainer(tmp_path, tiny_callback(), logger=StrictLogger(fails=True))
    with pytest.warns(UserWarning, match="StrictLogger did not take the response profiles") as caught:
        trainer.fit(TinyModule())
    assert len([w for w in caught if "StrictLogger" in str(w.message)]) == 1
    assert trainer.global_step == 4
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 4)


class Gone(StrictLogger):
    """A logger whose server is gone once training has begun; before, Lightning itself asks for it."""

    n_asked = 0

    @property
    def experiment(self) -> Any:
        """Fail, but for the first two times.

        Raises:
            ConnectionError: then.

        """
        self.n_asked += 1
        if self.n_asked > 2:
            raise ConnectionError("no route\nto host")
        return None


def test_a_logger_whose_server_is_gone_costs_one_warning_of_one_line(tmp_path: Path) -> None:
    trainer = tiny_trainer(tmp_path, tiny_callback(figures=True), logger=Gone(fails=True))
    with pytest.warns(UserWarning, match="Gone did not take the response profiles") as caught:
        trainer.fit(TinyModule())
    (said,) = [str(w.message) for w in caught if "Gone did not" in str(w.message)]
    assert "\n" not in said
    assert load_formation(tmp_path)["p"].steps == (0, 1, 2, 3, 4)


def test_csv_and_tensorboard_side_by_side_and_files_with_the_first(tmp_path: Path) -> None:
    loggers = [TensorBoardLogger(tmp_path / "tb"), CSVLogger(tmp_path / "csv")]
    tiny_trainer(tmp_path, tiny_callback(), logger=loggers, max_steps=2).fit(TinyModule())
    assert load_formation(str(loggers[0].log_dir))["p"].steps == (0, 1, 2)
    rows = read_table(Path(str(loggers[1].log_dir)) / "metrics.csv")
    assert [row["step"] for row in rows if row["bump/max_r/p"]] == ["0", "1", "2"]


def test_the_first_measurement_says_where_it_can_be_watched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        tiny_trainer(tmp_path, tiny_callback(), logger=TensorBoardLogger(tmp_path / "tb")).fit(TinyModule())
    said = [record.message for record in caplog.records if "#lit_bump" in record.message]
    assert len(said) == 1
    assert str(tmp_path / "tb") in said[0]


def test_tags_in_tensorboard(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    trainer = tiny_trainer(
        tmp_path, tiny_callback(figures=True, name="n", schedule=STEPS, encoder=peaked, protocol=WIDE), logger=logger
    )
    trainer.fit(TinyModule())
    events = events_of(logger.log_dir)
    scalars = {tag for tag in events.Tags()["scalars"] if tag.startswith("bump")}
    assert scalars == {
        "bump/max_r/n-p",
        "bump/log10_peak_eta/n-p",
        "bump/width_decades/n-p",
        "bump_vs_1000log10step/max_r/n-p",
    }
    rows = read_table(Path(logger.log_dir) / "profiles" / "formation.csv")
    assert {row["verdict"] for row in rows} == {"bump"}
    for tag, column in (("max_r", "max_r"), ("log10_peak_eta", "log10_eta"), ("width_decades", "width_decades")):
        values = [(event.step, event.value) for event in events.Scalars(f"bump/{tag}/n-p")]
        assert values == [(int(row["step"]), pytest.approx(float(row[column]), rel=1e-4)) for row in rows]
    assert [event.step for event in events.Images("bump/profile/n-p")] == [0, 1, 2, 4]
    assert not plt.get_fignums()
    assert len(list(Path(logger.log_dir).glob("events.out.tfevents.*"))) == 1
    assert (Path(logger.log_dir) / "profiles" / "n-p" / "formation.png").stat().st_size > 1000


def test_no_peak_is_not_a_number_for_monitors_and_nothing_for_loggers(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    callback = tiny_callback(encoder=lambda images: images.flatten(1) * 0.0)
    trainer = tiny_trainer(tmp_path, callback, logger=logger, max_steps=1)
    trainer.fit(TinyModule())
    assert not [tag for tag in events_of(logger.log_dir).Tags()["scalars"] if tag.startswith("bump")]
    for tag in ("max_r", "log10_peak_eta", "width_decades"):
        assert torch.isnan(trainer.callback_metrics[f"bump/{tag}/p"])


@pytest.mark.parametrize("encoder", [None, lambda images: images.flatten(1) * 0.0], ids=["usual", "never a peak"])
def test_monitors_find_their_key_between_measurements(tmp_path: Path, encoder: Any) -> None:
    checkpoints = [
        ModelCheckpoint(tmp_path / name, monitor=f"bump/{name}/p", every_n_train_steps=3, save_top_k=-1)
        for name in ("max_r", "log10_peak_eta")
    ]
    stopping = EarlyStopping("bump/max_r/p", patience=100, check_finite=False)
    trainer = tiny_trainer(
        tmp_path, tiny_callback(schedule=STEPS, encoder=encoder), *checkpoints, stopping, max_steps=9
    )
    trainer.fit(TinyModule())
    assert not encoder or torch.isnan(trainer.callback_metrics["bump/max_r/p"])
    assert trainer.global_step == 9
    assert [len(list((tmp_path / name).iterdir())) for name in ("max_r", "log10_peak_eta")] == [3, 3]


@pytest.mark.parametrize("default", [False, True])
def test_hyper_parameters_have_the_bump_as_their_metrics(tmp_path: Path, default: bool) -> None:
    logger = TensorBoardLogger(tmp_path, default_hp_metric=default)
    tiny_trainer(tmp_path, tiny_callback(), logger=logger, max_steps=1).fit(TinyModule(lr=0.25))
    events = events_of(logger.log_dir)

    def content(name: str) -> HParamsPluginData:
        return HParamsPluginData.FromString(events.SummaryMetadata(f"_hparams_/{name}").plugin_data.content)

    metrics = [info.name.tag for info in content("experiment").experiment.metric_infos]
    assert metrics == ["bump/max_r/p", "bump/log10_peak_eta/p"]
    assert content("session_start_info").session_start_info.hparams["lr"].number_value == 0.25
    assert len(events.Scalars("bump/max_r/p")) == 2  # steps 0 and 1: nothing is written twice
    assert len(list(tmp_path.rglob("events.out.tfevents.*"))) == 1


def test_without_matplotlib_there_are_curves_and_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("lit_bump.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    logger = TensorBoardLogger(tmp_path)
    trainer = tiny_trainer(tmp_path, tiny_callback(figures=True), logger=logger, max_steps=2)
    with pytest.warns(UserWarning, match="no figures of the response profiles") as caught:
        trainer.fit(TinyModule())
    assert len([w for w in caught if "no figures" in str(w.message)]) == 1
    tags = events_of(logger.log_dir).Tags()
    assert len([tag for tag in tags["scalars"] if tag == "bump/max_r/p"]) == 1
    assert not tags["images"]
