"""When the callback measures, what it refuses before training, and that nothing it meets ends a training."""

# ruff: noqa: D102, D105
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jaxtyping
import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

from lit_bump.callbacks import RProfileCallback
from lit_bump.callbacks.formation_table import read_table
from lit_bump.errors import LitBumpError
from lit_bump.measure import Formation, Protocol, load_formation, measure_profile
from lit_bump.measure.measurement import image_digests
from lit_bump.schedules import LogSteps
from tests.callbacks.tiny_run import (
    SIZE,
    SMALL,
    PlainModule,
    TinyData,
    TinyModule,
    tiny_callback,
    tiny_probe,
    tiny_trainer,
)


def formation(folder: Path, probe: str = "p") -> Formation:
    return load_formation(folder)[probe]


class TwoOptimizers(TinyModule):
    """Two optimizer steps a batch, as in adversarial games."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        loss = super().training_step(batch, batch_idx)
        optimizers = self.optimizers()
        assert isinstance(optimizers, list)
        self.manual_backward(loss)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(part.parameters(), 0.01) for part in (self.backbone, self.head)]


class Endless(IterableDataset[tuple[Tensor, int]]):
    """Images without a known number."""

    def __iter__(self) -> Any:
        return iter(TinyData(24))


class StopAt(pl.Callback):
    """Stop, or raise, after a step."""

    def __init__(self, step: int, error: BaseException | None = None) -> None:
        self.step, self.error = step, error

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.global_step == self.step:
            trainer.should_stop = True
            if self.error is not None:
                raise self.error


def test_first_point_has_the_initial_weights_and_the_last_the_final_ones(tmp_path: Path) -> None:
    module = TinyModule()
    before = measure_profile(module.forward_features, tiny_probe().images, SMALL, progress=False)
    tiny_trainer(tmp_path, tiny_callback(), max_steps=5).fit(module)
    after = measure_profile(module.forward_features, tiny_probe().images, SMALL, progress=False)
    measured = formation(tmp_path)
    assert measured.steps == (0, 1, 2, 3, 5)  # LogSteps(per_decade=4) up to 5
    np.testing.assert_array_equal(measured.profiles[0].ratio, before.ratio)
    np.testing.assert_array_equal(measured.profiles[-1].ratio, after.ratio)
    assert not np.array_equal(before.ratio, after.ratio)


def test_context_tells_what_was_measured(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(), max_steps=1).fit(TinyModule())
    facts = formation(tmp_path).profiles[-1].context
    assert (facts["step"], facts["probe"], facts["encoder"]) == (1, "p", "forward_features")
    assert facts["probe_digest"] == tiny_probe().digest
    assert facts["seconds"] > 0


def test_never_in_the_sanity_check(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(), max_steps=2, num_sanity_val_steps=2).fit(TinyModule())
    assert [row["step"] for row in read_table(tmp_path / "profiles" / "formation.csv")] == ["0", "1", "2"]


def test_accumulated_batches_count_as_one_step(tmp_path: Path) -> None:
    schedule = LogSteps(steps=(0, 1, 2, 4))
    tiny_trainer(tmp_path, tiny_callback(schedule=schedule), accumulate_grad_batches=2).fit(TinyModule())
    assert formation(tmp_path).steps == (0, 1, 2, 4)


def test_several_optimizers_are_met_at_the_first_step_at_or_after_a_target(tmp_path: Path) -> None:
    callback = tiny_callback(schedule=LogSteps(steps=(0, 1, 2, 4, 7, 8, 16)))
    tiny_trainer(tmp_path, callback, max_steps=16).fit(TwoOptimizers())
    assert formation(tmp_path).steps == (0, 2, 4, 8, 16)


def test_unknown_length_measures_on_and_ends_with_the_last_step(tmp_path: Path) -> None:
    data = DataLoader(Endless(), 4)
    tiny_trainer(tmp_path, tiny_callback(), max_steps=-1, max_epochs=2).fit(TinyModule(), data)
    assert formation(tmp_path).steps == (0, 1, 2, 3, 6, 10, 12)


def test_a_run_that_stops_early_has_its_last_step(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(), StopAt(7), max_steps=100).fit(TinyModule())
    assert formation(tmp_path).steps == (0, 1, 2, 3, 6, 7)


def test_listed_steps_are_all_there_is_and_none_may_lie_beyond_the_run(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(schedule=LogSteps(steps=(3,)))).fit(TinyModule())
    assert formation(tmp_path).steps == (3,)
    trainer = tiny_trainer(tmp_path, tiny_callback(schedule=LogSteps(steps=(3, 9))))
    with pytest.raises(LitBumpError, match="step 9 is scheduled, but the run ends at step 4"):
        trainer.fit(TinyModule())


def test_disabled_does_nothing(tmp_path: Path) -> None:
    trainer = tiny_trainer(tmp_path, tiny_callback(enable=False, probes="no-such-set", encoder="nowhere"))
    trainer.fit(TinyModule())
    assert not list(tmp_path.rglob("*.npz"))
    assert not any(tag.startswith("bump") for tag in trainer.callback_metrics)


def test_fast_dev_run_rehearses_and_writes_nothing(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(figures=True), fast_dev_run=True).fit(TinyModule())
    assert not list(tmp_path.iterdir())
    with pytest.raises(LitBumpError, match="cannot be measured"):
        tiny_trainer(tmp_path, tiny_callback(encoder=stochastic), fast_dev_run=True).fit(TinyModule())


def stochastic(images: Tensor) -> Tensor:
    return nn.functional.dropout(images.flatten(1), 0.5, training=True)


def test_images_of_another_size_are_refused_before_training(tmp_path: Path) -> None:
    large = tiny_probe().from_tensor(torch.rand(2, 3, 9, 9), name="large")
    module = TinyModule()
    before = module.head[1].weight.clone()  # type: ignore[operator]
    with pytest.raises(
        LitBumpError, match=r"'large' \(3x9x9\) cannot be measured: .*refuses images of size \(3, 9, 9\)"
    ):
        tiny_trainer(tmp_path, tiny_callback(probes=large)).fit(module)
    assert torch.equal(before, module.head[1].weight)  # type: ignore[arg-type]


def test_a_stochastic_encoder_is_refused_also_where_the_first_target_is_late(tmp_path: Path) -> None:
    callback = tiny_callback(encoder=stochastic, schedule=LogSteps(steps=(4,)))
    with pytest.raises(LitBumpError, match="stochastic"):
        tiny_trainer(tmp_path, callback).fit(TinyModule())


class _Sign(torch.autograd.Function):
    """A sign with the gradient of the identity, and without a forward derivative."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        return images.sign()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def straight_through(images: Tensor) -> Tensor:
    signs: Tensor = _Sign.apply(images.flatten(1))
    return signs


