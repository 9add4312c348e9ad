"""Kernels of an ocean model: `python -m benchmarks.pyhpc CHECKOUT` runs github.com/dionhaefner/pyhpc-benchmarks.

The versions for NumPy run unedited, compiled by mlirml and in NumPy; those for jax and Numba are peers. Each runs in a
process of its own, with one thread.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import tables

KERNELS = {"equation_of_state": "eos", "isoneutral_mixing": "isoneutral", "turbulent_kinetic_energy": "tke"}
"""The folder of each kernel, and how the names of its modules begin."""
PEERS = ("numpy", "jax", "numba")
SIZES = (4096, 65536, 1048576)
"""About the number of cells."""
AT_LEAST, AT_MOST = 0.5, 200
"""Seconds, and calls, that are measured."""
TIMEOUT = 600.0
_ALONE = {
    "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MLIRML_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu",
}  # fmt: skip


def leaves(found: Any) -> list[np.ndarray]:
    """The arrays of a result, copied: the kernels store into their arguments."""
    items = found if isinstance(found, (tuple, list)) else [found]
    return [np.array(x) for x in items]


def prepared(kernel: str, who: str, size: int) -> tuple[Callable[..., Any], list[Any]]:
    """The function of a kernel, and arguments of its own."""
    package = importlib.import_module(f"benchmarks.{kernel}")
    backend = "numpy" if who == "mlirml" else who
    module = importlib.import_module(f"benchmarks.{kernel}.{KERNELS[kernel]}_{backend}")
    arguments = list(package.generate_inputs(size))
    if hasattr(module, "prepare_inputs"):
        arguments = list(module.prepare_inputs(*arguments, device="cpu"))
    if who == "mlirml":
        import mlirml as ml

        return ml.compile(module.run), arguments
    if who == "jax":
        import jax

        return lambda *xs: jax.block_until_ready(module.run(*xs)), arguments
    return module.run, arguments


def measure(checkout: str, kernel: str, who: str, size: int) -> None:
    """Print the median time of a call and the largest error against NumPy, relative to the largest number."""
    sys.path.insert(0, checkout)
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]  # their package has the name of this one
    function, arguments = prepared(kernel, who, size)
    found = leaves(function(*arguments))
    reference, others = prepared(kernel, "numpy", size)
    expected = leaves(reference(*copy.deepcopy(others)))
    error = max(float(np.max(np.abs(x - y)) / np.max(np.abs(y))) for x, y in zip(found, expected))
    times: list[float] = []
    while (sum(times) < AT_LEAST and len(times) < AT_MOST) or len(times) < 3:
        begin = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - begin)
    print(statistics.median(times), error)


def run(checkout: str, kernel: str, who: str, size: int) -> tuple[float, float] | None:
    """The time and the error of one kernel in a process of its own; None where it fails."""
    command = [sys.executable, "-m", "benchmarks.pyhpc", checkout, "--one", kernel, who, str(size)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, check=False, env={**os.environ, **_ALONE}
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        sys.stderr.write(f"{kernel}, {who}: {lines[-1]}\n")
        return None
    seconds, error = map(float, done.stdout.split()[-2:])
    return seconds, error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pyhpc", description=__doc__)
    parser.add_argument("checkout", help="a folder with github.com/dionhaefner/pyhpc-benchmarks")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="cells (default: %(default)s)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--one", nargs=3, metavar=("KERNEL", "WHO", "SIZE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    checkout = str(Path(given.checkout).resolve())
    if given.one:
        kernel, who, size = given.one
        measure(checkout, kernel, who, int(size))
        return
    title = "median time of a call, and the speed as a multiple of a peer's, one thread"
    table = Table(box=box.SIMPLE_HEAD, title=title)
    for name in ("kernel", "cells", "mlirml", *given.peers, "error"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    ratios: dict[str, list[float]] = {peer: [] for peer in given.peers}
    for kernel in KERNELS:
        for size in given.sizes:
            mine = run(checkout, kernel, "mlirml", size)
            row = [kernel, f"{size:,}", tables.time_text(mine[0]) if mine else "refused"]
            for peer in given.peers:
                found = run(checkout, kernel, peer, size)
                row.append(f"{found[0] / mine[0]:.2f}" if found and mine else "-")
                if found and mine:
                    ratios[peer].append(found[0] / mine[0])
            table.add_row(*row, f"{mine[1]:.1e}" if mine else "-")
    console = Console(width=120)
    console.print(table)
    for peer, speeds in ratios.items():
        if speeds:
            mean = statistics.geometric_mean(speeds)
            console.print(f"against {peer}: geometric mean {mean:.2f}, lowest {min(speeds):.2f}")


if __name__ == "__main__":
    main()
