"""The tables that a run prints."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Mapping

from rich import box
from rich.table import Table as RichTable

from benchmarks.rounds import Measured, Table
from benchmarks.startup import Times
from benchmarks.targets import TARGETS
from benchmarks.workloads import WORKLOADS


def time_text(seconds: float) -> str:
    """Three digits and a unit."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")):
        if seconds * factor >= 1 or unit == "ns":
            value = seconds * factor
            digits = max(0, 2 - int(math.log10(max(value, 1))))
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def machine() -> str:
    """The processor and how many of its cores may be used."""
    name = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores, Python {platform.python_version()}"


def _table(title: str, first: str, *columns: str) -> RichTable:
    result = RichTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    result.add_column(first)
    for column in columns:
        result.add_column(column, justify="right", no_wrap=True)
    return result


def _cell(figures: Measured, base: Measured, which: str) -> str:
    if figures.problem:
        return figures.problem if figures.problem == "-" else "[red]failed[/]"
    seconds: float = getattr(figures, which)
    if figures is base or base.problem:
        return time_text(seconds)
    ratio = getattr(base, which) / seconds
    return f"{time_text(seconds)} [{'green' if ratio >= 1 else 'yellow'}]{ratio:6.2f}x[/]"


def ratios(table: Table, threads: int, quick: bool) -> Iterator[RichTable]:
    """A table of medians and one of best times: a row a workload, a column a peer."""
    peers = list(next(iter(table.values())))
    count = f"{threads} thread{'' if threads == 1 else 's'}"
    medians = _table(f"median time a call, and times NumPy's speed, {count}", "workload", *peers, "mlirml's rate")
    best = _table(f"best time a call, and times NumPy's speed, {count}", "workload", *peers, "error, NumPy's")
    for name, row in table.items():
        base, own = row["numpy"], row.get("mlirml")
        medians.add_row(name, *(_cell(row[p], base, "median") for p in peers), _rate(name, own, quick))
        best.add_row(name, *(_cell(row[p], base, "best") for p in peers), _errors(own, base))
    yield from (medians, best)


def against_best(table: Table, threads: int) -> Iterator[RichTable | str]:
    """A table of mlirml's medians beside those of the best peer, and a line of all ratios."""
    count = f"{threads} thread{'' if threads == 1 else 's'}"
    result = _table(f"mlirml and the best peer, {count}", "workload", "mlirml", "the best peer", "which", "ratio")
    found: list[tuple[float, str]] = []
    for name, row in table.items():
        peers = {p: figures.median for p, figures in row.items() if p != "mlirml" and not figures.problem}
        own = row.get("mlirml")
        if own is None or own.problem or not peers:
            continue
        best = min(peers, key=peers.__getitem__)
        ratio = peers[best] / own.median
        found.append((ratio, name))
        result.add_row(name, time_text(own.median), time_text(peers[best]), best, f"{ratio:.2f}x")
    if found:
        yield result
        lowest, name = min(found)
        mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in found))
        yield (
            f"{len(found)} workloads: lowest {lowest:.2f} ({name}), geometric mean {mean:.2f}, "
            f"at or above 1.0 {sum(ratio >= 1 for ratio, _ in found)}"
        )


def _rate(name: str, own: Measured | None, quick: bool) -> str:
    workload = WORKLOADS[name]
    if own is None or own.problem or not workload.unit:
        return ""
    rate = workload.amount(quick) / own.median / 1e9
    return f"{rate:.3g} {'GFLOP/s' if workload.unit == 'flop' else 'GB/s'}"


def _errors(own: Measured | None, base: Measured) -> str:
    if own is None or own.problem or base.problem:
        return ""
    return f"{own.error:.0e}, {base.error:.0e}"


def problems(table: Table) -> list[str]:
    """What failed or came out wrong, one line each."""
    return [
        f"{name}, {peer}: {figures.problem}"
        for name, row in table.items()
        for peer, figures in row.items()
        if figures.problem not in ("", "-")
    ]


def once(times: Iterable[Times]) -> RichTable:
    """What a process pays once."""
    result = _table("paid once", "what", "median", "best", "samples")
    for row in times:
        result.add_row(row.name, time_text(row.median), time_text(row.best), str(len(row.samples)))
    return result


def must_show(table: Table, times: Mapping[str, Times]) -> RichTable:
    """The targets with the figures of this run."""
    result = _table("must show", "what", "target", "measured", "")
    for target in TARGETS:
        value = target.measured(table, times)
        if value is None:
            result.add_row(target.text, target.bound(), "not measured", "")
        else:
            verdict = "[green]met[/]" if target.met(value) else "[red]not met[/]"
            result.add_row(target.text, target.bound(), f"{value:.3g} {target.unit}", verdict)
    return result
