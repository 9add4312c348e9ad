"""Compare mlirml with its peers: `python -m benchmarks --peers numpy,torch,jax,numba`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import compiling, launches, scaling, startup, tables, threads, tiles
from benchmarks.devices.workloads import WORKLOADS as DEVICE_WORKLOADS
from benchmarks.peers import PEERS
from benchmarks.rounds import Table, measure, start_peers
from benchmarks.workloads import WORKLOADS

ONCE = ("import", "first-call", "compile", "compile-scaling", "launch", "threads", "tiles")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 when mlirml failed or gave a wrong result."""
    options = _parse(arguments)
    out = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    out.print(tables.machine())
    if options.target != "cpu":
        from benchmarks.devices.run import run

        pythons = {name: options.python.get(name, sys.executable) for name in PEERS}
        return run(options.target, options, pythons, out)
    chosen = options.only or [*(name for name in WORKLOADS if name not in compiling.ONLY), *ONCE]
    pythons = {name: options.python.get(name, sys.executable) for name in PEERS}
    workloads = [name for name in WORKLOADS if name in chosen]
    table: Table = {}
    if workloads:
        table = _workloads(options, pythons, workloads, out)
    times = _once(options, pythons, chosen, out)
    if not options.quick and options.threads == 1:  # the targets are for full sizes on one thread
        out.print(tables.must_show(table, {row.name: row for row in times}))
    for line in tables.problems(table):
        out.print(line, markup=False, soft_wrap=True)
    return int(any("mlirml" in row and row["mlirml"].problem for row in table.values()))


def _workloads(options: argparse.Namespace, pythons: dict[str, str], names: list[str], out: Console) -> Table:
    peers, notes = start_peers(options.peers, pythons, options.threads)
    try:
        for name, note in notes.items():
            out.print(note if note.startswith(name) else f"{name}: {note}", markup=False, soft_wrap=True)
        with out.status("") as status:
            table = measure(
                peers, names, rounds=options.repeats, seconds=options.seconds, quick=options.quick,
                progress=lambda name: status.update(f"measuring {name}"),
            )  # fmt: skip
    finally:
        for peer in peers:
            peer.close()
    out.print(*tables.ratios(table, options.threads, options.quick), *tables.against_best(table, options.threads))
    return table


def _once(options: argparse.Namespace, pythons: dict[str, str], chosen: list[str], out: Console) -> list[startup.Times]:
    repeats = 1 if options.quick else options.repeats
    times: list[startup.Times] = []
    if "import" in chosen:
        installed = [p for p in options.peers if p != "inductor" and startup.can_import(pythons[p], p)]  # it is torch
        times += startup.import_times(installed, pythons, repeats)
    if "first-call" in chosen:
        times += startup.first_calls(repeats)
    if "compile" in chosen:
        with out.status("") as status:
            times += compiling.cold_compiles(
                options.peers, pythons, repeats, options.quick, lambda text: status.update(text)
            )
    if "compile-scaling" in chosen:
        with out.status("") as status:
            times += scaling.compile_scaling(options.quick, lambda text: status.update(text))
    if "launch" in chosen:
        times.append(startup.parallel_launch(repeats))
        times += launches.device_launches(repeats)
    if "threads" in chosen:
        with out.status("") as status:
            times += threads.thread_times(pythons["mlirml"], repeats, options.quick, lambda text: status.update(text))
    if "tiles" in chosen:
        times += tiles.tile_times(repeats)
    if times:
        out.print(tables.once(times))
    return times


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time mlirml against its peers: a live process each, checked against float64, timed in turns.",
    )
    parser.add_argument(
        "--peers", metavar="NAMES", default=",".join(PEERS), type=lambda text: _names(text, PEERS),
        help=f"which, with commas: {', '.join(PEERS)} (default: all; numpy and mlirml always run)",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="NAMES", action="extend",
        type=lambda text: _names(text, (*WORKLOADS, *ONCE, *DEVICE_WORKLOADS)),
        help=f"only these: {', '.join((*WORKLOADS, *ONCE))}; on a device {', '.join(DEVICE_WORKLOADS)}",
    )  # fmt: skip
    parser.add_argument(
        "--python", metavar="PEER=PATH", action="append", default=[], type=_python,
        help="the interpreter of a peer that is installed elsewhere",
    )  # fmt: skip
    parser.add_argument(
        "--target", default="cpu", choices=("cpu", "cuda", "vulkan"),
        help="run the workloads of devices there, against torch: on the GPU for cuda, else on the CPU",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", type=Path, help="on a device: write the figures there, too")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads of a peer (default: 1, pinned)")
    parser.add_argument("--repeats", metavar="N", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--seconds", metavar="S", type=float, default=0.1, help="how long a turn lasts (default: 0.1)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the program out")
    options = parser.parse_args(arguments)
    if options.threads < 1 or options.repeats < 1:
        parser.error("--threads and --repeats are at least 1")
    options.python = dict(options.python)
    options.peers = ["numpy", "mlirml", *(name for name in options.peers if name not in ("numpy", "mlirml"))]
    return options


def _names(text: str, known: Sequence[str]) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; known are {', '.join(known)}")
    return names


def _python(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or name not in PEERS:
        raise argparse.ArgumentTypeError(f"expected PEER=PATH with a peer of {', '.join(PEERS)}, got {text!r}")
    return name, path


if __name__ == "__main__":
    sys.exit(main())
