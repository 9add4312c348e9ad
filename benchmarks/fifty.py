"""Fifty programs as they stand: `python -m benchmarks.fifty` times those of `benchmarks/programs` on one thread.

Each program runs unedited in a process of its own, compiled by mlirml, in plain Python, and compiled by Numba if that
is installed. Results are compared with those of plain Python first.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import inspect
import json
import math
import os
import statistics
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import tables

FOLDER = Path(__file__).with_name("programs")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "MLIRML_THREADS")
TIMEOUT = 120.0
"""Seconds for all that is done with one program."""
ROUNDS, SECONDS, CALLS = 5, 0.1, 50
"""How often the peers take turns; in each turn the seconds and the calls after which the next one has its."""
TOLERANCE = 1e-9
"""The largest error relative to the norm of a result: sums are added up in another order."""

Program = Callable[..., Any]
Figures = dict[str, Any]


def programs() -> dict[str, str]:
    """The names of all programs, with the domain of each."""
    return {name: path.stem for path in sorted(FOLDER.glob("*.py")) for name in _functions(_module(path.stem))}


def load(name: str) -> tuple[Program, tuple[Any, ...]]:
    """A program and its arguments."""
    module = _module(programs()[name])
    return getattr(module, name), module.arguments(name)


def _module(domain: str) -> types.ModuleType:
    return importlib.import_module(f"benchmarks.programs.{domain}")


def _functions(module: types.ModuleType) -> Iterator[str]:
    for name, found in vars(module).items():
        if inspect.isfunction(found) and found.__module__ == module.__name__ and name != "arguments":
            yield name


def call(function: Program, arguments: Sequence[Any]) -> tuple[float, list[Any]]:
    """The seconds of a call with copies of the arguments, and all that it leaves behind, as a flat list."""
    given = copy.deepcopy(list(arguments))
    begin = time.perf_counter()
    result = function(*given)
    seconds = time.perf_counter() - begin
    return seconds, [*_leaves(result), *(x for x in given if isinstance(x, np.ndarray))]


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from _leaves(part)
    elif result is not None:
        yield np.asarray(result)


def error_of(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The norm of the difference relative to the norm, the largest of all arrays; infinite for other shapes."""
    if len(found) != len(expected):
        return math.inf
    worst = 0.0
    for one, other in zip(found, expected):
        if one.shape != other.shape or (one.dtype.kind in "biu") != (other.dtype.kind in "biu"):
            return math.inf
        with np.errstate(invalid="ignore"):
            difference = np.where(one == other, 0, np.subtract(one, other, dtype=complex))
        norm = float(np.linalg.norm(np.ravel(other[np.isfinite(other)]))) or 1.0
        error = float(np.linalg.norm(np.ravel(difference))) / norm
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def medians(functions: Mapping[str, Program], arguments: Sequence[Any]) -> dict[str, float]:
    """The median time of a call of each function. They take turns, so that ratios hold when the machine slows down."""
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            new: list[float] = []
            while sum(new) < SECONDS and len(new) < CALLS:
                new.append(call(function, arguments)[0])
            samples[name] += new
    return {name: statistics.median(found) for name, found in samples.items()}


def with_numba(function: Program, **options: Any) -> Program:
    """The same source compiled by Numba, and the functions of its module that it calls by name too."""
    import numba

    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = names.get(name)
        if inspect.isfunction(helper) and helper.__module__ == function.__module__:
            names[name] = with_numba(helper, **options)
    twin = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    compiled: Program = numba.njit(**options)(twin)
    return compiled


def measure(name: str, peers: Sequence[str]) -> Figures:
    """The figures of one program. The process is fresh: the first call loads the compiler too."""
    import mlirml as ml

    plain, arguments = load(name)
    figures: Figures = {}
    expected = call(plain, arguments)[1]
    functions: dict[str, Program] = {}
    with ml.config.override(cache=False):
        compiled = ml.compile(plain)
        try:
            figures["first"], found = call(compiled, arguments)
        except Exception as error:
            return {"problem": f"{type(error).__name__}: {error}"}
    figures["error"] = error_of(found, expected)
    if figures["error"] > TOLERANCE:
        return {"problem": f"wrong: error {figures['error']:.1e}"}
    functions["mlirml"] = compiled
    if "python" in peers:
        functions["python"] = plain
    for exact in (False, True) if "numba" in peers else ():
        try:
            variant = with_numba(plain, fastmath=not exact)
            figures["numba first"], found = call(variant, arguments)
        except Exception:  # a program that Numba refuses, or no Numba
            break
        # With `fastmath` infinities and NaN are undefined, and some programs have them.
        if error_of(found, expected) <= TOLERANCE:
            functions["numba"], figures["exact"] = variant, exact
            break
    return figures | medians(functions, arguments)


