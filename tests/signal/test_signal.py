"""`mlirml.signal` against SciPy, compiled and not, its derivatives against differences, and its errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import signal

scipy_signal: Any = pytest.importorskip("scipy.signal")

RNG = np.random.default_rng(0)
MODES = ("full", "same", "valid")
DTYPES = ("f8", "f4", "c16", "c8")
SOS = scipy_signal.butter(5, 0.3, output="sos")
FILTERS = [
    ([1.0, 2.0, 3.0], [2.0, 0.5]), ([0.5], [1.0, -0.5, 0.2]), ([1.0, 2.0, 3.0], [2.0]), ([0.3], [1.0]),
    ([1.0] + [0.01] * 27, [1.0] + [0.01] * 28),
]  # fmt: skip


def drawn(dtype: str, *shape: int) -> np.ndarray:
    x = RNG.standard_normal(shape) * (10 if dtype[0] == "i" else 1)
    return (x + 1j * RNG.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def check(found: Any, expected: Any, factor: float = 1) -> None:
    """Compare results with SciPy's, and their dtypes."""
    if isinstance(expected, tuple):
        for x, y in zip(found, expected, strict=True):
            check(x, y, factor)
        return
    single = expected.dtype in (np.float32, np.complex64)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = factor * (3e-5 if single else 1e-11)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def both(name: str, *args: Any, factor: float = 1, **options: Any) -> None:
    check(getattr(signal, name)(*args, **options), getattr(scipy_signal, name)(*args, **options), factor)


@pytest.mark.parametrize("dtype", [*DTYPES, "i8"])
def test_convolutions(dtype: str) -> None:
    sizes = ((7, 3), (3, 7), (8, 4), (1, 1), (5, 1), (1, 5), (40, 33))
    for mode, name, method in itertools.product(MODES, ("convolve", "correlate"), ("auto", "direct", "fft")):
        for n, m in sizes:
            both(name, drawn(dtype, n), drawn(dtype, m), mode, method)
        shapes: tuple[Any, ...] = (((5, 6), (3, 2)), ((3, 2), (5, 6)), ((3, 4, 5), (2, 2, 3)))
        for shape, second in shapes:
            both(name, drawn(dtype, *shape), drawn(dtype, *second), mode, method)
    for mode in MODES:
        both("fftconvolve", drawn(dtype, 5, 6), drawn(dtype, 3, 2), mode)
        both("fftconvolve", drawn(dtype, 3, 50), drawn(dtype, 1, 7), mode, axes=-1)
        for one, other in ((1000, 7), (7, 1000)):
            both("oaconvolve", drawn(dtype, one), drawn(dtype, other), mode)
        both("oaconvolve", drawn(dtype, 3, 400), drawn(dtype, 1, 5), mode, axes=1)


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_convolutions_of_matrices(boundary: str) -> None:
    shapes = (((5, 6), (3, 2)), ((6, 5), (4, 4)), ((3, 2), (5, 6)), ((1, 1), (1, 1)))
    for dtype, mode, (shape, other), name in itertools.product(
        ("f8", "f4", "c16", "i8"), MODES, shapes, ("convolve2d", "correlate2d")
    ):
        if not (mode == "valid" and dtype[0] == "c" and shape == (3, 2)):  # of which SciPy conjugates the other one
            both(name, drawn(dtype, *shape), drawn(dtype, *other), mode, boundary, 0 if dtype[0] == "c" else 2)


def test_lags_and_methods() -> None:
    for mode, n, m in itertools.product(MODES, (1, 4, 5), (1, 2, 5)):
        np.testing.assert_array_equal(
            signal.correlation_lags(n, m, mode), scipy_signal.correlation_lags(n, m, mode)
        )  # fmt: skip
    large, small = np.ones(100_000), np.ones(5)
    assert signal.choose_conv_method(large, large) == "fft" and signal.choose_conv_method(large, small) == "direct"
    assert signal.choose_conv_method(large.astype(int), large.astype(int)) == "direct"
    assert signal.fftconvolve(np.zeros(0), small).size == signal.convolve(np.zeros(0), small).size == 0


