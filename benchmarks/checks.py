"""What checked indices cost: `python -m benchmarks.checks` times loops with and without, and Numba if installed."""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from operator import truediv
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import mlirml as ml
from benchmarks import tables

Array = np.ndarray
Arguments = Callable[[int, np.dtype], list[Any]]


def histogram(found: Array, keys: Array) -> None:
    """How often each key is there."""
    for i in range(keys.shape[0]):
        found[keys[i]] += 1


def csr_product(data: Array, column: Array, start: Array, x: Array, y: Array) -> None:
    """A sparse matrix by rows times a vector."""
    for i in range(y.shape[0]):
        total = y[i] * 0
        for k in range(start[i], start[i + 1]):
            total += data[k] * x[column[k]]
        y[i] = total


def gather(x: Array, index: Array, out: Array) -> None:
    """Elements at positions of an array."""
    for i in range(index.shape[0]):
        out[i] = x[index[i]]


def sorting_network(x: Array, pairs: Array) -> None:
    """Each row sorted by comparisons of pairs of its elements, which an array names."""
    for i in range(x.shape[0]):
        for k in range(pairs.shape[0]):
            low, high = pairs[k, 0], pairs[k, 1]
            a, b = x[i, low], x[i, high]
            x[i, low] = min(a, b)
            x[i, high] = max(a, b)


def bilinear_sampling(image: Array, rows: Array, columns: Array, out: Array) -> None:
    """An image at positions between its pixels."""
    for i in range(rows.shape[0]):
        r, c = math.floor(rows[i]), math.floor(columns[i])
        v, u = rows[i] - r, columns[i] - c
        top = image[r, c] * (1 - u) + image[r, c + 1] * u
        bottom = image[r + 1, c] * (1 - u) + image[r + 1, c + 1] * u
        out[i] = top * (1 - v) + bottom * v


def histogram_arguments(count: int, dtype: np.dtype) -> list[Any]:
    """Counts of 4096 keys."""
    return [np.zeros(4096, dtype), _random().integers(0, 4096, count)]


def csr_arguments(count: int, dtype: np.dtype) -> list[Any]:
    """About 16 elements in each row."""
    rng, rows = _random(), max(count // 16, 1)
    start = np.concatenate([[0], np.sort(rng.integers(0, count, rows - 1)), [count]])
    x = rng.random(rows).astype(dtype)
    return [rng.random(count).astype(dtype), rng.integers(0, rows, count), start, x, np.zeros(rows, dtype)]


def gather_arguments(count: int, dtype: np.dtype) -> list[Any]:
    """From an array as long as the result."""
    rng = _random()
    return [rng.random(count).astype(dtype), rng.integers(0, count, count), np.zeros(count, dtype)]


def sorting_arguments(count: int, dtype: np.dtype) -> list[Any]:
    """Rows of 16, and Batcher's network for them."""
    pairs = [
        (i + j, i + j + k)
        for p in (1, 2, 4, 8)
        for k in (p >> s for s in range(p.bit_length()))
        for j in range(k % p, 16 - k, 2 * k)
        for i in range(min(k, 16 - j - k))
        if (i + j) // (2 * p) == (i + j + k) // (2 * p)
    ]
    return [_random().random((max(count // 16, 1), 16)).astype(dtype), np.array(pairs)]


def sampling_arguments(count: int, dtype: np.dtype) -> list[Any]:
    """Positions in an image of 512 x 512."""
    rng = _random()
    image = rng.random((512, 512)).astype(dtype)
    places = [(rng.random(count) * 510).astype(dtype) for _ in range(2)]
    return [image, *places, np.zeros(count, dtype)]


WORKLOADS: dict[Callable[..., None], Arguments] = {
    histogram: histogram_arguments,
    csr_product: csr_arguments,
    gather: gather_arguments,
    sorting_network: sorting_arguments,
    bilinear_sampling: sampling_arguments,
}
BAR = {bilinear_sampling: 1.4}
"""The greatest ratio of the times with and without checks; 1.15 for all others."""


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def compiled(function: Callable[..., None], arguments: Sequence[Any], checks: bool) -> Callable[..., Any]:
    """The function for the shapes of these arguments."""
    with ml.config.override(checks=checks):
        program = ml.compile(function, frontend="loops")
        program(*(x.copy() for x in arguments))
    return program


def seconds_each(programs: dict[str, Callable[..., Any]], arguments: Sequence[Any], repeats: int) -> dict[str, float]:
    """The median time of a call of each program, timed in turns; as "ratio" the median of what checks cost in a turn.

    Other work on the machine slows both calls of a turn: the ratio of two medians would move more.
    """
    kept = {name: [x.copy() for x in arguments] for name in programs}
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            begin = time.perf_counter()
            program(*kept[name])
            found[name].append(time.perf_counter() - begin)
    seconds = {name: statistics.median(times) for name, times in found.items()}
    seconds["ratio"] = statistics.median(map(truediv, found["checked"], found["unchecked"]))
    return seconds


def measure(count: int, dtype: np.dtype, repeats: int) -> dict[str, dict[str, float]]:
    """The seconds of a call of each workload, by what runs it, and the ratio."""
    table = {}
    for function, make in WORKLOADS.items():
        arguments = make(count, dtype)
        programs = {
            "checked": compiled(function, arguments, True),
            "unchecked": compiled(function, arguments, False),
        }
        if importlib.util.find_spec("numba") is not None:
            import numba

            programs["numba"] = numba.njit(function, fastmath=True)
            programs["numba"](*(x.copy() for x in arguments))
        table[function.__name__] = seconds_each(programs, arguments, repeats)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where checks cost more than they may."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checks", description=__doc__)
    parser.add_argument("--count", type=int, action="append", help="elements (default: 10^6 and 10^7)")
    parser.add_argument("--repeats", type=int, default=15, help="calls of each program, whose median counts")
    parser.add_argument("--threads", type=int, default=1, help="threads (default: 1)")
    options = parser.parse_args(arguments)
    out, over = Console(width=None if sys.stdout.isatty() else 120, highlight=False), False
    out.print(tables.machine())
    table = Table("workload", "dtype", "elements", "checked", "unchecked", "numba", "ratio", "bar")
    with ml.config.override(threads=options.threads):
        for count in options.count or [10**6, 10**7]:
            for dtype in map(np.dtype, ("float32", "float64")):
                for function, times in zip(WORKLOADS, measure(count, dtype, options.repeats).values()):
                    bar = BAR.get(function, 1.15)
                    over |= times["ratio"] > bar
                    shown = [f"{times[name] * 1e3:.3g} ms" if name in times else "" for name in _COLUMNS]
                    name = function.__name__.replace("_", " ")
                    table.add_row(name, str(dtype), f"{count:.0e}", *shown, f"{times['ratio']:.2f}", f"{bar}")
    out.print(table)
    return int(over)


_COLUMNS = ("checked", "unchecked", "numba")


if __name__ == "__main__":
    sys.exit(main())
