"""Filters and spectra of signals beside SciPy's: `python -m benchmarks.signals [--quick]`, in one thread."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
import scipy.stats

import mlirml as ml
from benchmarks.linear_algebra import milliseconds
from mlirml import config, signal, stats

B, A = scipy.signal.butter(4, 0.2)
SOS = scipy.signal.butter(6, 0.2, output="sos")
CASES: dict[str, tuple[tuple[int, ...], Callable[[Any, Any, Any], Any]]] = {
    "convolve with 31 numbers": ((100_000,), lambda s, d, x: s.convolve(x, x[:31])),
    "convolve with 5000 numbers": ((100_000,), lambda s, d, x: s.convolve(x, x[:5000])),
    "convolve2d with 5 x 5": ((500, 500), lambda s, d, x: s.convolve2d(x, x[:5, :5], "same")),
    "lfilter of order 4": ((100_000,), lambda s, d, x: s.lfilter(B, A, x)),
    "lfilter of 64 signals": ((64, 2000), lambda s, d, x: s.lfilter(B, A, x)),
    "sosfilt of 3 sections": ((100_000,), lambda s, d, x: s.sosfilt(SOS, x)),
    "stft": ((100_000,), lambda s, d, x: s.stft(x)[2]),
    "welch": ((100_000,), lambda s, d, x: s.welch(x)[1]),
    "logpdf of norm": ((100_000,), lambda s, d, x: d.norm.logpdf(x, 0.5, 2.0)),
    "logpdf of t": ((100_000,), lambda s, d, x: d.t.logpdf(x, 3.0)),
    "cdf of norm": ((100_000,), lambda s, d, x: d.norm.cdf(x)),
}


def measured(run: Callable[[Any, Any, Any], Any], x: np.ndarray, budget: float) -> list[float]:
    """The times of mlirml and SciPy in milliseconds."""
    compiled = ml.compile(lambda x: run(signal, stats, x))
    return milliseconds([lambda: compiled(x), lambda: run(scipy.signal, scipy.stats, x)], budget)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    budget = 0.2 if parser.parse_args().quick else 1.5
    config.threads = 1
    print("Times in ms in f64, and how many times as long SciPy takes.\n\n| | mlirml | SciPy |\n|---|---|---|")
    ratios = []
    for name, (shape, run) in CASES.items():
        ours, other = measured(run, np.random.default_rng(0).standard_normal(shape), budget)
        ratios.append(other / ours)
        print(f"| {name} | {ours:.3g} | {other / ours:.2f} |", flush=True)
    print(f"\nGeometric mean {np.exp(np.mean(np.log(ratios))):.2f}, lowest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
