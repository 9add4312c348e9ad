"""The time of a call of a small compiled function by the form of its arguments: `python -m benchmarks.calls`.

Each function does next to nothing, so that the time is that of the call: the arguments are taken apart, compared with
those of the programs, and new items and attributes are stored. Beside it is the same function in plain Python. Times
are medians of seven repeats, in microseconds.
"""

from __future__ import annotations

import dataclasses
import statistics
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import mlirml as ml
from benchmarks import tables

X = np.ones(4)


@dataclasses.dataclass
class Body:
    x: float
    v: float


class Mass(NamedTuple):
    x: float
    m: float


class Counter:
    def __init__(self) -> None:
        self.mean, self.count = np.zeros(4), 0

    def add(self, x: Any) -> Any:
        self.count += 1
        self.mean = self.mean + (x - self.mean) / self.count
        return self.mean[0]


def twice(x: Any) -> Any:
    return x * 2


def into(x: Any, out: Any) -> None:
    out[0] = x[1]


def into_dict(d: Any, k: Any) -> None:
    d["x"] = d["x"] * 0.5 + k


def of_tuples(masses: Any) -> Any:
    return sum([mass.x * mass.m for mass in masses])


def move(body: Any, dt: Any) -> None:
    body.x = body.x * 0.5 + body.v * dt


def total(items: Any) -> Any:
    result = 0.0
    for item in items:
        result += item
    return result


def forms(compiled: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    """A call for each form, of functions that `compiled` is given first."""
    double, store, dict_, tuples, moved, summed = map(compiled, (twice, into, into_dict, of_tuples, move, total))
    shifted, add = compiled(move), compiled(Counter().add)
    bodies, counters = [Body(float(i), 1.0) for i in range(100)], [Counter() for _ in range(100)]
    adds = compiled(Counter.add)
    d, items, numbers = {"x": 1.0}, [1.0, 2.0, 3.0], [float(i) for i in range(1000)]
    masses, body, out = [Mass(1.0, 2.0), Mass(3.0, 4.0)], Body(1.0, 2.0), np.ones(4)
    return {
        "an array": lambda: double(X),
        "a number": lambda: double(2.5),
        "a store into an array": lambda: store(X, out),
        "a store into a list": lambda: store(X, items),
        "a store into a dict": lambda: dict_(d, 0.5),
        "a store into a dataclass": lambda: moved(body, 0.5),
        "100 dataclasses in turn": lambda: [shifted(one, 0.5) for one in bodies],
        "two named tuples": lambda: tuples(masses),
        "a list of 1,000 numbers": lambda: summed(numbers),
        "a method that changes attributes": lambda: add(X),
        "100 objects in turn, changed": lambda: [adds(one, X) for one in counters],
    }


def microseconds(call: Callable[[], Any]) -> float:
    """The median time of a call."""
    for _ in range(3):
        call()
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    return statistics.median(timer.repeat(7, max(count // 4, 1))) / max(count // 4, 1) * 1e6


def main() -> None:
    console = Console(highlight=False)
    console.print(tables.machine())
    plain = forms(lambda function: function)
    print("\n| form of the call | mlirml, us | Python, us |\n|---|---|---|")
    for name, call in forms(ml.compile).items():
        print(f"| {name} | {microseconds(call):.2f} | {microseconds(plain[name]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
