"""Heat flowing through a plate: NumPy slices that are stored into in place, compiled.

python examples/stencil.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import mlirml as ml

SIZE = 512
STEPS = 400


def step(plate: np.ndarray, rate: float) -> None:
    """Move heat between neighbours for one step of time, in place; the edges keep their temperature."""
    above, below, left, right = plate[:-2, 1:-1], plate[2:, 1:-1], plate[1:-1, :-2], plate[1:-1, 2:]
    plate[1:-1, 1:-1] += rate * (above + below + left + right - 4 * plate[1:-1, 1:-1])


def hot_plate(size: int) -> np.ndarray:
    """A cold plate with a hot upper edge and a hot spot."""
    plate = np.zeros((size, size), np.float32)
    plate[0] = 1
    plate[size // 2 : size // 2 + size // 8, size // 4 : size // 2] = 1
    return plate


def run(advance: Callable[[np.ndarray, float], None], size: int, steps: int) -> tuple[np.ndarray, float]:
    """The plate after some steps, and the median microseconds of a step."""
    plate = hot_plate(size)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        advance(plate, 0.2)
        times.append(1e6 * (time.perf_counter() - start))
    return plate, statistics.median(times)


def picture(plate: np.ndarray, rows: int = 12, columns: int = 48) -> str:
    """The temperatures as characters, from cold to hot."""
    shades = " .:-=+*#%@"
    down, across = (np.linspace(0, len(plate) - 1, count).astype(int) for count in (rows, columns))
    return "\n".join("".join(shades[min(int(10 * t), 9)] for t in row) for row in plate[np.ix_(down, across)])


def main() -> None:
    """Run it in NumPy and compiled, and compare."""
    expected, numpy_us = run(step, SIZE, STEPS)
    compiled = ml.compile(step)
    compiled(hot_plate(SIZE), 0.2)
    plate, mlirml_us = run(compiled, SIZE, STEPS)
    print(picture(plate))
    error = float(np.max(np.abs(plate - expected)))
    assert error < 1e-5, f"mlirml and NumPy differ by {error}"
    print(f"{STEPS} steps on {SIZE} x {SIZE} points: the largest difference from NumPy is {error:.1e}")
    print(f"one step: NumPy {numpy_us:.0f} us, mlirml {mlirml_us:.0f} us ({numpy_us / mlirml_us:.1f} times as fast)")


if __name__ == "__main__":
    main()