@pytest.mark.parametrize(
    ("encoder", "says"), [(stochastic, "stochastic"), (straight_through, "no forward-mode derivative")]
)
def test_on_error_warn_lets_training_begin(tmp_path: Path, encoder: Any, says: str) -> None:
    callback = tiny_callback(encoder=encoder, on_error="warn", schedule=LogSteps(steps=(0,)))
    trainer = tiny_trainer(tmp_path, callback)
    with pytest.warns(UserWarning, match=rf"no response profile at step 0.*{says}"):
        trainer.fit(TinyModule())
    assert trainer.global_step == 4
    assert torch.isnan(trainer.callback_metrics["bump/max_r/p"])


def test_an_encoder_that_fails_later_costs_its_point_and_not_the_training(tmp_path: Path) -> None:
    module = TinyModule()

    def failing(images: Tensor) -> Tensor:
        if module.global_step == 2:
            raise RuntimeError("out of luck")
        return module.forward_features(images)

    trainer = tiny_trainer(tmp_path, tiny_callback(encoder=failing))
    with pytest.warns(UserWarning, match=r"no response profile at step 2.*out of luck"):
        trainer.fit(module)
    assert formation(tmp_path).steps == (0, 1, 3, 4)


def test_features_that_are_not_finite_are_flagged_and_training_goes_on(tmp_path: Path) -> None:
    module = TinyModule()

    def broken(images: Tensor) -> Tensor:
        features = module.forward_features(images)
        return features * float("nan") if module.global_step >= 2 else features

    trainer = tiny_trainer(tmp_path, tiny_callback(encoder=broken, figures=True))
    trainer.fit(module)
    measured = formation(tmp_path)
    assert measured.steps == (0, 1, 2, 3, 4)
    assert set(measured.profiles[-1].reasons()) == {"not_finite"}
    assert torch.isnan(trainer.callback_metrics["bump/max_r/p"])


