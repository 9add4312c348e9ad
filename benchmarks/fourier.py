"""Fourier transforms beside NumPy's and SciPy's: `python -m benchmarks.fourier [--quick]`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks.linear_algebra import milliseconds

LINES = [(n,) for n in (64, 97, 256, 1000, 1009, 4096, 10007, 65536, 1 << 20)]
STACKS = [(10000, 16), (1000, 100), (256, 1024)]
PLANES = [(64, 64), (256, 256), (1000, 1000), (1024, 1024)]
CASES: list[tuple[str, str, tuple[int, ...], str]] = [
    *(("fft", "fft", shape, "c") for shape in (*LINES, *STACKS)),
    *(("rfft", "rfft", shape, "f") for shape in (*LINES, *STACKS)),
    *(("fft2", "fft2", shape, "c") for shape in PLANES),
    *(("rfft2", "rfft2", shape, "f") for shape in PLANES),
    ("fftn", "fftn", (64, 64, 64), "c"),
]


def measured(name: str, shape: tuple[int, ...], form: str, double: bool, scipy_fft: Any, budget: float) -> list[float]:
    """The times of mlirml, NumPy and SciPy in milliseconds."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if form == "c":
        x = x + 1j * rng.standard_normal(shape)
    x = x.astype({"f": "f8", "c": "c16"}[form] if double else {"f": "f4", "c": "c8"}[form])
    compiled = ml.compile(getattr(np.fft, name))
    functions: list[Callable[[], Any]] = [lambda: compiled(x), lambda: getattr(np.fft, name)(x)]
    if scipy_fft is not None:
        functions.append(lambda: getattr(scipy_fft, name)(x))
    return milliseconds(functions, budget)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    budget = 0.2 if parser.parse_args().quick else 1.5
    try:
        scipy_fft: Any = importlib.import_module("scipy.fft")
    except ImportError:
        scipy_fft = None
    print("Times in ms; ratios above 1: mlirml is faster.\n")
    print("| | f64: mlirml | of NumPy | of SciPy | f32: mlirml | of NumPy | of SciPy |\n|---|" + "---|" * 6)
    ratios: list[list[float]] = []
    for label, name, shape, form in CASES:
        cells = []
        for double in (True, False):
            ours, *others = measured(name, shape, form, double, scipy_fft, budget)
            ratios.append([other / ours for other in others])
            cells += [f"{ours:.4g}", *(f"{other / ours:.2f}" for other in others), *([""] * (2 - len(others)))]
        print(f"| {label} {'x'.join(map(str, shape))} | {' | '.join(cells)} |", flush=True)
    for number, peer in enumerate(("NumPy", "SciPy")[: len(ratios[0])]):
        found = [row[number] for row in ratios]
        mean, below = np.exp(np.mean(np.log(found))), sum(ratio < 0.95 for ratio in found)
        print(f"\n{peer}: geometric mean {mean:.2f}, {below} of {len(found)} below 0.95")


if __name__ == "__main__":
    main()
