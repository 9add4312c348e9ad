"""How compile time grows with the program: graphs of 1,000, 2,000 and 5,000 operations, unrolled stores too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from benchmarks.startup import Times, run_fresh

SIZES, QUICK = (1000, 2000, 5000), (20, 40)
"""Operations of a graph."""
SIDES, QUICK_SIDES = (8, 16, 24), (3, 4)
"""Sides of the matrix that an unrolled Cholesky factorization takes: about side cubed / 6 updates."""

_PROGRAM = """
import json, sys, time
import numpy as np
import mlirml as ml

def elementwise(count):
    def graph(x, y):
        for _ in range(count // 2):
            x = x * y + 0.5
        return x
    return graph

def mixed(count):  # with reductions of both axes, so that it does not become one loop
    def graph(x, y):
        for _ in range(count // 12):
            x = np.tanh(x) * y + np.sum(x, axis=1, keepdims=True)
            x = x - np.max(x, axis=0)
            x = np.where(x > 0, x, y)
            x = x[::-1] / (1 + np.abs(x))
        return x
    return graph

def stores(side):
    def cholesky(a, b):
        factor = np.zeros_like(a)
        for i in range(side):
            for j in range(i + 1):
                rest = a[i, j]
                for k in range(j):
                    rest = rest - factor[i, k] * factor[j, k]
                factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
        return factor
    return cholesky

ml.compile(lambda x: x + 1)(np.ones(3))
kind, size = sys.argv[1], int(sys.argv[2])
x = np.eye(size if kind == "stores" else 64, dtype=np.float32) + 0.25
start = time.perf_counter()
ml.compile(globals()[kind](size))(x, x)
print(json.dumps(time.perf_counter() - start))
"""


def compile_scaling(quick: bool, progress: Callable[[str], None] = lambda text: None) -> list[Times]:
    """Seconds of the first call, one sample in a fresh process each; with the milliseconds an operation in the name."""
    result = []
    for kind in ("elementwise", "mixed", "stores"):
        sizes = (QUICK_SIDES if quick else SIDES) if kind == "stores" else (QUICK if quick else SIZES)
        for size in sizes:
            progress(f"compiling {size} {kind}")
            seconds = float(json.loads(run_fresh(sys.executable, "-c", _PROGRAM, kind, str(size), MLIRML_CACHE="0")))
            count = size**3 // 3 if kind == "stores" else size
            name = f"Cholesky {size}x{size} unrolled" if kind == "stores" else f"{size} {kind} operations"
            result.append(Times(f"compile {name}, {1e3 * seconds / count:.2g} ms an operation", (seconds,)))
    return result
