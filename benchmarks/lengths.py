"""Compile time against length: `python -m benchmarks.lengths` times first calls for trip counts and sizes."""

from __future__ import annotations

import argparse
import linecache
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import mlirml as ml
from benchmarks import tables

X = np.random.default_rng(0).random(60)
A, Y = np.random.default_rng(1).random((50, 4)), np.random.default_rng(2).random(50)
W = [np.random.default_rng(3 + k).random((8, 8)) * 0.1 for k in range(8)]
TRIPS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
"""Up to 64 iterations may be unrolled."""
BAR, LSTM_BAR = 1.2, 4.0
"""The greatest ratio of compile times of loops of 100 and more iterations; seconds for 50 lengths of an LSTM."""


def decay(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(1, n):
        s = 0.9 * s + 0.1 * x[i % len(x)]
    return s


def sines(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(n):
        s = np.sin(s) + x[i % len(x)]
    return s


def exchange(x: Any, n: int) -> Any:
    a, b = x[0], x[1]
    for i in range(n):
        a, b = b, (a + b * x[i % len(x)]) % 7.0
    return a


def descent(x: Any, n: int) -> Any:
    w = x[:4]
    for _ in range(n):
        w = w - 0.01 * (A.T @ (A @ w - Y)) / len(Y)
    return w


def fir(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total += np.dot(x[:8], x[i % 50 : i % 50 + 8])
    return total


def rnn(x: Any, n: int) -> Any:
    h = x[:8]
    for i in range(n):
        h = np.tanh(h @ W[0] + x[i % 50])
    return h


def lstm(x: Any, n: int) -> Any:
    h, c = x[:8], x[8:16]
    for t in range(n):
        u = x[t % 50]
        i, f, o = (1 / (1 + np.exp(-(h @ w + u))) for w in W[:3])
        c = f * c + i * np.tanh(h @ W[3] + u)
        h = o * np.tanh(c)
    return h


def bodies(x: Any, n: int) -> Any:
    p = x[:30].reshape(10, 3)
    v = p * 0
    for _ in range(n):
        d = p[None] - p[:, None]
        v = v + 0.001 * (d / ((d**2).sum(-1) + 0.1)[..., None] ** 1.5).sum(1)
        p = p + 0.001 * v
    return p


def wave(x: Any, n: int) -> Any:
    u, v = x, x * 0.5
    for _ in range(n):
        u, v = 2 * u - v + 0.1 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u), u
    return u


def means(x: Any, n: int) -> Any:
    points = x.reshape(30, 2)
    c = points[:3]
    for _ in range(n):
        nearest = np.argmin(((points[:, None] - c[None]) ** 2).sum(-1), 1)
        m = (nearest[:, None] == np.arange(3)).astype(float)
        c = (m.T @ points) / (m.sum(0)[:, None] + 1e-9)
    return c


LOOPS: tuple[Callable[[Any, int], Any], ...] = (
    decay, sines, exchange, descent, fir, rnn, lstm, bodies, wave, means,
)  # fmt: skip


def function_of(lines: Sequence[str]) -> Callable[..., Any]:
    """The function `f` of a source, which can be read back."""
    source = "\n".join([*lines, ""])
    file = f"<lengths {abs(hash(source))}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    names: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), names)
    found: Callable[..., Any] = names["f"]
    return found


def stores(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Stores of elements."""
    body = [f"    x[{i}] = x[{(i * 7 + 1) % n}] * {i}.5 + k" for i in range(n)]
    return function_of(["def f(x, k):", *body, "    return x"]), [np.ones(n), 2.0]


def stores_in_a_loop(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Stores of elements in the body of a loop."""
    body = [f"        x[i, {j}] = x[i, {(j * 7 + 1) % n}] * {j}.5 + k" for j in range(n)]
    return function_of(["def f(x, k):", "    for i in range(100):", *body, "    return x"]), [np.ones((100, n)), 2.0]


def stores_at_indices(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Stores of elements at indices that data decide."""
    body = [f"    x[k[{j}]] = x[k[{(j * 7 + 1) % n}]] * {j}.5" for j in range(n)]
    return function_of(["def f(x, k):", *body, "    return x"]), [np.ones(n), np.random.default_rng(0).permutation(n)]


def loops_in_a_loop(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Loops in the body of a loop."""
    body = [
        line
        for k in range(n)
        for line in (f"        for j in range(k[{k}]):", f"            x[j * {k} % 7] += x[(j + {k}) % 5] * 0.5")
    ]
    given = [np.ones(9), np.random.default_rng(0).integers(0, 9, n)]
    return function_of(["def f(x, k):", "    for i in range(100):", *body, "    return x"]), given


def arguments(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Arguments."""
    names = [f"a{j}" for j in range(n)]
    return function_of([f"def f({', '.join(names)}):", f"    return {' + '.join(names)}"]), [np.ones(3)] * n


def stacked(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Rows that are stacked."""
    rows = ", ".join(f"x[{j}] * {j}" for j in range(n))
    return function_of(["def f(x):", f"    return np.stack([{rows}])"]), [np.ones((n, 3))]


def statements(n: int) -> tuple[Callable[..., Any], list[Any]]:
    """Statements."""
    body = [f"    x = np.sin(x) * {j}.0 + y" for j in range(n)]
    return function_of(["def f(x, y):", *body, "    return x"]), [np.ones(5), np.ones(5)]


LONG = {
    stores: (500, 1000, 2000), stores_in_a_loop: (200, 400, 1000), stores_at_indices: (200, 400, 1000),
    loops_in_a_loop: (10, 30, 100), arguments: (500, 1000, 2000), stacked: (500, 1000, 2000),
    statements: (750, 1500, 3000),
}  # fmt: skip


def first_call(function: Callable[..., Any], given: Sequence[Any]) -> float:
    """The seconds of processor time that a first call takes, which other processes lengthen little."""
    with ml.config.override(cache=False):
        program = ml.compile(function)
        begin = time.process_time()
        program.executable(*given)
        return time.process_time() - begin


def first_calls(loop: Callable[..., Any], repeats: int) -> list[float]:
    """The median seconds of a first call for each of `TRIPS`, which take turns."""
    turns = [[first_call(loop, [X, n]) for n in TRIPS] for _ in range(repeats)]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def main(options: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lengths", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args(options).repeats
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(tables.machine())
    first_call(decay, [X, 5])  # imports the compiler
    table = Table(box=box.SIMPLE_HEAD, title="seconds of processor time to compile a loop of so many iterations")
    for column in ("loop", *(f"{n:,}" for n in TRIPS), "longest / shortest from 100 on"):
        table.add_column(column, justify="right")
    for loop in LOOPS:
        times = first_calls(loop, repeats)
        ratio = max(times[1:]) / min(times[1:])
        shown = f"[{'green' if ratio <= BAR else 'yellow'}]{ratio:.2f}[/]"
        table.add_row(loop.__name__, *(f"{t:.3f}" for t in times), shown)
    console.print(table)
    total = sum(first_call(lstm, [X, n]) for n in range(101, 151))
    console.print(f"50 lengths of an LSTM: {total:.1f} s (bar {LSTM_BAR} s)")
    table = Table(box=box.SIMPLE_HEAD, title="seconds of processor time to compile so many of one kind")
    for column in ("kind", "small", "", "medium", "", "large", ""):
        table.add_column(column, justify="right")
    for make, sizes in LONG.items():
        cells = [cell for n in sizes for cell in (f"{n:,}", f"{first_call(*make(n)):.2f}")]
        table.add_row((make.__doc__ or "").rstrip("."), *cells)
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
