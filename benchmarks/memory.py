"""What gradients keep: `python -m benchmarks.memory`.

First each derivative of the benchmark: what goes in and comes out, and the workspace of the compiled program. That of
the Gaussian mixture is to need less, all in all, than twice its inputs and outputs and one array of n by k numbers;
with d = 64 it needs up to three times, as the sum over blocks is stored.

Then a loop, which goes 100 to 10,000 steps on 4,096 numbers, and whose adjoint reads what each step began with. The
table shows the workspace of the compiled gradient, and by how much it lets the peak memory of a fresh process grow, in
which the program comes from the disk cache: with everything kept, with `ml.checkpoint` around the loop, and for a loop
that is linear in what it carries, which keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.gradients.problems import PROBLEMS
from benchmarks.startup import run_fresh
from benchmarks.workload import Workload

STEPS, QUICK = (100, 300, 1000, 3000, 10_000), (10, 100)
KINDS = ("kept", "checkpoint", "linear")

_PROGRAM = """
import json, sys, time
import numpy as np
import mlirml as ml

ml.config.checkpoint_bytes = 1 << 40  # cut nothing but what asks for it
ml.config.cache_dir = sys.argv[3]
kind, steps = sys.argv[1], int(sys.argv[2])
x = np.linspace(0.1, 1, 4096)

def peak_kib():  # of this program; what getrusage tells begins with the parent's
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

def walk(x):
    step = (lambda i, c: c * 0.999 + x) if kind == "linear" else (lambda i, c: np.sin(c) + 0.1 * x)
    return ml.fori_loop(0, steps, step, x)

program = ml.compile(ml.grad(lambda x: np.sum((ml.checkpoint(walk) if kind == "checkpoint" else walk)(x))))
if len(sys.argv) > 4:
    from mlirml.cli.explain import follow

    print(follow(program, x).artifact.workspace_bytes)
    program(x)
else:
    program.executable(x)
    before = peak_kib()
    gradient = program(x)
    peak = peak_kib() - before
    start = time.perf_counter()
    program(x)
    print(json.dumps([peak * 1024, time.perf_counter() - start, float(np.sum(gradient))]))
"""


@dataclass(frozen=True)
class Held:
    """Bytes of a program's arguments and results, and of its workspace; `limit` is for all of them."""

    outside: int
    workspace: int
    limit: int | None


def held(workload: Workload, quick: bool) -> Held:
    """What a derivative holds while it runs."""
    import numpy as np

    import mlirml as ml
    from benchmarks.peers.with_mlirml import transformed
    from mlirml.cli.explain import follow
    from mlirml.core.tree import flatten

    arguments = workload.arguments(quick)
    program = ml.compile(transformed(workload))
    workspace = follow(program, *arguments).artifact.workspace_bytes
    arrays = flatten((arguments, program(*arguments)))[0]
    outside = sum(np.asarray(array).nbytes for array in arrays)
    if "gmm" not in workload.name:
        return Held(outside, workspace, None)
    weights, *_, examples = arguments
    return Held(outside, workspace, 2 * outside + len(examples) * len(weights) * examples.itemsize)


def print_held(out: Console, quick: bool) -> None:
    """The table of the derivatives."""
    table = Table("derivative", "arguments and results", "workspace", "all", "limit")
    for workload in PROBLEMS:
        if not workload.transform:
            continue
        found = held(workload, quick)
        numbers = (found.outside, found.workspace, found.outside + found.workspace, found.limit)
        table.add_row(workload.name, *("" if n is None else f"{n / 1e6:.3f} MB" for n in numbers))
    out.print(table)


@dataclass(frozen=True)
class Use:
    """Bytes of workspace, and by which the peak grew, and the seconds of a call."""

    workspace: int
    peak: int
    seconds: float
    checksum: float


def measure(kind: str, steps: int, cache: str) -> Use:
    """Compile in one process, measure in the next."""
    arguments = ("-c", _PROGRAM, kind, str(steps), cache)
    workspace = int(run_fresh(sys.executable, *arguments, "compile"))
    return Use(workspace, *json.loads(run_fresh(sys.executable, *arguments)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 when checkpoints change the gradient."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps, to try the program out")
    options = parser.parse_args(arguments)
    out = Console(width=None if sys.stdout.isatty() else 160)
    print_held(out, options.quick)
    table = Table("steps", *(f"{kind}: {what}" for kind in KINDS for what in ("workspace", "peak", "ms")))
    wrong = 0
    with tempfile.TemporaryDirectory() as cache:
        for steps in QUICK if options.quick else STEPS:
            uses = {kind: measure(kind, steps, cache) for kind in KINDS}
            cells = [
                text
                for use in uses.values()
                for text in (f"{use.workspace / 1e6:.2f} MB", f"{use.peak / 1e6:.1f} MB", f"{use.seconds * 1e3:.1f}")
            ]
            table.add_row(f"{steps:,}", *cells)
            kept, again = uses["kept"].checksum, uses["checkpoint"].checksum
            wrong += abs(kept - again) > 1e-9 * abs(kept)
    out.print(table)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
