"""NPBench as it stands: `python -m benchmarks.npbench CHECKOUT` runs a checkout of github.com/spcl/npbench.

Each program runs unedited in a process of its own: compiled by mlirml, in NumPy, and in the best variant for Numba.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import tables

NUMBA = ("n", "np", "npr", "o", "op", "opr")
"""The endings of the modules with variants for Numba."""
TIMEOUT = 300.0
AT_LEAST, AT_MOST = 0.3, 200
"""Seconds, and calls, that are measured."""

Info = dict[str, Any]


def arguments_of(info: Info, size: str) -> list[Any]:
    """The arguments of a program."""
    values: Info = dict(info["parameters"][size])
    init = info.get("init")
    if init:
        path = info["relative_path"].replace("/", ".")
        module = importlib.import_module(f"npbench.benchmarks.{path}.{info['module_name']}")
        found = getattr(module, init["func_name"])(*[values[name] for name in init["input_args"]])
        names = init["output_args"]
        values.update(zip(names, found if len(names) > 1 else [found]))
    return [values[name] for name in info["input_args"]]


def function_of(info: Info, ending: str) -> Callable[..., Any] | None:
    """A variant of a program."""
    path = info["relative_path"].replace("/", ".")
    try:
        module = importlib.import_module(f"npbench.benchmarks.{path}.{info['module_name']}_{ending}")
    except ImportError:
        return None
    found: Callable[..., Any] = getattr(module, info["func_name"])
    return found


def call(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[float, list[Any]]:
    """The seconds of a call with copies of the arguments, and all that it leaves behind."""
    given = copy.deepcopy(list(arguments))
    begin = time.perf_counter()
    result = function(*given)
    seconds = time.perf_counter() - begin
    results = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    return seconds, [*results, *(x for x in given if isinstance(x, np.ndarray))]


def median(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """The median time of a call."""
    found: list[float] = []
    while (sum(found) < AT_LEAST and len(found) < AT_MOST) or len(found) < 3:
        found.append(call(function, arguments)[0])
    return statistics.median(found)


def error_of(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The norm of the difference relative to the norm, the largest of all arrays."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        difference = float(np.linalg.norm(np.ravel(np.asarray(one) - np.asarray(other)))) if np.size(other) else 0.0
        norm = float(np.linalg.norm(np.ravel(np.asarray(other)))) or 1.0
        worst = max(worst, difference / norm if math.isfinite(difference) else math.inf)
    return worst


def measure(info: Info, size: str, peers: Sequence[str]) -> dict[str, Any]:
    """The figures of one program."""
    import mlirml as ml

    arguments = arguments_of(info, size)
    plain = function_of(info, "numpy")
    assert plain is not None
    figures: dict[str, Any] = {}
    expected = call(plain, arguments)[1]
    try:
        with ml.config.override(cache=False):
            compiled = ml.compile(plain)
            begin = time.perf_counter()
            found = call(compiled, arguments)[1]
            figures["first"] = time.perf_counter() - begin
        figures["error"] = error_of(found, expected)
        figures["mlirml"] = median(compiled, arguments)
    except Exception as error:
        figures["problem"] = f"{type(error).__name__}: {error}"
        if not isinstance(error, ml.MlirmlError):
            figures["problem"] += "\n" + traceback.format_exc()
    if "numpy" in peers:
        figures["numpy"] = median(plain, arguments)
    for ending in NUMBA if "numba" in peers else ():
        try:
            variant = function_of(info, f"numba_{ending}")
            if variant is None or error_of(call(variant, arguments)[1], expected) > 1e-3:
                continue
            figures["numba"] = min(median(variant, arguments), figures.get("numba", math.inf))
        except Exception:  # a variant that this version of Numba refuses
            continue
    return figures


def run(name: str, checkout: Path, size: str, peers: Sequence[str]) -> dict[str, Any]:
    """The figures of one program, measured in a process of its own on one thread."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "MLIRML_THREADS")
    path = os.pathsep.join([str(checkout), os.getcwd(), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **dict.fromkeys(threads, "1"), "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.npbench", str(checkout), "--one", name, "--size", size]
    try:
        done = subprocess.run(
            [*command, "--peers", *peers], env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"over {TIMEOUT:.0f} s"}
    if done.returncode:
        return {"problem": f"exit status {done.returncode}: {done.stderr[-400:]}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table_of(every: dict[str, dict[str, Any]]) -> Table:
    """A row a program."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("program")
    for column in ("first call", "a call", "NumPy", "Numba", "error"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, figures in every.items():
        if "mlirml" not in figures:
            table.add_row(name, str(figures.get("problem", "")).splitlines()[0][:60])
            continue
        ratios = []
        for peer in ("numpy", "numba"):
            ratio = figures[peer] / figures["mlirml"] if peer in figures else None
            ratios.append("-" if ratio is None else f"[{'green' if ratio >= 1 else 'yellow'}]{ratio:.2f}x[/]")
        first, each = (tables.time_text(figures[key]) for key in ("first", "mlirml"))
        table.add_row(name, first, each, *ratios, f"{figures['error']:.1e}")
    return table


def mean(ratios: Sequence[float]) -> str:
    """The geometric mean."""
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} of {len(ratios)}" if ratios else "-"


def main(given: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.npbench", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a folder with github.com/spcl/npbench")
    parser.add_argument("--only", nargs="*", help="programs, by the names of files in bench_info")
    parser.add_argument("--size", default="S")
    parser.add_argument("--peers", nargs="*", default=["numpy", "numba"])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    infos = {
        path.stem: json.loads(path.read_text())["benchmark"] for path in sorted(options.checkout.glob("bench_info/*"))
    }
    if options.one:
        print(json.dumps(measure(infos[options.one], options.size, options.peers)))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(tables.machine())
    every = {}
    for name in options.only or infos:
        every[name] = run(name, options.checkout, options.size, options.peers)
        console.print(name, every[name].get("problem", ""), style="dim", markup=False, highlight=False)
    console.print(table_of(every))
    measured = {name: figures for name, figures in every.items() if "mlirml" in figures}
    for peer in ("numpy", "numba"):
        ratios = [figures[peer] / figures["mlirml"] for figures in measured.values() if peer in figures]
        console.print(f"geometric mean of the time of {peer} to ours: {mean(ratios)}")
    firsts = sorted(figures["first"] for figures in measured.values())
    if firsts:
        console.print(f"first call: median {tables.time_text(statistics.median(firsts))}, slowest {firsts[-1]:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
