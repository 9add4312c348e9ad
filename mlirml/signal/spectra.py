"""Short-time Fourier transforms, spectra by averages of them, analytic signals, resampling, trends."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ops.functions import library
from mlirml.signal.convolutions import overlap_added
from mlirml.signal.filters import axis_of, floats
from mlirml.signal.windows import get_window

__all__ = ["coherence", "csd", "detrend", "hilbert", "istft", "periodogram", "resample", "spectrogram", "stft", "welch"]


@library("mlirml.signal", "data")
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0) -> Any:
    """`data` less its mean ("constant") or the line that fits best ("linear"), in pieces that end at `bp`."""
    (x,) = floats(data)
    place = axis_of("detrend", x, axis)
    if type not in ("linear", "l", "constant", "c"):
        with at_user_line():
            raise ArgumentError(f"detrend: the type is 'linear' or 'constant', not {type!r}")
    x = np.moveaxis(x, place, -1)
    if type in ("constant", "c"):
        return np.moveaxis(x - np.mean(x, axis=-1, keepdims=True), -1, place)
    count = x.shape[-1]
    ends = sorted({0, count, *(int(b) for b in np.atleast_1d(bp))})
    if ends[-1] > count or ends[0] < 0:
        with at_user_line():
            raise ShapeError(f"detrend: a piece ends after the {count} elements, at {ends[-1]}")
    pieces = []
    for first, last in itertools.pairwise(ends):
        piece = x[..., first:last]
        time = (np.arange(last - first) - (last - first - 1) / 2).astype(np.zeros((), x.dtype).real.dtype)
        piece = piece - np.mean(piece, axis=-1, keepdims=True)
        square = float(np.sum(time * time)) or 1.0
        pieces.append(piece - np.sum(piece * time, axis=-1, keepdims=True) / square * time)
    return np.moveaxis(np.concatenate(pieces, axis=-1) if pieces else x, -1, place)


@library("mlirml.signal", "x")
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """The analytic signal of real `x` along an axis: x + i times its Hilbert transform."""
    (x,) = floats(x)
    place = axis_of("hilbert", x, axis)
    with at_user_line():
        if x.dtype.kind == "c":
            raise DTypeError("hilbert: takes real numbers")
        count = x.shape[place] if N is None else operator.index(N)
        if count < 1:
            raise ShapeError(f"hilbert: the number of points is positive, not {count}")
    factors = np.full(count // 2 + 1, 2, x.dtype)
    factors[0] = 1
    if count % 2 == 0:
        factors[-1] = 1
    bins = np.moveaxis(np.fft.rfft(x, count, axis=place), place, -1) * factors
    bins = np.pad(bins, [(0, 0)] * (bins.ndim - 1) + [(0, count - bins.shape[-1])])
    return np.moveaxis(np.fft.ifft(bins, axis=-1), -1, place)


@library("mlirml.signal", "x")
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """`x` with `num` elements along an axis instead of its own, by a Fourier transform; it counts as periodic.

    `window` is a function of the frequencies, an array of [Nx] or a name for `get_window`, by which the spectrum is
    multiplied; `domain` is "time", or "freq" where `x` is a spectrum already. With times `t` of `x` the result is a
    pair with the new times.
    """
    (x,) = floats(x)
    place = axis_of("resample", x, axis)
    count = x.shape[place]
    with at_user_line():
        if domain not in ("time", "freq"):
            raise ArgumentError(f"resample: the domain is 'time' or 'freq', not {domain!r}")
        if num < 1 or count < 1:
            raise ShapeError(f"resample: {count} elements cannot become {num}")
    x = np.moveaxis(x, place, -1)
    real = x.dtype.kind != "c"
    bins: Any = x if domain == "freq" else np.fft.rfft(x, axis=-1) if real else np.fft.fft(x, axis=-1)
    if domain == "freq":
        real = False
    if window is not None:
        factors = _of_frequencies(window, count)
        if real:
            turned = np.concatenate((factors[:1], factors[:0:-1]))
            factors = ((factors + turned) / 2)[: count // 2 + 1]
        bins = bins * factors.astype(np.zeros((), x.dtype).real.dtype)
    least = min(num, count)
    half = least // 2 + 1
    if real:
        found = bins[..., :half]
        if least % 2 == 0 and num != count:
            ends = np.ones(half, np.zeros((), x.dtype).real.dtype)
            ends[-1] = 2 if num < count else 0.5
            found = found * ends
        found = np.pad(found, [(0, 0)] * (x.ndim - 1) + [(0, num // 2 + 1 - half)])
        y: Any = np.fft.irfft(found, num, axis=-1)
    else:
        left, right = bins[..., : (least + 1) // 2], bins[..., count - (least - 1) // 2 :]
        margin = [(0, 0)] * (x.ndim - 1)
        parts = [left]
        if least % 2 == 0:
            middle = bins[..., least // 2 : least // 2 + 1]
            if num < count:
                middle = middle + bins[..., count - least // 2 : count - least // 2 + 1]
            if num > count:
                parts += [middle / 2, np.zeros((*x.shape[:-1], num - least - 1), bins.dtype), middle / 2]
            else:
                parts += [middle]
        else:
            parts += [np.pad(left[..., :0], [*margin, (0, num - least)])]
        y = np.fft.ifft(np.concatenate([*parts, right], axis=-1), axis=-1)
    y = np.moveaxis(y * (num / count), -1, place)
    return y if t is None else (y, np.arange(num) * (t[1] - t[0]) * count / num + t[0])


def _of_frequencies(window: Any, count: int) -> Any:
    if callable(window):
        return np.asarray(window(np.fft.fftfreq(count)))
    if isinstance(window, (str, tuple, int, float)):
        return np.fft.fftshift(get_window(window, count))
    window = np.asarray(window)
    if window.shape != (count,):
        with at_user_line():
            raise ShapeError(f"resample: the window has shape {list(window.shape)}, not [{count}]")
    return window


def _window_of(name: str, window: Any, nperseg: int | None, length: int | None) -> tuple[Any, int]:
    """The window as an array, and its length."""
    if isinstance(window, (str, tuple)):
        size = 256 if nperseg is None else operator.index(nperseg)
        with at_user_line():
            if size < 1:
                raise ShapeError(f"{name}: nperseg is positive, not {size}")
        size = size if length is None else min(size, max(length, 1))
        return get_window(window, size), size
    window = window if isinstance(window, Traced) else np.asarray(window)
    with at_user_line():
        if window.ndim != 1:
            raise ShapeError(f"{name}: the window is a vector, not of shape {list(window.shape)}")
        if nperseg is not None and nperseg != window.shape[0]:
            raise ShapeError(f"{name}: a window of {window.shape[0]} numbers for segments of {nperseg}")
        if length is not None and window.shape[0] > length:
            raise ShapeError(f"{name}: the window is longer than the input, {window.shape[0]} > {length}")
    return window, window.shape[0]


def _geometry(name: str, nperseg: int, noverlap: int | None, nfft: int | None) -> tuple[int, int]:
    """The number of elements that segments share, and that of the points of a transform."""
    shared = nperseg // 2 if noverlap is None else operator.index(noverlap)
    points = nperseg if nfft is None else operator.index(nfft)
    with at_user_line():
        if not 0 <= shared < nperseg:
            raise ShapeError(f"{name}: noverlap {shared} is not below nperseg {nperseg}")
        if points < nperseg:
            raise ShapeError(f"{name}: nfft {points} is below nperseg {nperseg}")
    return shared, points


def _segments(x: Any, size: int, step: int) -> Any:
    """The segments [..., count, size] of the last dimension that begin `step` elements after each other."""
    count = (x.shape[-1] - size) // step + 1
    if step == size:
        return x[..., : count * size].reshape((*x.shape[:-1], count, size))
    return np.take(x, np.arange(count)[:, None] * step + np.arange(size), axis=-1)


def _detrended(segments: Any, form: Any) -> Any:
    if not form:
        return segments
    return form(segments) if callable(form) else detrend(segments, type=form)


def _scale(name: str, window: Any, fs: Any, scaling: str, amplitude: bool) -> Any:
    if scaling not in (("spectrum", "psd") if amplitude else ("spectrum", "density")):
        with at_user_line():
            raise ArgumentError(f"{name}: the scaling is {'spectrum, psd' if amplitude else 'spectrum, density'}")
    if scaling == "spectrum":
        return 1 / np.sum(window) ** 2
    return 1 / (fs * np.sum(window * window))


def _transforms(
    name: str, x: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any, onesided: bool
) -> tuple[Any, Any, int, int, int, bool]:
    """Transforms [..., segments, bins] of the last dimension, window, nperseg, step, points, and if one-sided."""
    window, size = _window_of(name, window, nperseg, x.shape[-1])
    shared, points = _geometry(name, size, noverlap, nfft)
    onesided = onesided and x.dtype.kind != "c"
    segments = _detrended(_segments(x, size, size - shared), detrend)
    segments = segments * window.astype(np.zeros((), segments.dtype).real.dtype)
    bins = np.fft.rfft(segments, points, axis=-1) if onesided else np.fft.fft(segments, points, axis=-1)
    return bins, window, size, size - shared, points, onesided


def _frequencies(points: int, fs: Any, onesided: bool) -> Any:
    return np.fft.rfftfreq(points, 1 / fs) if onesided else np.fft.fftfreq(points, 1 / fs)


@library("mlirml.signal", "x")
def stft(
    x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = 256, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = False, return_onesided: bool = True, boundary: str | None = "zeros",
    padded: bool = True, axis: int = -1, scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The short-time Fourier transform: frequencies, times of the segments, and [..., frequencies, times].

    The segments have `nperseg` elements, `noverlap` of them shared with the next one (half of them by default), and are
    multiplied by the window. `boundary` extends `x` by half a segment at both ends: "zeros", "even", "odd", "constant"
    or None. With `padded` zeros fill the last segment. `scaling` is "spectrum" or "psd".
    """
    (x,) = floats(x)
    place = axis_of("stft", x, axis)
    x = np.moveaxis(x, place, -1)
    with at_user_line():
        if boundary not in ("zeros", "even", "odd", "constant", None):
            raise ArgumentError(f"stft: the boundary is 'zeros', 'even', 'odd', 'constant' or None, not {boundary!r}")
        if not x.size:
            raise ShapeError(f"stft: an input without elements, of shape {list(x.shape)}")
    made, size = _window_of("stft", window, nperseg, x.shape[-1])
    shared, _ = _geometry("stft", size, noverlap, nfft)
    step, half, margin = size - shared, size // 2, [(0, 0)] * (x.ndim - 1)
    if boundary == "zeros":
        x = np.pad(x, [*margin, (half, half)])
    elif boundary is not None and half:
        before, after = x[..., half:0:-1], x[..., -2 : -half - 2 : -1]
        first, last = x[..., :1], x[..., -1:]
        if boundary == "odd":
            before, after = 2 * first - before, 2 * last - after
        elif boundary == "constant":
            before, after = before * 0 + first, after * 0 + last
        x = np.concatenate((before, x, after), axis=-1)
    if padded:
        x = np.pad(x, [*margin, (0, -(x.shape[-1] - size) % step % size)])
    bins, made, size, step, points, onesided = _transforms(
        "stft", x, made, None, shared, nfft, detrend, return_onesided
    )
    real = np.zeros((), bins.dtype).real.dtype
    bins = bins * np.sqrt(_scale("stft", made, fs, scaling, True)).astype(real)
    times = (np.arange(bins.shape[-2]) * step + size / 2) / fs - (size / 2 / fs if boundary is not None else 0)
    bins = np.moveaxis(np.swapaxes(bins, -1, -2), -1, -1)
    return _frequencies(points, fs, onesided), times, np.moveaxis(bins, -2, place)