def test_two_callbacks_of_one_name_are_told_to_take_another(tmp_path: Path) -> None:
    other = tiny_callback(encoder="backbone.0")
    with pytest.raises(LitBumpError, match=r"probe set 'p' occurs twice.*another name="):
        tiny_trainer(tmp_path, tiny_callback(), other).fit(TinyModule())
    with pytest.raises(LitBumpError, match="probe set 'p' occurs twice"):
        tiny_trainer(tmp_path, tiny_callback(probes=[tiny_probe(), tiny_probe()])).fit(TinyModule())


def test_validation_images_may_not_take_the_name_of_another_set(tmp_path: Path) -> None:
    callbacks = tiny_callback(probes=tiny_probe("val8")), tiny_callback(probes=None)
    with pytest.raises(LitBumpError, match="probe set 'val8' occurs twice"):
        tiny_trainer(tmp_path, *callbacks).fit(TinyModule())


def test_two_callbacks_keep_apart_by_name(tmp_path: Path) -> None:
    callbacks = (tiny_callback(), tiny_callback(name="half", encoder="backbone.0"))
    trainer = tiny_trainer(tmp_path, *callbacks, max_steps=1)
    trainer.fit(TinyModule())
    assert set(load_formation(tmp_path)) == {"p", "half-p"}
    rows = read_table(tmp_path / "profiles" / "formation.csv")
    assert [(row["step"], row["probe"]) for row in rows] == [("0", "half-p"), ("0", "p"), ("1", "half-p"), ("1", "p")]
    assert {"bump/max_r/p", "bump/max_r/half-p"} <= set(trainer.callback_metrics)
    assert len({callback.state_key for callback in callbacks}) == 2


def test_the_readme_example_works_on_a_module_of_somebody_else(tmp_path: Path) -> None:
    module = PlainModule()
    by_name = RProfileCallback(encoder="backbone", protocol={"n_pairs": 2})
    by_call = RProfileCallback(encoder=lambda images: module.backbone(images), protocol={"n_pairs": 2}, name="call")
    tiny_trainer(tmp_path, by_name, by_call, max_steps=1).fit(module)
    formations = load_formation(tmp_path)
    assert set(formations) == {"val8", "call-val8"}
    first, second = (formations[name].profiles[-1] for name in ("val8", "call-val8"))
    np.testing.assert_array_equal(first.ratio, second.ratio)
    assert first.protocol.etas == Protocol.quick(SIZE).etas  # the ladder follows the size of the images


def test_validation_images_are_drawn_by_seed(tmp_path: Path) -> None:
    callback = tiny_callback(probes=None)
    tiny_trainer(tmp_path, callback, max_steps=1).fit(TinyModule())
    digests = formation(tmp_path, "val8").profiles[0].image_digests
    assert sorted(digests) == sorted(image_digests(TinyData(8, seed=1).images))


def test_a_module_without_features_names_the_cure(tmp_path: Path) -> None:
    with pytest.raises(
        LitBumpError, match=r"PlainModule has no method forward_features: give encoder=.*backbone, head"
    ):
        tiny_trainer(tmp_path, tiny_callback()).fit(PlainModule())


