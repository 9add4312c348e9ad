"""Factorizations of matrices beside NumPy's: `python -m benchmarks.linear_algebra [--quick] [--stacks] [--f32]`."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml

REPEATS = 9
SIZES = (20, 32, 50, 100, 200, 500, 1000)
BATCHES = ((10000, 3), (10000, 4), (5000, 8), (2000, 16))
FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "cholesky": (np.linalg.cholesky, "definite"),
    "inv": (np.linalg.inv, "general"),
    "solve": (lambda a: np.linalg.solve(a, a[..., :1]), "general"),
    "det": (np.linalg.det, "general"),
    "qr": (np.linalg.qr, "general"),
    "svd": (np.linalg.svd, "general"),
    "eigh": (np.linalg.eigh, "definite"),
    "eig": (np.linalg.eig, "general"),
}


def milliseconds(
    functions: list[Callable[[], Any]], budget: float, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The median time of a call of each function; calls of all of them take turns."""
    for function in functions:
        function()
    start = clock()
    for function in functions:
        function()
    count = max(1, int(budget / REPEATS / (clock() - start)))
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(REPEATS):
        for function, found in zip(functions, times):
            start = clock()
            for _ in range(count):
                function()
            found.append((clock() - start) / count * 1e3)
    return [statistics.median(found) for found in times]


def row(
    name: str, shape: tuple[int, ...], dtype: str, budget: float, clock: Callable[[], float]
) -> tuple[float, float]:
    """The times of NumPy and of the compiled function."""
    function, form = FUNCTIONS[name]
    a = np.random.default_rng(0).standard_normal(shape)
    if form == "definite":
        a = a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])
    a = a.astype(dtype)
    compiled = ml.compile(function)
    numpy, ours = milliseconds([lambda: function(a), lambda: compiled(a)], budget, clock)
    return numpy, ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--stacks", action="store_true", help="stacks of small matrices alone")
    parser.add_argument("--cpu", action="store_true", help="time of the process, for one thread on a busy machine")
    parser.add_argument("--f32", action="store_true", help="in f32")
    parser.add_argument("names", nargs="*", help="functions; all by default")
    arguments = parser.parse_args()
    budget = 0.1 if arguments.quick else 1.0
    clock = time.process_time if arguments.cpu else time.perf_counter
    dtype = "float32" if arguments.f32 else "float64"
    print(f"{dtype}; NumPy ms / mlirml ms = ratio; above 1 mlirml is faster\n")
    single = [] if arguments.stacks else [(n, n) for n in SIZES]
    shapes = [*single, *((count, n, n) for count, n in BATCHES)]
    print("| |" + "|".join(f" {'x'.join(map(str, shape))} " for shape in shapes) + "|")
    print("|---|" + "---|" * len(shapes))
    for name in arguments.names or FUNCTIONS:
        cells = []
        for shape in shapes:
            numpy, ours = row(name, shape, dtype, budget, clock)
            cells.append(f" {numpy:.3g} / {ours:.3g} = {numpy / ours:.2f} ")
        print(f"| {name} |" + "|".join(cells) + "|", flush=True)


if __name__ == "__main__":
    main()
