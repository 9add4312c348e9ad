"""Operations on arrays outside of compiled functions: `python -m benchmarks.arrays`.

The time of one small operation beside NumPy, torch and jax, of ten elementwise operations on 16 million elements beside
the compiled function, and of 100,000 operations with the memory that each takes until it is run.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import mlirml as ml

CALLS = 20_000
ELEMENTS = 1 << 24
OPERATIONS = 100_000


def seconds(run: Callable[[], Any], repeats: int = 15, best: bool = False) -> float:
    """The median time of a call, after two that are not counted; with `best` the least one."""
    times = []
    for number in range(repeats + 2):
        begun = time.perf_counter()
        run()
        if number > 1:
            times.append(time.perf_counter() - begun)
    return min(times) if best else median(times)


def small_operation(a: Any, b: Any) -> float:
    """Microseconds of `a + b`, until it returns."""

    def run() -> None:
        for _ in range(CALLS):
            a + b

    return 1e6 * seconds(run, 7, best=True) / CALLS


def dispatch() -> None:
    """The table of the times of one small operation."""
    x = np.ones(4, np.float32)
    arrays: dict[str, Any] = {"mlirml": ml.array(x), "numpy": x}
    try:
        import torch

        arrays["torch"] = torch.ones(4)
    except ImportError:
        pass
    try:
        import jax.numpy

        arrays["jax"] = jax.numpy.ones(4, dtype="float32")
    except ImportError:
        pass
    for name, array in arrays.items():
        print(f"a + b of 4 elements, {name:8} {small_operation(array, array):8.2f} us")


def ten_operations(x: Any) -> Any:
    """Ten elementwise operations."""
    for _ in range(5):
        x = x * 1.01
        x = x + 0.5
    return x


def chain() -> None:
    """The chain beside the compiled function, in turns."""
    host = np.random.default_rng(0).random(ELEMENTS, np.float32)
    array, compiled = ml.array(host), ml.compile(ten_operations)
    pairs = []
    for number in range(42):
        times = [time.perf_counter()]
        ten_operations(array).block()
        times.append(time.perf_counter())
        compiled(host)
        times.append(time.perf_counter())
        pairs += [(times[1] - times[0], times[2] - times[1])] if number > 1 else []
    here, there = (median(column) for column in zip(*pairs))
    numpy = seconds(lambda: ten_operations(host), 3)
    print(f"ten operations on {ELEMENTS} f32: {1e3 * here:.2f} ms, compiled {1e3 * there:.2f} ms, ", end="")
    print(f"ratio {here / there:.2f}, numpy {1e3 * numpy:.1f} ms")


def many() -> None:
    """The operations that are gathered before any is run."""
    start = ml.array(np.ones(4))

    def gathered() -> Any:
        x = start
        for _ in range(OPERATIONS // 2):
            x = x * 0.5
            x = x + 1.0
        return x

    gathering = seconds(gathered, 5, best=True)
    gc.collect()
    tracemalloc.start()
    x = gathered()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    begun = time.perf_counter()
    x.block()
    first = time.perf_counter() - begun
    x = gathered()
    begun = time.perf_counter()
    x.block()
    second = time.perf_counter() - begun
    print(f"{OPERATIONS} operations: gathered in {gathering:.3f} s, {used / OPERATIONS:.0f} bytes each")
    print(f"run in {first:.2f} s with compilation, {second:.2f} s after it")


if __name__ == "__main__":
    dispatch()
    chain()
    many()