def test_an_unknown_probe_set_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match="shapes32"):
        tiny_trainer(tmp_path, tiny_callback(probes="shaps32")).fit(TinyModule())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probes": []}, "probes is an empty list"),
        ({"probes": [3]}, "probes hold int"),
        ({"protocol": "papr"}, "no protocol 'papr'.*'paper'"),
        ({"protocol": {"n_pair": 4}}, "no 'n_pair'.*'n_pairs'"),
        ({"max_share": 0.0}, "max_share is 0.0"),
        ({"budget_seconds": 0.0}, "budget_seconds is 0.0"),
        ({"name": "a/b"}, "name is 'a/b': give at most 64 letters, digits"),
        ({"name": "../../esc"}, r"name is '\.\./\.\./esc'"),
        ({"name": ".."}, r"name is '\.\.'"),
        ({"name": "a\n"}, r"name is 'a\\n'"),
        ({"name": "n" * 65}, "name is 'n{65}'"),
        ({"on_error": "warm"}, "on_error is 'warm'.*'warn'"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users do not have the checks of these tests
    with pytest.raises(LitBumpError, match=message):
        tiny_callback(**changes)


def test_mean_without_std_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(LitBumpError, match="give both or neither"):
        tiny_trainer(tmp_path, tiny_callback(mean=(0.5, 0.5, 0.5))).fit(TinyModule())


def test_checkpoints_beside_the_profiles_are_of_the_same_step(tmp_path: Path) -> None:
    module = TinyModule()
    tiny_trainer(tmp_path, tiny_callback(save_checkpoints=True), max_steps=2).fit(module)
    files = sorted((tmp_path / "checkpoints").iterdir())
    assert [file.name for file in files] == ["step_00000000.ckpt", "step_00000001.ckpt", "step_00000002.ckpt"]
    saved = torch.load(files[1], weights_only=True)
    module.load_state_dict(saved["state_dict"])
    profile = measure_profile(module.forward_features, tiny_probe().images, SMALL, progress=False)
    np.testing.assert_array_equal(profile.ratio, formation(tmp_path).profiles[1].ratio)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true"])
def test_low_precision_training_is_measured_in_float32(tmp_path: Path, precision: str) -> None:
    seen: set[torch.dtype] = set()
    module = TinyModule()
    rounded = copy.deepcopy(module)
    if precision == "bf16-true":
        rounded = rounded.bfloat16().float()
    before = measure_profile(rounded.forward_features, tiny_probe().images, SMALL, progress=False)

    def watched(images: Tensor) -> Tensor:
        features = module.forward_features(images)
        seen.add(features.dtype)
        return features

    trainer = tiny_trainer(tmp_path, tiny_callback(encoder=watched), max_steps=1, precision=precision)
    trainer.fit(module, DataLoader(TinyData(8), 4))
    assert torch.bfloat16 not in seen
    expected = torch.bfloat16 if precision == "bf16-true" else torch.float32
    assert {parameter.dtype for parameter in module.parameters()} == {expected}
    first = formation(tmp_path).profiles[0]
    np.testing.assert_allclose(first.ratio, before.ratio, rtol=1e-6)
    assert first.protocol.precision == "float32"


@pytest.mark.filterwarnings("ignore:You are trying to `self.log")
def test_barebones_still_writes_the_files(tmp_path: Path) -> None:
    callback = tiny_callback()
    trainer = pl.Trainer(
        barebones=True, max_steps=1, default_root_dir=tmp_path, callbacks=[callback], accelerator="cpu"
    )
    trainer.fit(TinyModule())
    assert formation(tmp_path).steps == (0, 1)


def test_second_run_in_one_folder_does_not_mix_with_the_first(tmp_path: Path) -> None:
    tiny_trainer(tmp_path, tiny_callback(probes=[tiny_probe(), tiny_probe("old")]), max_steps=3).fit(TinyModule())
    callbacks = tiny_callback(), tiny_callback(name="b")
    tiny_trainer(tmp_path, *callbacks, max_steps=2).fit(TinyModule())
    assert {name: f.steps for name, f in load_formation(tmp_path).items()} == {"p": (0, 1, 2), "b-p": (0, 1, 2)}
    assert formation_of_older(tmp_path) == {"p": (0, 1, 2, 3), "old": (0, 1, 2, 3)}
    assert {row["probe"] for row in read_table(tmp_path / "profiles" / "formation.csv")} == {"p", "b-p"}


def formation_of_older(folder: Path) -> dict[str, tuple[int, ...]]:
    (folder / "older").mkdir()
    (folder / "profiles.1").rename(folder / "older" / "profiles")
    return {name: f.steps for name, f in load_formation(folder / "older").items()}


def test_one_callback_can_serve_two_runs(tmp_path: Path) -> None:
    callback = tiny_callback()
    for run in ("a", "b"):
        tiny_trainer(tmp_path / run, callback, max_steps=1).fit(TinyModule())
        assert formation(tmp_path / run).steps == (0, 1)
    assert [row["step"] for row in callback.record.rows] == [0, 1]


def test_the_table_is_printed_once_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_trainer(tmp_path, tiny_callback(), max_steps=2).fit(TinyModule())
    printed = capsys.readouterr().out
    assert printed.count("probe set") == 1
    assert "% of training" in printed
