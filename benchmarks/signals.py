"""Convolutions, filters, spectra and distributions beside SciPy's: `python -m benchmarks.signals [--quick]`."""

from __future__ import annotations

import argparse
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks.linear_algebra import milliseconds

Case = tuple[str, Callable[[Any], Callable[..., Any]], tuple[tuple[int, ...], ...]]


def cases() -> list[Case]:
    """Names, the function of a module of signals or distributions, and the shapes of its arrays."""
    signal = importlib.import_module("scipy.signal")
    sos = signal.butter(8, 0.2, output="sos")
    b, a = signal.butter(4, 0.2)

    def method(name: str, mode: str, how: str) -> Callable[[Any], Callable[..., Any]]:
        return lambda m: lambda x, y: getattr(m, name)(x, y, mode, how)

    return [
        ("convolve direct, 10000 with 31", method("convolve", "same", "direct"), ((10000,), (31,))),
        ("convolve direct, 65536 with 255", method("convolve", "full", "direct"), ((65536,), (255,))),
        ("convolve fft, 65536 with 4096", method("convolve", "full", "fft"), ((65536,), (4096,))),
        ("convolve auto, 100000 with 1000", method("convolve", "same", "auto"), ((100000,), (1000,))),
        ("convolve2d, 512x512 with 5x5", lambda m: lambda x, y: m.convolve2d(x, y, "same", "symm"),
         ((512, 512), (5, 5))),
        ("fftconvolve, 512x512 with 65x65", lambda m: m.fftconvolve, ((512, 512), (65, 65))),
        ("oaconvolve, 1000000 with 500", lambda m: m.oaconvolve, ((1_000_000,), (500,))),
        ("lfilter of order 4, 100000", lambda m: lambda x: m.lfilter(b.astype(x.dtype), a.astype(x.dtype), x),
         ((100_000,),)),
        ("lfilter of order 4, 64x4096", lambda m: lambda x: m.lfilter(b.astype(x.dtype), a.astype(x.dtype), x),
         ((64, 4096),)),
        ("sosfilt of order 8, 100000", lambda m: lambda x: m.sosfilt(sos.astype(x.dtype), x), ((100_000,),)),
        ("sosfiltfilt of order 8, 16x10000", lambda m: lambda x: m.sosfiltfilt(sos.astype(x.dtype), x),
         ((16, 10000),)),
        ("stft, 160000", lambda m: lambda x: m.stft(x, nperseg=512, noverlap=384)[2], ((160_000,),)),
        ("istft of stft, 160000", lambda m: lambda x: m.istft(m.stft(x, nperseg=512)[2], nperseg=512)[1],
         ((160_000,),)),
        ("welch, 160000", lambda m: lambda x: m.welch(x, nperseg=1024)[1], ((160_000,),)),
        ("hilbert, 100000", lambda m: m.hilbert, ((100_000,),)),
        ("resample, 100000 to 44100", lambda m: lambda x: m.resample(x, 44100), ((100_000,),)),
        ("savgol_filter, 100000", lambda m: lambda x: m.savgol_filter(x, 21, 3), ((100_000,),)),
    ]  # fmt: skip


DENSITIES: list[tuple[str, str, tuple[float, ...]]] = [
    ("norm", "logpdf", ()), ("norm", "cdf", ()), ("gamma", "logpdf", (2.5,)), ("gamma", "cdf", (2.5,)),
    ("t", "logpdf", (4.0,)), ("beta", "pdf", (2.0, 3.0)), ("truncnorm", "logpdf", (-1.0, 2.0)), ("norm", "ppf", ()),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    budget = 0.2 if parser.parse_args().quick else 1.5
    rng = np.random.default_rng(0)
    ours, theirs = ml.signal, importlib.import_module("scipy.signal")
    print("Times in ms; ratios above 1: mlirml is faster.\n")
    print("| | f64: mlirml | of SciPy | f32: mlirml | of SciPy |\n|---|" + "---|" * 4)
    ratios = []

    def row(label: str, own: Callable[..., Any], peer: Callable[..., Any], arrays: list[np.ndarray]) -> None:
        compiled, cells = ml.compile(own), []
        for dtype in (np.float64, np.float32):
            given = [x.astype(dtype) for x in arrays]
            programs: list[Callable[[], Any]] = [functools.partial(f, *given) for f in (compiled, peer)]
            time, other = milliseconds(programs, budget)
            ratios.append(other / time)
            cells += [f"{time:.4g}", f"{other / time:.2f}"]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)

    for label, of, shapes in cases():
        row(label, of(ours), of(theirs), [rng.standard_normal(shape) for shape in shapes])
    densities, peers = ml.stats, importlib.import_module("scipy.stats")
    for name, method, parameters in DENSITIES:
        functions = [getattr(getattr(module, name), method) for module in (densities, peers)]
        own, peer = ((lambda x, f=f, p=parameters: f(x, *p)) for f in functions)
        row(f"{name}.{method}, 100000", own, peer, [rng.uniform(0.01, 0.99, 100_000)])
    mean, below = np.exp(np.mean(np.log(ratios))), sum(ratio < 0.95 for ratio in ratios)
    print(f"\ngeometric mean {mean:.2f}, {below} of {len(ratios)} below 0.95")


if __name__ == "__main__":
    main()
