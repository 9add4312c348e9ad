"""The functions of `random` for sequences in Python, which are captured as those of the user's are.

Each takes a function first, which draws a number below another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_Below = Callable[[Any], Any]


def choice(below: _Below, seq: Any) -> Any:
    if len(seq) == 0:
        raise IndexError("Cannot choose from an empty sequence")
    return seq[below(len(seq))]


def shuffle(below: _Below, x: Any) -> None:
    for i in range(len(x) - 1, 0, -1):
        j = below(i + 1)
        x[i], x[j] = x[j], x[i]


def sample(below: _Below, population: Any, k: Any) -> Any:
    n = len(population)
    if k < 0 or k > n:
        raise ValueError("Sample larger than population or is negative")
    pool, found = list(population), []
    for i in range(k):
        j = below(n - i)
        found.append(pool[j])
        pool[j] = pool[n - i - 1]
    return found


def choices(below: _Below, population: Any, k: Any) -> Any:
    return [population[below(len(population))] for _ in range(k)]