WINDOWS: list[Any] = [
    "hann", "hamming", "blackman", "boxcar", "triang", "bartlett", "cosine", "bohman", "parzen", "nuttall", "tukey",
    "blackmanharris", "flattop", ("tukey", 0.3), ("tukey", 0.0), ("kaiser", 5.0), 4.0, ("gaussian", 3.0),
    ("general_gaussian", 1.5, 3.0), ("general_hamming", 0.6), ("general_cosine", [0.5, 0.3, 0.2]),
    ("exponential", None, 3.0), "hann_symmetric",
]  # fmt: skip


def test_windows() -> None:
    for window, count, periodic in itertools.product(WINDOWS, (1, 2, 3, 8, 9, 31), (True, False)):
        expected = scipy_signal.get_window(window, count, periodic)
        np.testing.assert_allclose(signal.get_window(window, count, periodic), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_recursive_filters(dtype: str) -> None:
    for axis in (-1, 0):
        x = drawn(dtype, 9, 10)
        for row in FILTERS:
            b, a = (np.array(coefficients, dtype) for coefficients in row)
            both("lfilter", b, a, x, axis, factor=10)
            order = max(len(a), len(b)) - 1
            shape = list(x.shape)
            shape[axis] = order
            if order:
                both("lfilter", b, a, x, axis, drawn(dtype, *shape), factor=10)
            if 0 < order < 5 and dtype[0] == "f":
                both("lfilter_zi", b, a)
                for padtype in ("odd", "even", "constant", None):
                    both("filtfilt", b, a, drawn(dtype, 20, 20), axis, padtype, factor=10)
        if dtype[0] == "f":
            sos = SOS.astype(dtype)
            both("sosfilt", sos, x, axis)
            shape = [3, *x.shape]
            shape[axis % 2 + 1] = 2
            both("sosfilt", sos, x, axis, drawn(dtype, *shape))
            both("sosfilt_zi", sos, factor=10)
            for padtype in ("odd", None):
                both("sosfiltfilt", sos, drawn(dtype, 30, 30), axis, padtype, factor=10)


def test_short_signals() -> None:
    b, a = np.array([1.0, 2.0]), np.array([1.0, 0.5])
    for count in (0, 1):
        check(signal.lfilter(b, a, np.ones(count)), scipy_signal.lfilter(b, a, np.ones(count)))
        state = np.array([3.0])
        assert float(signal.lfilter(b, a, np.ones(count), zi=state)[1][0]) == (2 - 0.5 * 4 if count else 3)
        check(signal.sosfilt(SOS, np.ones(count)), np.ones(count) * SOS[:, 0].prod())
    check(signal.lfilter(b, [1.0], np.zeros(0)), np.zeros(0))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_smoothing_resampling_and_trends(dtype: str) -> None:
    x = drawn(dtype, 20, 15)
    for axis in (-1, 0):
        if dtype[0] == "f":
            for mode, (length, order, deriv) in itertools.product(
                ("interp", "mirror", "constant", "nearest", "wrap"),
                ((5, 2, 0), (7, 3, 1), (6, 2, 0), (1, 0, 0), (3, 1, 2)),
            ):
                both("savgol_filter", x, length, order, deriv, 0.5, axis, mode, 1.5, factor=10)
            both("hilbert", x, axis=axis)
            both("hilbert", x, 17, axis=axis)
        for num, window in itertools.product((7, 8, 15, 20, 21, 40), (None, "hann")):
            both("resample", x, num, axis=axis, window=window)
        if dtype[0] == "c":
            both("resample", x, 8, axis=axis, domain="freq")
        for type in ("linear", "constant"):
            both("detrend", x, axis, type, factor=10)
            both("detrend", x, axis, type, [5, 11], factor=10)


SEGMENTS: list[dict[str, Any]] = [
    {"nperseg": 8}, {"nperseg": 8, "noverlap": 6, "nfft": 16}, {"nperseg": 9, "noverlap": 4},
    {"nperseg": 8, "noverlap": 0},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra(dtype: str) -> None:
    y = drawn(dtype, 21, 45)
    for axis, segments, onesided in itertools.product((-1, 0), SEGMENTS, (True, False)):
        options = dict(segments, fs=2.0, return_onesided=onesided, axis=axis)
        for boundary, padded in itertools.product(("zeros", "even", "odd", "constant", None), (True, False)):
            both("stft", y, boundary=boundary, padded=padded, scaling="psd" if padded else "spectrum", **options)
        bins = scipy_signal.stft(y, **options)[2]
        inverse = dict(segments, fs=2.0, input_onesided=onesided and dtype[0] == "f", freq_axis=axis % 2)
        time, x = signal.istft(bins, **inverse)
        check(x, scipy_signal.istft(bins, **inverse)[1], 10)
        np.testing.assert_array_equal(time, np.arange(x.shape[-1]) / 2)
        for detrend in ("constant", "linear", False):
            both("spectrogram", y, detrend=detrend, factor=100, **options)
            both("welch", y, detrend=detrend, factor=100, **options)
            both("csd", y, y[::-1].copy(), detrend=detrend, factor=100, **options)
        both("periodogram", y, 2.0, return_onesided=onesided, axis=axis, nfft=segments.get("nfft"), factor=100)
    both("coherence", y, y[::-1] + 2 * y, nperseg=8, factor=300)
    both("welch", y, nperseg=8, average="median", factor=10)
    for mode in ("psd", "complex", "magnitude"):
        both("spectrogram", y, nperseg=8, mode=mode, factor=10)


def program(x: Any, y: Any, image: Any) -> tuple[Any, ...]:
    """Calls of SciPy's own functions."""
    sos = scipy_signal.butter(3, 0.3, output="sos")
    _, _, bins = scipy_signal.stft(x, nperseg=16)
    return (
        scipy_signal.convolve(x, y, mode="same"),
        scipy_signal.convolve(x, y, method="fft"),
        scipy_signal.correlate(image, image[:3, :2], "valid", method="direct"),
        scipy_signal.convolve2d(image, image[:3, :2], "same", "symm"),
        scipy_signal.oaconvolve(x, y[:2]),
        *scipy_signal.lfilter([0.2, 0.1], [1.0, -0.5, 0.2], image, axis=0, zi=image[:2]),
        scipy_signal.filtfilt([0.2, 0.1], [1.0, -0.5], x),
        scipy_signal.sosfilt(sos, x),
        scipy_signal.sosfiltfilt(sos, x),
        scipy_signal.savgol_filter(x, 7, 2),
        bins,
        scipy_signal.istft(bins, nperseg=16)[1],
        scipy_signal.welch(x, nperseg=16)[1],
        scipy_signal.detrend(x),
        scipy_signal.hilbert(x),
        scipy_signal.resample(x, 21),
        x[:8] * scipy_signal.get_window("hann", 8).astype(x.dtype),
    )


def test_scipys_own_names_compile() -> None:
    for dtype in ("f8", "f4"):
        args = drawn(dtype, 60), drawn(dtype, 7), drawn(dtype, 8, 9)
        for x, y in zip(ml.compile(program)(*args), program(*args), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(
                x, y, rtol=1e-3 if dtype == "f4" else 1e-9, atol=1e-4 if dtype == "f4" else 1e-11
            )
    args = drawn("f8", 60), drawn("f8", 7), drawn("f8", 8, 9)
    for x, y in zip(ml.compile(program, target="reference")(*args), program(*args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


def test_a_filter_stays_one_loop() -> None:
    text = ml.lower(lambda x: signal.sosfilt(SOS, x), np.ones((4, 5000))).as_text()
    assert text.count("scf.for") + text.count("scf.while") <= 2 and len(text) < 100_000


def test_derivatives() -> None:
    """In the signal and in the coefficients, in a random direction."""
    b, a, x, sos = np.array([0.2, 0.1]), np.array([1.0, -0.5, 0.2]), drawn("f8", 24), SOS[:1]

    def loss(b: Any, a: Any, x: Any, sos: Any) -> Any:
        y = signal.lfilter(b, a, x)
        y = y + signal.sosfiltfilt(sos, x) + signal.fftconvolve(x, b, "same")
        bins = signal.stft(y, nperseg=8)[2]
        return (
            np.sum(np.abs(bins) ** 2)
            + np.sum(signal.istft(bins**2, nperseg=8)[1] ** 3)
            + np.sum(signal.savgol_filter(y, 5, 2) ** 2)
            + np.sum(signal.convolve(y, a, method="direct") ** 2)
            + np.sum(signal.welch(x, nperseg=8)[1] ** 2)
        )

    args = (b, a, x, sos)
    gradient = ml.grad(loss, (0, 1, 2, 3))(*args)
    for k, part in enumerate(gradient):
        direction = RNG.standard_normal(part.shape)
        if k == 3:
            direction[:, 3] = 0
        values = []
        for step in (1e-5, -1e-5):
            moved = list(args)
            moved[k] = moved[k] + step * direction
            values.append(loss(*moved))
        difference = (values[0] - values[1]) / 2e-5
        assert float(np.sum(part * direction)) == pytest.approx(float(difference), rel=1e-6)


TWOS = np.full((1, 6), 2.0)
BAD: list[tuple[Callable[[np.ndarray], Any], type[Exception], str]] = [
    (lambda x: signal.convolve(x, x, "middle"), ml.ShapeError, "the mode is"),
    (lambda x: signal.convolve(x, x[None]), ml.ShapeError, "1 and 2 dimensions"),
    (lambda x: signal.convolve(x, x, "full", "slow"), ml.ArgumentError, "the method is"),
    (lambda x: signal.convolve(x[:6].reshape(2, 3), x[:6].reshape(3, 2), "valid"), ml.ShapeError, "has to contain"),
    (lambda x: signal.fftconvolve(x, x, axes=2), ml.ShapeError, "out of bounds"),
    (lambda x: signal.fftconvolve(x[None], x[None], axes=(0, -2)), ml.ShapeError, "more than once"),
    (lambda x: signal.convolve2d(x, x), ml.ShapeError, "takes matrices"),
    (lambda x: signal.convolve2d(x[None], x[None], boundary="none"), ml.ArgumentError, "the boundary is"),
    (lambda x: signal.lfilter([1.0], [0.0, 1.0], x), ml.ArgumentError, "zero"),
    (lambda x: signal.lfilter([], [1.0], x), ml.ShapeError, "vectors"),
    (lambda x: signal.lfilter([1.0], [1.0, 0.5], x, zi=x), ml.ShapeError, "zi has shape"),
    (lambda x: signal.lfilter([1.0], [1.0, 0.5], x, axis=1), ml.ShapeError, "axis 1"),
    (lambda x: signal.sosfilt(np.ones((1, 5)), x), ml.ShapeError, "sos has shape"),
    (lambda x: signal.sosfilt(TWOS, x), ml.ArgumentError, "are ones"),
    (lambda x: signal.filtfilt([1.0, 1.0], [1.0], x[:5]), ml.ShapeError, "too few"),
    (lambda x: signal.savgol_filter(x, 11, 2), ml.ShapeError, "does not fit"),
    (lambda x: signal.savgol_filter(x, 3, 3), ml.ArgumentError, "is not below"),
    (lambda x: signal.stft(x, nperseg=4, noverlap=4), ml.ShapeError, "is not below"),
    (lambda x: signal.stft(x, nperseg=4, nfft=3), ml.ShapeError, "is below"),
    (lambda x: signal.stft(x, window=np.ones(20), nperseg=None), ml.ShapeError, "longer than the input"),
    (lambda x: signal.stft(x[:0]), ml.ShapeError, "without elements"),
    (lambda x: signal.istft(x), ml.ShapeError, "two dimensions"),
    (lambda x: signal.get_window("round", 8), ml.ArgumentError, "no window"),
    (lambda x: signal.get_window("gaussian", 8), ml.ArgumentError, "parameters"),
    (lambda x: signal.get_window("hann", 0), ml.ArgumentError, "positive"),
    (lambda x: signal.hilbert(x + 1j), ml.DTypeError, "real numbers"),
    (lambda x: signal.resample(x, 0), ml.ShapeError, "cannot become"),
    (lambda x: signal.detrend(x, type="square"), ml.ArgumentError, "the type is"),
    (lambda x: signal.detrend(x, bp=20), ml.ShapeError, "a piece ends"),
]


def test_what_cannot_be_computed_is_an_error() -> None:
    for function, error, text in BAD:
        for run in (function, ml.compile(function)):
            with pytest.raises(error, match=text):
                run(np.ones(10))
