"""`mlirml.signal` against SciPy: options, dtypes, borders, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import signal
from mlirml.errors import MlirmlError

scipy_signal: Any = pytest.importorskip("scipy.signal")
RNG = np.random.default_rng(0)
X = RNG.standard_normal(300)
ROWS = RNG.standard_normal((3, 120))
IMAGE, KERNEL = RNG.standard_normal((9, 8)), RNG.standard_normal((3, 4))
B, A = scipy_signal.butter(4, 0.3)
SOS = scipy_signal.butter(5, [0.2, 0.5], "bandpass", output="sos")
MODES = ("full", "same", "valid")

PROGRAMS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "convolve": lambda m, x, rows, image: [
        *(m.convolve(x, rows[0, :9], mode) for mode in MODES), m.convolve(x, x[::-1]), m.convolve(rows[0], x, "same"),
        *(m.convolve(image, KERNEL, mode) for mode in MODES), m.convolve(x, rows[0], method="direct"),
        m.convolve(x + 1j * x[::-1], rows[0, :5]), m.convolve(image, KERNEL, method="fft"),
    ],
    "correlate": lambda m, x, rows, image: [
        *(m.correlate(x, rows[0, :10], mode) for mode in MODES), m.correlate(rows[0], x, "valid"),
        m.correlate(x + 0.5j, x * 1j, "same"), m.correlate(image, KERNEL, "same"),
    ],
    "by transforms": lambda m, x, rows, image: [
        *(m.fftconvolve(x, rows[0], mode) for mode in MODES), m.fftconvolve(rows, rows[:1, :7], axes=1),
        m.oaconvolve(x, rows[0, :5], "same"), m.fftconvolve(image, KERNEL, "valid"),
    ],
    "two dimensions": lambda m, x, rows, image: [
        *(m.convolve2d(image, KERNEL, mode) for mode in MODES), m.convolve2d(image, KERNEL, "same", "wrap"),
        m.convolve2d(image, KERNEL, "full", "symm"), m.correlate2d(image, KERNEL, "same", "fill", 2.0),
    ],
    "lfilter": lambda m, x, rows, image: [
        m.lfilter(B, A, x), m.lfilter([0.5, 0.25], [2.0], rows), m.lfilter(B, A, rows, axis=0),
        *m.lfilter(B, A, x, zi=m.lfilter_zi(B, A) * x[0]), m.lfilter([1.0], [1.0, -0.9], rows),
    ],
    "sosfilt": lambda m, x, rows, image: [m.sosfilt(SOS, x), *m.sosfilt(SOS, x, zi=m.sosfilt_zi(SOS) * x[0])],
    "both ways": lambda m, x, rows, image: [
        m.filtfilt(B, A, x), m.filtfilt(B, A, rows, padtype="even", padlen=20), m.sosfiltfilt(SOS, x),
        m.filtfilt(B, A, rows, padtype=None),
    ],
    "savgol_filter": lambda m, x, rows, image: [
        m.savgol_filter(x, 7, 3), m.savgol_filter(rows, 9, 2, 1, 0.5, mode="mirror"),
    ],
    "stft": lambda m, x, rows, image: [
        *m.stft(x, 10.0, nperseg=64),
        *m.stft(rows, nperseg=32, noverlap=20, nfft=40, boundary=None, detrend="constant"),
        *m.stft(x, window="boxcar", nperseg=50, padded=False, scaling="psd"),
    ],
    "istft": lambda m, x, rows, image: [
        *m.istft(m.stft(x, nperseg=64)[2], nperseg=64),
        *m.istft(m.stft(x, nperseg=60, noverlap=45)[2] * 0.5, nperseg=60, noverlap=45),
    ],
    "spectra": lambda m, x, rows, image: [
        *m.welch(x, 5.0, nperseg=64), *m.periodogram(rows, scaling="spectrum"), *m.spectrogram(x, nperseg=32),
        *m.csd(x, x[::-1], nperseg=50), *m.coherence(x, x[::-1] + x, nperseg=32),
    ],
    "others": lambda m, x, rows, image: [
        m.detrend(rows), m.detrend(x, type="constant"), m.hilbert(rows), m.resample(x, 100),
        m.resample(rows, 50, axis=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    program = PROGRAMS[name]
    expected = program(scipy_signal, X, ROWS, IMAGE)
    for run in (lambda *args: program(signal, *args), ml.compile(lambda *args: program(signal, *args))):
        for number, (one, other) in enumerate(zip(run(X, ROWS, IMAGE), expected, strict=True)):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=str(number))


def test_single_precision() -> None:
    x = X.astype(np.float32)

    def program(x: Any) -> Any:
        return (
            signal.convolve(x, x[:9]),
            signal.lfilter(B.astype(np.float32), A.astype(np.float32), x),
            signal.stft(x)[2],
        )

    expected = scipy_signal.convolve(X, X[:9]), scipy_signal.lfilter(B, A, X), scipy_signal.stft(X)[2]
    for found, other in zip(ml.compile(program)(x), expected):
        assert found.dtype.itemsize == (8 if found.dtype.kind == "c" else 4)
        np.testing.assert_allclose(found, other, rtol=1e-3, atol=1e-4)


def test_integers_are_convolved_exactly() -> None:
    x = RNG.integers(-9, 9, 50)
    found = ml.compile(lambda x: signal.convolve(x, x[:6]))(x)
    np.testing.assert_array_equal(found, scipy_signal.convolve(x, x[:6]))
    assert found.dtype == x.dtype


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "boxcar", "flattop", ("kaiser", 5.0), ("tukey", 0.3)])
def test_windows(name: Any) -> None:
    for periodic in (True, False):
        np.testing.assert_allclose(
            signal.get_window(name, 17, periodic), scipy_signal.get_window(name, 17, periodic), atol=1e-14
        )


def test_functions_of_scipy_compile() -> None:
    def program(x: Any) -> Any:
        return scipy_signal.fftconvolve(x, x[:20]), scipy_signal.lfilter(B, A, x), scipy_signal.welch(x, nperseg=64)[1]

    for found, other in zip(ml.compile(program)(X), program(X)):
        np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-10)


DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "convolve": lambda x: signal.convolve(x, x[:7]), "fftconvolve": lambda x: signal.fftconvolve(x, x[3:40]),
    "lfilter": lambda x: signal.lfilter(x[:3], [1.0, -0.5, 0.1], x), "sosfilt": lambda x: signal.sosfilt(SOS, x),
    "stft": lambda x: np.abs(signal.stft(x, nperseg=32)[2]), "filtfilt": lambda x: signal.filtfilt(B, A, x),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    x, step = X[:60], 1e-6

    def loss(x: Any) -> Any:
        return np.sum(np.sin(DERIVATIVES[name](x)))

    direction = RNG.standard_normal(x.shape)
    found = np.sum(ml.grad(loss)(x) * direction)
    assert found == pytest.approx((loss(x + step * direction) - loss(x - step * direction)) / (2 * step), rel=1e-4)


def test_batches() -> None:
    found = ml.vmap(lambda x: signal.lfilter(B, A, signal.convolve(x, x[:5], "same")))(ROWS)
    for row, x in zip(found, ROWS):
        np.testing.assert_allclose(
            row, scipy_signal.lfilter(B, A, np.convolve(x, x[:5], "same")), rtol=1e-9, atol=1e-12
        )


def test_the_loop_over_time_stays_a_loop() -> None:
    """The code does not grow with the signal."""
    short, long = (len(ml.lower(lambda x: signal.lfilter(B, A, x), np.zeros(n)).as_text()) for n in (100, 100_000))
    assert abs(long - short) < 0.05 * short


@pytest.mark.parametrize(
    "call",
    [
        lambda: signal.convolve(X, IMAGE), lambda: signal.convolve(X, X, "half"), lambda: signal.lfilter([], [1.0], X),
        lambda: signal.lfilter([1.0], [0.0, 1.0], X), lambda: signal.sosfilt(SOS[:, :4], X),
        lambda: signal.stft(X, nperseg=16, noverlap=16), lambda: signal.get_window("none", 5),
        lambda: signal.filtfilt(B, A, X[:5]), lambda: signal.convolve(IMAGE, np.ones((20, 1)), "valid"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Callable[[], Any]) -> None:
    with pytest.raises((MlirmlError, ValueError)):
        call()


def test_short_signals() -> None:
    for n in (0, 1):
        x = X[:n]
        np.testing.assert_allclose(signal.lfilter(B, A, x), scipy_signal.lfilter(B, A, x))
        assert signal.convolve(x, x).shape == (n,)
