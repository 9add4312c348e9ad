"""Timing of kernels, without mlirml: the process of the peer imports it too."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.polybench.kernels import KERNELS, Kernel


def timed(function: Any, kernel: Kernel, seconds: float = 0.3, most: int = 15) -> list[float]:
    """Seconds a call at the medium size, each on fresh copies of the arguments."""
    arguments = kernel.arguments(kernel.medium)
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while not samples or (time.perf_counter() < end and len(samples) < most):
        fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        start = time.perf_counter()
        function(*fresh)
        samples.append(time.perf_counter() - start)
    return samples


class Numba:
    """A process that times kernels compiled by Numba: `njit(fastmath=True)` of the same source."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.polybench.timing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def __enter__(self) -> Numba:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.stdin.close()
        self._process.wait()

    def timed(self, kernel: Kernel) -> list[float] | None:
        """Seconds a call; None where Numba does not compile the kernel."""
        self._process.stdin.write(kernel.name + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def in_turns(function: Any, kernel: Kernel, peer: Numba, rounds: int = 3) -> tuple[float, float | None]:
    """The median seconds of a function and of the peer, timed in turns."""
    ours: list[float] = []
    theirs: list[float] | None = []
    timed(function, kernel, 0.0)
    for _ in range(rounds):
        ours += timed(function, kernel)
        more = peer.timed(kernel)
        theirs = None if more is None or theirs is None else theirs + more
    return statistics.median(ours), None if theirs is None else statistics.median(theirs)


def serve() -> None:
    """Time each kernel that is named on standard input."""
    import numba

    compiled: dict[str, Any] = {}
    for line in sys.stdin:
        kernel = KERNELS[line.strip()]
        try:
            if kernel.name not in compiled:
                compiled[kernel.name] = numba.njit(kernel.function, fastmath=True)
                timed(compiled[kernel.name], kernel, 0.0)
            answer: Any = timed(compiled[kernel.name], kernel)
        except numba.core.errors.NumbaError:
            answer = None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    import benchmarks.polybench  # noqa: F401  (fills KERNELS)

    serve()