def run(name: str, peers: Sequence[str]) -> Figures:
    """The figures of one program, measured in a process of its own on one thread."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fifty", "--one", name, "--peers", *peers]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    try:
        done = subprocess.run(
            command, cwd=FOLDER.parent.parent, env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"over {TIMEOUT:.0f} s"}
    if done.returncode:
        return {"problem": f"exit status {done.returncode}: {done.stderr[-400:]}"}
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


COLUMNS = ("first call", "a call", "plain Python", "Numba", "Numba's first call")


def ratio_text(ratio: float) -> str:
    """Three digits, or as many as there are before the point."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def cells(figures: Figures) -> list[str]:
    """The cells of a program after its name."""
    if "mlirml" not in figures:
        return [str(figures["problem"]).splitlines()[0][:60], *[""] * (len(COLUMNS) - 1)]
    ratios = []
    for peer in ("python", "numba"):
        ratio = figures[peer] / figures["mlirml"] if peer in figures else None
        ratios.append("" if ratio is None else ratio_text(ratio) + "*" * bool(peer == "numba" and figures["exact"]))
    numba = tables.time_text(figures["numba first"]) if "numba" in figures else ""
    return [tables.time_text(figures["first"]), tables.time_text(figures["mlirml"]), *ratios, numba]


def table_of(every: Mapping[str, Figures]) -> Table:
    """A row a program."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("domain", "program"):
        table.add_column(column, no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    domains = programs()
    for name, figures in every.items():
        table.add_row(domains[name], name, *cells(figures))
    return table


def markdown_of(every: Mapping[str, Figures]) -> str:
    """The same table in Markdown."""
    domains = programs()
    lines = [f"| | | {' | '.join(COLUMNS)} |", f"|---|---|{'--:|' * len(COLUMNS)}"]
    for name, figures in every.items():
        lines.append(f"| {domains[name]} | `{name}` | {' | '.join(cells(figures))} |".replace("*", "\\*"))
    return "\n".join(lines)


def summary(every: Mapping[str, Figures]) -> Iterator[str]:
    """What the table shows, in lines."""
    measured = {name: figures for name, figures in every.items() if "mlirml" in figures}
    yield f"{len(measured)} of {len(every)} programs compile and agree with plain Python"
    for peer, text in (("python", "plain Python"), ("numba", "Numba")):
        ratios = {name: figures[peer] / figures["mlirml"] for name, figures in measured.items() if peer in figures}
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        slower = [f"{name} {ratio:.2f}x" for name, ratio in sorted(ratios.items(), key=lambda x: x[1]) if ratio < 1]
        yield f"against {text}: {mean:.3g}x, the geometric mean of {len(ratios)}; slower: {', '.join(slower) or 'none'}"
    for key, text in (("first", "first call"), ("numba first", "Numba's first call")):
        found = sorted((figures[key], name) for name, figures in measured.items() if key in figures)
        if found:
            middle = tables.time_text(statistics.median(seconds for seconds, _ in found))
            yield f"{text}: median {middle}, slowest {tables.time_text(found[-1][0])} ({found[-1][1]})"
    if any(figures.get("exact") for figures in measured.values()):
        yield "* Numba without fastmath, as its result is another one with it"


def main(given: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fifty", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(programs()), metavar="PROGRAM")
    parser.add_argument("--peers", nargs="*", default=["python", "numba"], choices=["python", "numba"])
    parser.add_argument("--markdown", action="store_true", help="print the table as one of Markdown")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.one:
        print(json.dumps(measure(options.one, options.peers)))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(tables.machine(), highlight=False)
    every = {}
    for name in options.only or programs():
        every[name] = run(name, options.peers)
        console.print(name, every[name].get("problem", ""), style="dim", markup=False, highlight=False)
    if options.markdown:
        print(markdown_of(every))
    else:
        console.print(table_of(every))
    for line in summary(every):
        console.print(line, markup=False, highlight=False)
    return any("problem" in figures for figures in every.values())


if __name__ == "__main__":
    sys.exit(main())
