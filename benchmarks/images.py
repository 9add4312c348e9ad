"""Filters of images beside SciPy's: `python -m benchmarks.images [--quick]`."""

from __future__ import annotations

import argparse
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks.linear_algebra import milliseconds
from mlirml import ndimage

WEIGHTS = np.random.default_rng(1).random((9, 9))
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "gaussian_filter, sigma 1": lambda images, x: images.gaussian_filter(x, 1.0),
    "gaussian_filter, sigma 5": lambda images, x: images.gaussian_filter(x, 5.0),
    "sobel": lambda images, x: images.sobel(x),
    "laplace": lambda images, x: images.laplace(x),
    "convolve 5x5": lambda images, x: images.convolve(x, WEIGHTS[:5, :5]),
    "convolve 9x9": lambda images, x: images.convolve(x, WEIGHTS),
    "uniform_filter 3": lambda images, x: images.uniform_filter(x, 3),
    "uniform_filter 15": lambda images, x: images.uniform_filter(x, 15),
    "maximum_filter 3": lambda images, x: images.maximum_filter(x, 3),
    "maximum_filter 15": lambda images, x: images.maximum_filter(x, 15),
    "median_filter 3": lambda images, x: images.median_filter(x, 3),
    "median_filter 5": lambda images, x: images.median_filter(x, 5),
    "median_filter 7": lambda images, x: images.median_filter(x, 7),
    "grey_opening 5": lambda images, x: images.grey_opening(x, 5),
    "binary_erosion": lambda images, x: images.binary_erosion(x > 0.1),
    "binary_dilation, 10 times": lambda images, x: images.binary_dilation(x > 0.99, iterations=10),
    "spline_filter": lambda images, x: images.spline_filter(x, output=x.dtype),
    "zoom 2, order 1": lambda images, x: images.zoom(x, 2, order=1),
    "zoom 2, order 3": lambda images, x: images.zoom(x, 2, order=3),
    "shift, order 3": lambda images, x: images.shift(x, 1.5),
    "rotate, order 1": lambda images, x: images.rotate(x, 30, order=1, reshape=False),
    "rotate, order 3": lambda images, x: images.rotate(x, 30, order=3, reshape=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    scipy_ndimage = importlib.import_module("scipy.ndimage")
    budget = 0.2 if parser.parse_args().quick else 1.5
    print("Times in ms, of images of 512x512; ratios above 1: mlirml is faster.\n")
    print("| | f64: mlirml | SciPy | ratio | f32: mlirml | SciPy | ratio |\n|---|" + "---|" * 6)
    ratios = []
    for label, case in CASES.items():
        cells = []
        for dtype in (np.float64, np.float32):
            x: Any = np.random.default_rng(0).random((512, 512)).astype(dtype)
            compiled = ml.compile(functools.partial(case, ndimage))
            functions: list[Callable[[], Any]] = [
                functools.partial(compiled, x),
                functools.partial(case, scipy_ndimage, x),
            ]
            ours, others = milliseconds(functions, budget)
            ratios.append(others / ours)
            cells += [f"{ours:.3g}", f"{others:.3g}", f"{others / ours:.1f}"]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)
    print(f"\ngeometric mean {np.exp(np.mean(np.log(ratios))):.1f}, {sum(r < 0.95 for r in ratios)} below 0.95")


if __name__ == "__main__":
    main()
