"""Laws of the measurement: closed forms, the float64 reference, and what the answer must not depend on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, jv
from torch import Tensor, nn

from lit_bump.errors import LitBumpError
from lit_bump.measure import Profile, Protocol, Reason, image_digests, measure_profile
from lit_bump.measure.directions import antipodal_directions
from tests.measure.tiny_encoders import NETS, few, random_images, relu_net, seeded
from tests.reference import reference_profile

PRECISIONS = ["float32", "float64"]
CHUNKS = [1, 7, None]


class Square(nn.Module):
    """Phi(x) = x * x, elementwise."""

    def forward(self, images: Tensor) -> Tensor:
        """Return the squares."""
        return images * images


class Sine(nn.Module):
    """Phi(x) = sin(w x), elementwise."""

    def __init__(self, frequency: float) -> None:
        super().__init__()
        self.frequency = frequency

    def forward(self, images: Tensor) -> Tensor:
        """Return the sines."""
        return torch.sin(self.frequency * images)


class Constant(nn.Module):
    """Phi(x) = c."""

    def forward(self, images: Tensor) -> Tensor:
        """Return three numbers for every image."""
        return images.new_full((len(images), 3), 2.0)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_affine_encoder_has_ratio_one(precision: str, chunk: int | None) -> None:
    net = seeded(NETS["linear"])
    profile = measure_profile(net, random_images(2), few(precision=precision), chunk=chunk)
    tolerance = 1e-9 if precision == "float64" else 1e-3
    assert (profile.reason == Reason.KEPT).all()
    np.testing.assert_allclose(profile.ratio, 1.0, rtol=tolerance)
    np.testing.assert_allclose(profile.standard_error, 0.0, atol=1e-9 if precision == "float64" else 1e-3)


@settings(max_examples=8, deadline=None)
@given(
    n=st.integers(1, 3),
    channels=st.integers(1, 3),
    side=st.integers(1, 5),
    seed=st.integers(0, 2**31),
    n_pairs=st.integers(1, 20),
    chunk=st.integers(1, 50),
)
def test_affine_encoder_has_ratio_one_for_every_shape(
    n: int, channels: int, side: int, seed: int, n_pairs: int, chunk: int
) -> None:
    size = (channels, side, side + 1)
    weight = torch.randn(
        4, channels * side * (side + 1), dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    profile = measure_profile(
        lambda images: images.flatten(1) @ weight.T + 1,
        random_images(n, size, seed),
        few(size, n_pairs, precision="float64", seed=seed),
        chunk=chunk,
    )
    np.testing.assert_allclose(profile.ratio, 1.0, rtol=1e-8)
    assert profile.ratio.shape == (n, 5)


def test_affine_encoder_is_off_by_one_factor_where_the_estimator_is_the_papers() -> None:
    protocol = few(n_pairs=20, n_jvp=4, estimator="paper", precision="float64")
    profile = measure_profile(seeded(NETS["linear"]), random_images(2), protocol)
    assert np.ptp(profile.ratio, axis=1).max() < 1e-9
    assert (np.abs(profile.ratio[:, 0] - 1) > 1e-3).all()
    assert (np.abs(profile.ratio - 1) < 4 * profile.standard_error).all()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_elementwise_square_has_its_closed_form_for_every_antipodal_set(precision: str, chunk: int | None) -> None:
    size, n_pairs = (3, 4, 4), 5
    images = random_images(3, size)
    protocol = few(size, n_pairs, precision=precision)
    profile = measure_profile(Square(), images, protocol, chunk=chunk)
    for i, image in enumerate(images.double().flatten(1)):
        u = antipodal_directions(n_pairs, 48, seed=0, image=i).double()
        slope = float(u.square().square().sum() / (2 * image * u).square().sum())
        expected = 1 + np.square(protocol.etas) * slope
        np.testing.assert_allclose(profile.ratio[i], expected, rtol=1e-9 if precision == "float64" else 2e-4)


def test_elementwise_sine_has_its_closed_form_within_its_own_error() -> None:
    size, frequency = (3, 6, 6), 3.0
    d = 108
    images = random_images(2, size)
    protocol = Protocol(
        etas=(0.1, 1.0, 3.0, 8.0, 20.0), n_pairs=200, n_jvp=200, estimator="matched", precision="float64"
    )
    profile = measure_profile(Sine(frequency), images, protocol, chunk=512)

    def mean_cosine(k: np.ndarray) -> np.ndarray:  # E[cos(k u_i)] over the unit sphere
        order = d / 2 - 1
        return np.asarray(np.exp(gammaln(d / 2) + order * np.log(2 / k)) * jv(order, k))

    k = frequency * np.array(protocol.etas)
    cosine, double = mean_cosine(k), mean_cosine(2 * k)
    for i, x in enumerate(frequency * images.double().flatten(1).numpy()):
        # E (sin(a + b) - sin a)^2 = 1/2 - cos(2a) E[cos 2b] / 2 - 2 sin^2(a) E[cos b] + sin^2(a), b even
        s2 = np.square(np.sin(x)).sum()
        response = d / 2 - np.cos(2 * x).sum() * double / 2 - 2 * s2 * cosine + s2
        prediction = frequency**2 * np.square(np.cos(x)).sum() / d
        expected = response / (np.square(protocol.etas) * prediction)
        assert (np.abs(profile.ratio[i] - expected) < 4 * profile.standard_error[i] + 1e-12).all()
        assert (profile.standard_error[i] < 0.1 * expected).all()


def test_relu_net_is_exactly_one_until_its_region_ends() -> None:
    size, n_pairs = (3, 4, 4), 8
    net = seeded(relu_net).double()
    images = random_images(1, size, seed=3)
    x = images.double().flatten()
    with torch.no_grad():
        hidden = net[1](x)  # type: ignore[index]
        u = antipodal_directions(n_pairs, 48, seed=0, image=0).double()
        slopes = u @ net[1].weight.T  # type: ignore[index]
        border = float((hidden.abs() / slopes.abs()).min())
    etas = [border * share for share in (0.01, 0.3, 0.999, 3.0, 30.0)]
    protocol = few(size, n_pairs, etas=etas, precision="float64")
    ratio = measure_profile(net, images, protocol).ratio[0]
    np.testing.assert_allclose(ratio[:3], 1.0, rtol=1e-9)
    assert (np.abs(ratio[3:] - 1) > 1e-6).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_constant_encoder_is_undefined_with_its_reason(precision: str) -> None:
    profile = measure_profile(Constant(), random_images(2), few(precision=precision))
    assert np.isnan(profile.ratio).all()
    assert np.isnan(profile.standard_error).all()
    assert (profile.reason == Reason.ZERO_SENSITIVITY).all()
    assert (profile.n_kept() == 0).all()
    assert np.isnan(profile.median()).all()
    assert profile.bump().verdict == "undefined"
    assert "zero_sensitivity" in str(profile)


def test_detached_input_is_zero_sensitivity() -> None:
    profile = measure_profile(lambda images: images.detach() * 2, random_images(2), few())
    assert (profile.reason == Reason.ZERO_SENSITIVITY).all()
    assert (profile.response > 0).all()


def test_one_dead_image_does_not_touch_the_others() -> None:
    images = random_images(3)
    images[1] = 0.0

    def gate(batch: Tensor) -> Tensor:
        return torch.where(batch.flatten(1).mean(dim=1, keepdim=True) > 0.3, batch.flatten(1) * 3, 0.0)

    profile = measure_profile(gate, images, few(etas=(0.01, 0.1)))
    assert (profile.reason[1] == Reason.ZERO_SENSITIVITY).all()
    np.testing.assert_allclose(profile.ratio[[0, 2]], 1.0, rtol=1e-3)
    assert profile.n_kept().tolist() == [2, 2]


def test_features_that_overflow_are_not_finite_and_nothing_else() -> None:
    def overflow(images: Tensor) -> Tensor:
        return torch.where(images.flatten(1) > 1.5, torch.inf, images.flatten(1))

    profile = measure_profile(overflow, random_images(2), few())
    assert (profile.reason[:, :2] == Reason.KEPT).all()
    assert (profile.reason[:, -1] == Reason.NOT_FINITE).all()
    assert np.isnan(profile.ratio[:, -1]).all()
    assert np.isfinite(profile.ratio[:, :2]).all()


def test_nan_features_are_not_finite() -> None:
    profile = measure_profile(lambda images: images.flatten(1) * torch.nan, random_images(2), few())
    assert (profile.reason == Reason.NOT_FINITE).all()


def _log_slope(etas: np.ndarray, departure: np.ndarray) -> float:
    return float(np.polyfit(np.log(etas), np.log(np.abs(departure)), 1)[0])


def test_the_departure_from_one_is_quadratic_with_antipodes_and_linear_without() -> None:
    etas = np.geomspace(1e-3, 1e-2, 4)
    protocol = few(n_pairs=3, etas=etas.tolist(), precision="float64")
    net = seeded(NETS["gelu"]).double()
    images = random_images(1)
    profile = measure_profile(net, images, protocol)
    assert _log_slope(etas, profile.ratio[0] - 1) == pytest.approx(2.0, abs=0.05)
    without = reference_profile(net, images, protocol, antipodes=False).ratio[0]
    assert _log_slope(etas, without - 1) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("estimator", ["matched", "paper"])
@pytest.mark.parametrize("name", list(NETS))
def test_agrees_with_the_reference(name: str, estimator: str, chunk: int | None) -> None:
    net = seeded(NETS[name]).eval()
    images = random_images(2)
    protocol = few(n_pairs=5, n_jvp=5 if estimator == "matched" else 3, estimator=estimator, seed=5)
    expected = reference_profile(_double(NETS[name]), images, protocol)
    for precision, tolerance in (("float64", 1e-9), ("float32", 2e-3)):
        measured = measure_profile(
            net, images, Protocol.from_dict({**protocol.to_dict(), "precision": precision}), chunk=chunk
        )
        assert (measured.reason == Reason.KEPT).all()
        np.testing.assert_allclose(measured.response, expected.response, rtol=tolerance)
        np.testing.assert_allclose(measured.prediction, expected.prediction, rtol=tolerance)
        np.testing.assert_allclose(measured.ratio, expected.ratio, rtol=tolerance)
        np.testing.assert_allclose(
            measured.standard_error, expected.standard_error, rtol=0.02, atol=max(tolerance, 1e-7)
        )


def _double(build: Callable[[], nn.Module]) -> nn.Module:
    return seeded(build).eval().double()


@settings(max_examples=6, deadline=None)
@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
def test_scaling_and_rotating_the_features_changes_nothing(scale: float, seed: int) -> None:
    net = seeded(NETS["gelu"], seed)
    images = random_images(2, seed=seed)
    protocol = few(n_pairs=3, precision="float64", seed=seed)
    n_features = net(images).shape[1]
    gaussian = torch.randn(n_features, n_features, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    rotation = torch.linalg.qr(gaussian).Q
    plain = measure_profile(net, images, protocol)
    turned = measure_profile(lambda batch: scale * net(batch) @ rotation, images, protocol)
    np.testing.assert_allclose(turned.ratio, plain.ratio, rtol=1e-8)
    np.testing.assert_allclose(turned.standard_error, plain.standard_error, rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(turned.prediction, scale**2 * plain.prediction, rtol=1e-8)


def test_scaling_the_input_scales_the_ladder() -> None:
    net = seeded(NETS["gelu"]).double()
    images = random_images(2)
    protocol = few(n_pairs=4, precision="float64")
    scaled = Protocol.from_dict({**protocol.to_dict(), "etas": [eta / 4 for eta in protocol.etas]})
    plain = measure_profile(net, images, protocol)
    other = measure_profile(lambda batch: net(4 * batch), images / 4, scaled)
    np.testing.assert_allclose(other.ratio, plain.ratio, rtol=1e-8)


@pytest.mark.parametrize("name", list(NETS))
def test_result_does_not_depend_on_chunk(name: str) -> None:
    net = seeded(NETS[name])
    images = random_images(3)
    total = 3 * 4 * 5 * 2  # images, pairs, rungs, signs
    profiles = [
        measure_profile(net, images, few(n_pairs=4), chunk=chunk)
        for chunk in (1, 10, 7, total - 1, total, total + 1, 4096)
    ]
    for other in profiles[1:]:
        assert (other.reason == profiles[0].reason).all()
        np.testing.assert_allclose(other.ratio, profiles[0].ratio, rtol=1e-3)
        np.testing.assert_allclose(other.prediction, profiles[0].prediction, rtol=1e-5)


def test_images_may_be_measured_in_parts() -> None:
    net = seeded(NETS["gelu"])
    images = random_images(5)
    protocol = few(n_pairs=4, precision="float64")
    whole = measure_profile(net, images, protocol)
    parts = [
        measure_profile(net, images[start:stop], protocol, first_image=start)
        for start, stop in ((0, 1), (1, 2), (2, 5))
    ]
    joined = Profile.concatenate(parts)
    for name in ("ratio", "response", "prediction", "standard_error"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-7, atol=1e-12)
    assert (joined.reason == whole.reason).all()
    assert joined.image_digests == whole.image_digests
    assert joined.encoder_digest == whole.encoder_digest
    np.testing.assert_array_equal(joined.forward_equivalents, whole.forward_equivalents)


def test_an_image_has_the_same_profile_in_any_company() -> None:
    net = seeded(NETS["batchnorm_maxpool"])
    images = random_images(4)
    protocol = few(n_pairs=3, precision="float64")
    many, one = measure_profile(net, images, protocol), measure_profile(net, images[:1], protocol)
    np.testing.assert_allclose(many.ratio[:1], one.ratio, rtol=1e-8)


def test_global_seeds_do_not_change_the_result_and_the_protocol_seed_does() -> None:
    net = seeded(NETS["gelu"])
    images = random_images(2)
    ratios = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        ratios.append(measure_profile(net, images, few()).ratio)
    assert (ratios[0] == ratios[1]).all()
    other = measure_profile(net, images, few(seed=1)).ratio
    assert (np.abs(other - ratios[0])[:, -1] > 1e-6).all()


def test_two_measurements_are_bit_equal() -> None:
    net = seeded(NETS["batchnorm_maxpool"])
    first, second = (measure_profile(net, random_images(2), few(), chunk=7) for _ in range(2))
    for name in ("ratio", "response", "prediction", "standard_error", "noise"):
        assert (getattr(first, name) == getattr(second, name)).all()


def test_memory_shortage_halves_the_chunk_and_keeps_the_answer() -> None:
    net = seeded(NETS["gelu"])

    def small(images: Tensor) -> Tensor:
        if len(images) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        features: Tensor = net(images)
        return features

    profile = measure_profile(small, random_images(2), few(), chunk=64)
    assert profile.context["chunk"] == 4
    np.testing.assert_allclose(profile.ratio, measure_profile(net, random_images(2), few()).ratio, rtol=1e-3)


def test_memory_for_one_image_is_enough_also_without_a_twin() -> None:
    def one_image(images: Tensor) -> Tensor:
        if len(images) > 1:
            raise MemoryError
        return images.float().flatten(1).tanh()

    profile = measure_profile(one_image, random_images(2), few())
    assert profile.context["chunk"] == 1
    assert (profile.reason == Reason.KEPT).all()


def test_no_memory_for_one_image_is_said() -> None:
    def none(images: Tensor) -> Tensor:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    with pytest.raises(LitBumpError, match="one image at a time does not fit into the memory of cpu"):
        measure_profile(none, random_images(1), few())


def test_one_pair_has_a_ratio_and_no_error() -> None:
    profile = measure_profile(seeded(NETS["gelu"]), random_images(1), few(n_pairs=1, n_noise=1))
    assert np.isfinite(profile.ratio).all()
    assert np.isnan(profile.standard_error).all()


def test_progress_counts_to_its_total() -> None:
    seen: list[tuple[int, int]] = []
    measure_profile(seeded(NETS["gelu"]), random_images(2), few(), chunk=7, progress=lambda n, of: seen.append((n, of)))
    assert seen[-1][0] == seen[-1][1] == 2 * (6 * 5 * 2 + 2 * 5 * 4 + 6)
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)


def test_progress_bar_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    measure_profile(nn.Flatten(), random_images(1), few(), progress=True)
    assert "response profile" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"), [({"chunk": 0}, "chunk is 0"), ({"first_image": -1}, "first_image is -1")]
)
def test_counts_out_of_range_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(LitBumpError, match=message):
        measure_profile(nn.Flatten(), random_images(1), few(), **values)  # type: ignore[arg-type]


def test_record_says_what_was_done() -> None:
    net = seeded(NETS["gelu"])
    images = random_images(2)
    profile = measure_profile(net, images, few())
    assert profile.image_digests == image_digests(images)
    assert profile.image_digests == image_digests(images.to(memory_format=torch.channels_last).double())
    assert len(set(profile.image_digests)) == 2
    assert profile.n_directions.tolist() == [[12] * 5] * 2
    assert profile.noise_method == "float64 twin"
    assert profile.context["device"] == "cpu"
    assert profile.seconds > 0
    with torch.no_grad():
        next(net.parameters())[0] += 1e-3
    assert measure_profile(net, images, few()).encoder_digest != profile.encoder_digest


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 30.0])
def test_an_isometry_whose_control_does_not_vary_has_ratio_one_with_small_errors(seed: int, scale: float) -> None:
    images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
    profile = measure_profile(lambda x: scale * x.flatten(1), images, Protocol.quick((3, 8, 8)))
    np.testing.assert_allclose(profile.ratio, 1.0, atol=0.06)  # the sketch's error of a flat spectrum, as stated
    assert (profile.standard_error < 0.05).all()
    assert profile.bump().verdict == "none"