@library("mlirml.signal", "Zxx")
def istft(
    Zxx: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
    freq_axis: int = -2, scaling: str = "spectrum",
) -> tuple[Any, Any]:  # fmt: skip
    """The inverse of `stft`: times, and the signal of least squares (Griffin and Lim, IEEE ASSP 32, 1984)."""
    (bins,) = floats(Zxx)
    with at_user_line():
        if bins.ndim < 2:
            raise ShapeError("istft: takes an array of at least two dimensions")
    times, frequencies = axis_of("istft", bins, time_axis), axis_of("istft", bins, freq_axis)
    if times == frequencies:
        with at_user_line():
            raise ShapeError("istft: time_axis and freq_axis are the same")
    bins = np.moveaxis(bins, (times, frequencies), (-2, -1))
    default = 2 * (bins.shape[-1] - 1) if input_onesided else bins.shape[-1]
    size = default if nperseg is None else operator.index(nperseg)
    points = nfft if nfft is not None else size if input_onesided and size == default + 1 else default
    made, size = _window_of("istft", window, size, None)
    shared, points = _geometry("istft", size, noverlap, points)
    step, count = size - shared, bins.shape[-2]
    if not count:
        with at_user_line():
            raise ShapeError("istft: there are no segments")
    segments = np.fft.irfft(bins, points, axis=-1) if input_onesided else np.fft.ifft(bins, points, axis=-1)
    real = np.zeros((), segments.dtype).real.dtype
    scale = np.sqrt(1 / _scale("istft", made, fs, scaling, True)).astype(real)
    made = made.astype(real)
    x = overlap_added(segments[..., :size] * (made * scale), step)
    norm = overlap_added(np.broadcast_to(made * made, (count, size)), step)
    x = x / np.where(norm > 1e-10, norm, 1)
    if boundary:
        x = x[..., size // 2 : x.shape[-1] - size // 2]
    time = np.arange(x.shape[-1]) / fs
    return time, np.moveaxis(x, -1, times - (frequencies < times))


def _spectral(
    name: str, pair: tuple[Any, Any], fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
    onesided: bool, scaling: str, axis: int,
) -> tuple[Any, Any, Any, int]:  # fmt: skip
    """Frequencies, times, densities [..., segments, bins] of one or two arrays, and the axis of the frequencies."""
    x, y = pair
    same = y is x
    x, y = floats(x, y)
    place = axis_of(name, x, axis)
    x = np.moveaxis(x, place, -1)
    with at_user_line():
        if not x.size:
            raise ShapeError(f"{name}: an input without elements, of shape {list(x.shape)}")
        if y.ndim <= place or y.shape[place] != x.shape[-1]:
            raise ShapeError(f"{name}: the two inputs have other lengths")
    bins, made, size, step, points, onesided = _transforms(
        name, x, window, nperseg, noverlap, nfft, detrend, onesided and y.dtype.kind != "c"
    )
    other = bins
    if not same:
        other = _transforms(
            name, np.moveaxis(y, place, -1), window, nperseg, noverlap, nfft, detrend, onesided
        )[0]  # fmt: skip
    real = np.zeros((), bins.dtype).real.dtype
    power = np.real(np.conj(bins) * bins) if same else np.conj(bins) * other
    factors = np.ones(power.shape[-1], real)
    if onesided:
        factors[1 : None if points % 2 else -1] = 2
    power = power * (np.asarray(_scale(name, made, fs, scaling, False)).astype(real) * factors)
    return _frequencies(points, fs, onesided), (np.arange(power.shape[-2]) * step + size / 2) / fs, power, place


@library("mlirml.signal", "x")
def spectrogram(
    x: Any, fs: float = 1.0, window: Any = ("tukey", 0.25), nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, mode: str = "psd",
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Frequencies, times of the segments, and the power of each frequency in each of them [..., frequencies, times].

    `mode` is "psd", "complex" or "magnitude".
    """
    if mode not in ("psd", "complex", "magnitude"):
        with at_user_line():
            raise ArgumentError(f"spectrogram: the mode is 'psd', 'complex' or 'magnitude', not {mode!r}")
    (x,) = floats(x)
    length = x.shape[axis_of("spectrogram", x, axis)]
    _, size = _window_of("spectrogram", window, nperseg, length)
    shared = size // 8 if noverlap is None else noverlap
    if mode != "psd":
        scaling = "spectrum" if scaling == "spectrum" else "psd"
        frequencies, times, bins = stft(
            x, fs, window, size, shared, nfft, detrend, return_onesided, None, False, axis, scaling
        )
        return frequencies, times, np.abs(bins) if mode == "magnitude" else bins
    frequencies, times, power, place = _spectral(
        "spectrogram", (x, x), fs, window, nperseg, shared, nfft, detrend, return_onesided, scaling, axis
    )
    return frequencies, times, np.moveaxis(np.swapaxes(power, -1, -2), -2, place)


@library("mlirml.signal", "x", "y")
def csd(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Any, Any]:  # fmt: skip
    """Frequencies, and the cross power spectral density of two signals by Welch's method."""
    if average not in ("mean", "median"):
        with at_user_line():
            raise ArgumentError(f"csd: the average is 'mean' or 'median', not {average!r}")
    frequencies, _, power, place = _spectral(
        "csd", (x, y), fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )
    if average == "mean":
        found = np.mean(power, axis=-2)
    else:
        count = power.shape[-2]
        evens = 2 * np.arange(1, (count - 1) // 2 + 1)
        bias = 1 + float(np.sum(1 / (evens + 1) - 1 / evens))
        found = np.median(np.real(power), axis=-2)
        if power.dtype.kind == "c":
            found = found + 1j * np.median(np.imag(power), axis=-2)
        found = (found / bias).astype(power.dtype)
    return frequencies, np.moveaxis(found, -1, place)


@library("mlirml.signal", "x")
def welch(
    x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Any, Any]:  # fmt: skip
    """Frequencies, and the power spectral density as the average over segments (Welch, IEEE AU 15, 1967)."""
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    frequencies, density = csd(x, x, *options)
    return frequencies, density


@library("mlirml.signal", "x")
def periodogram(
    x: Any, fs: float = 1.0, window: Any = "boxcar", nfft: int | None = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> tuple[Any, Any]:  # fmt: skip
    """Frequencies, and the power spectral density by one transform of the whole signal."""
    (x,) = floats(x)
    place = axis_of("periodogram", x, axis)
    count = x.shape[place]
    if nfft is not None and nfft < count:
        x = x[(slice(None),) * place + (slice(nfft),)]
        count = nfft
    window = "boxcar" if window is None else window
    frequencies, density = welch(x, fs, window, count, 0, nfft, detrend, return_onesided, scaling, axis)
    return frequencies, density


@library("mlirml.signal", "x", "y")
def coherence(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", axis: int = -1,
) -> tuple[Any, Any]:  # fmt: skip
    """Frequencies, and the squared coherence of two signals: |Pxy|**2 / (Pxx Pyy)."""
    options = (fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis)
    frequencies, cross = csd(x, y, *options)
    return frequencies, np.abs(cross) ** 2 / welch(x, *options)[1] / welch(y, *options)[1]
