"""Results whose lengths depend on data, next to NumPy's: `python -m benchmarks.data_sizes`.

For each function and share of true elements the milliseconds of a call on 1,000,000 elements, the best of many calls,
in turns with NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import mlirml as ml

SIZE = 1_000_000
SHARES = (0.0, 0.01, 0.5, 1.0)
CALLS = 30

Array = Any


def flatnonzero(x: Array, m: Array, n: Array) -> Any:
    return np.flatnonzero(m)


def elements(x: Array, m: Array, n: Array) -> Any:
    return x[m]


def positive(x: Array, m: Array, n: Array) -> Any:
    return x[x > 0]


def roots(x: Array, m: Array, n: Array) -> Any:
    return np.sqrt(x[x > 0]) + 1


def nonzero_of_matrix(x: Array, m: Array, n: Array) -> Any:
    return np.nonzero(x.reshape(1000, 1000) > 0)


def gathered(x: Array, m: Array, n: Array) -> Any:
    return x[np.flatnonzero(m)]


def in_order(x: Array, m: Array, n: Array) -> Any:
    return np.sort(x[m])


def unique(x: Array, m: Array, n: Array) -> Any:
    return np.unique(n)


def counted(x: Array, m: Array, n: Array) -> Any:
    return np.unique(n, return_counts=True)


def sets(x: Array, m: Array, n: Array) -> Any:
    return np.setdiff1d(n, n[:1000])


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    flatnonzero, elements, positive, roots, nonzero_of_matrix, gathered, in_order, unique, counted, sets,
)  # fmt: skip


def milliseconds(function: Callable[[], Any]) -> float:
    """The time of one call."""
    begun = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - begun)


def main() -> None:
    """Print a line for each function and share."""
    rng = np.random.default_rng(0)
    print(f"{'':20} {'share':>6} {'numpy':>9} {'mlirml':>9} {'ratio':>6}")
    for function in FUNCTIONS:
        compiled = ml.compile(function)
        for share in SHARES:
            mask = rng.random(SIZE) < share
            x = np.where(mask, 1.0, -1.0) * rng.random(SIZE)
            numbers = rng.integers(0, max(1, int(share * SIZE)), SIZE)
            compiled(x, mask, numbers)
            best = [np.inf, np.inf]
            for _ in range(CALLS):
                for number, each in enumerate((function, compiled)):
                    best[number] = min(best[number], milliseconds(partial(each, x, mask, numbers)))
            print(f"{function.__name__:20} {share:6} {best[0]:9.3f} {best[1]:9.3f} {best[0] / best[1]:6.2f}")


if __name__ == "__main__":
    main()
