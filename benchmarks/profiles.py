"""Profiles against whole programs: `python -m benchmarks.profiles` compares their times, and the work that is counted.

The kernels' times should add up to that of the program without clocks, and their flops to those that the workload
counts. Where a program is rewritten, as a chain of products, there are fewer.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

import mlirml as ml
from benchmarks import tables
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS
from mlirml.driver.profiling.profile import Profile


def measured(workload: Workload, quick: bool) -> Profile:
    """The profile of a workload, in its form with loops over elements if it has one."""
    arguments = workload.arguments(quick)
    if workload.loops is not None:
        arguments = (*arguments, *(np.zeros(shape, np.float32) for shape in workload.made(*arguments)))
    profile: Profile = ml.compile(workload.loops or workload.function).profile(*arguments)
    return profile


def row(workload: Workload, profile: Profile, quick: bool) -> list[str]:
    """The cells of a workload."""
    flops = sum(found.flops or 0 for found in profile.rows)
    counted = workload.amount(quick) if workload.unit == "flop" else 0.0
    limits = [found.limit_seconds or 0.0 for found in profile.rows]
    return [
        workload.name,
        tables.time_text(profile.normal_seconds),
        tables.time_text(profile.kernel_seconds),
        f"{profile.kernel_seconds / profile.normal_seconds:.3f}",
        f"{profile.seconds / profile.normal_seconds:.3f}",
        f"{flops / counted:.3f}" if counted else "",
        f"{sum(limits) / profile.kernel_seconds:.2f}" if profile.kernel_seconds else "",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles", description=__doc__)
    names = [name for name, workload in WORKLOADS.items() if not workload.transform]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=names, help=", ".join(names))
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads (default: 1)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the program out")
    options = parser.parse_args(arguments)
    columns = ("workload", "program", "kernels", "of program", "with clocks", "flops of counted", "of limit")
    table = Table(title=f"Profiles, {options.threads} thread(s), {tables.machine()}", title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column == "workload" else "right")
    ratios = []
    with ml.config.override(threads=options.threads):
        for name in options.only:
            profile = measured(WORKLOADS[name], options.quick)
            ratios.append(profile.kernel_seconds / profile.normal_seconds)
            table.add_row(*row(WORKLOADS[name], profile, options.quick))
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    console.print(f"kernels over program: median {statistics.median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
