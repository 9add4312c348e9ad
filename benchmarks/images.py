"""Filters of an image beside SciPy's: `python -m benchmarks.images [--quick]`, in one thread."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

import mlirml as ml
from benchmarks.linear_algebra import milliseconds
from mlirml import config, ndimage

KERNEL = np.random.default_rng(1).standard_normal((5, 5))
AT = np.random.default_rng(2).uniform(0, 999, (2, 100_000))
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "gaussian_filter, sigma 1": lambda m, x: m.gaussian_filter(x, 1.0),
    "gaussian_filter, sigma 3": lambda m, x: m.gaussian_filter(x, 3.0),
    "convolve 5 x 5": lambda m, x: m.convolve(x, KERNEL),
    "sobel": lambda m, x: m.sobel(x),
    "uniform_filter 5": lambda m, x: m.uniform_filter(x, 5),
    "maximum_filter 5": lambda m, x: m.maximum_filter(x, 5),
    "median_filter 3": lambda m, x: m.median_filter(x, 3),
    "median_filter 5": lambda m, x: m.median_filter(x, 5),
    "map_coordinates, 100,000 points": lambda m, x: m.map_coordinates(x, AT, order=1),
    "rotate by 30 degrees": lambda m, x: m.rotate(x, 30.0, order=1),
}


def measured(run: Callable[[Any, Any], Any], x: np.ndarray, budget: float) -> list[float]:
    """The times of mlirml and SciPy in milliseconds."""
    compiled = ml.compile(lambda x: run(ndimage, x))
    return milliseconds([lambda: compiled(x), lambda: run(scipy.ndimage, x)], budget)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    budget = 0.2 if parser.parse_args().quick else 1.5
    config.threads = 1
    print("Times in ms for 1000 x 1000 elements, and how many times as long SciPy takes.\n")
    print("| | f64 | SciPy | f32 | SciPy |\n|---|---|---|---|---|")
    ratios = []
    for name, run in CASES.items():
        cells = []
        for dtype in (np.float64, np.float32):
            ours, other = measured(run, np.random.default_rng(0).standard_normal((1000, 1000)).astype(dtype), budget)
            ratios.append(other / ours)
            cells += [f"{ours:.3g}", f"{other / ours:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\nGeometric mean {np.exp(np.mean(np.log(ratios))):.2f}, lowest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
