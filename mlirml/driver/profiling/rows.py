"""From clocks and kernels to the rows of a profile: which kernels a clock timed, how much work they did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirml.analysis.work import FUNCTION_FLOPS, Count
from mlirml.core.dataclass import dataclass, replace
from mlirml.driver.profiling.kernels import Kernel, Kernels
from mlirml.driver.profiling.profile import Row
from mlirml.driver.profiling.text import line_texts, named

if TYPE_CHECKING:
    from mlirml.driver.profiling.program import Clock
    from mlirml.targets.measured import MeasuredMachine


@dataclass(frozen=True)
class Group:
    """A row before it is measured: indices of clocks, and the kernels that they time together."""

    clocks: tuple[int, ...]
    kernels: tuple[int, ...]


def groups_of(clocks: Sequence[Clock], kernels: Kernels) -> list[Group]:
    """Clocks and their kernels, those together that time parts of one kernel, in program order."""
    owners = _owners(clocks, kernels)
    groups: list[tuple[set[int], set[int]]] = []
    for number, clock in enumerate(clocks):
        own = {number}, {*clock.kernels, *owners.get(number, ())}
        for group in [group for group in groups if group[1] & own[1]]:
            groups.remove(group)
            own[0].update(group[0])
            own[1].update(group[1])
        groups.append(own)
    groups.sort(key=lambda group: min(group[0]))
    return [Group(tuple(sorted(found)), tuple(sorted(numbers))) for found, numbers in groups]


def _owners(clocks: Sequence[Clock], kernels: Kernels) -> dict[int, list[int]]:
    """For each clock the kernels without one whose work it times: fused into another kernel, with no mark left.

    That other kernel is one that they read from, if this is a contraction, whose loops take in what follows them; else
    one that reads them, else any that they read from. A kernel without arithmetic that has no clock was removed.
    """
    timed = {number: position for position, clock in enumerate(clocks) for number in clock.kernels}
    found: dict[int, list[int]] = {}
    for kernel in reversed(kernels.kernels):
        if kernel.number in timed or kernel.count == Count():
            continue
        sources = [read.producer for read in kernel.reads if read.producer in timed]
        products = [number for number in sources if kernels.kernels[number].is_contraction]
        users = [number for number in kernel.used_by if number in timed]
        if near := [*products, *users, *sources]:
            timed[kernel.number] = timed[near[0]]
            found.setdefault(timed[near[0]], []).append(kernel.number)
    return found


def row_of(
    group: Group, clocks: Sequence[Clock], kernels: Kernels, measured: Sequence[tuple[int, int]],
    executions: Mapping[int, int | None], threads: int,
) -> Row:  # fmt: skip
    """The row of a group: `measured` are calls and nanoseconds by clock, `executions` those of host blocks."""
    timings = sum(measured[clock][0] for clock in group.clocks)
    seconds = sum(measured[clock][1] for clock in group.clocks) * 1e-9
    members = [kernels.kernels[number] for number in group.kernels]
    calls = {kernel.number: _calls(kernel, group, clocks, measured, executions) for kernel in members}
    places = [place for kernel in members for place in kernel.locations]
    is_known = bool(members)
    count = sum((kernel.count.times(calls[kernel.number]) for kernel in members), Count())
    is_parallel = any(clocks[clock].is_parallel for clock in group.clocks)
    return Row(
        name=named(labels_of(members)) or "loop",
        lines=line_texts(places or [place for clock in group.clocks for place in clocks[clock].locations]),
        calls=max(calls.values(), default=timings),
        timings=timings,
        seconds=seconds,
        flops=count.flops if is_known else None,
        functions=count.functions if is_known else None,
        bytes_moved=bytes_of(members, calls) if is_known else None,
        dtype=dtype_of_members(members),
        threads=threads if is_parallel else 1,
    )


def _calls(
    kernel: Kernel, group: Group, clocks: Sequence[Clock], measured: Sequence[tuple[int, int]],
    executions: Mapping[int, int | None],
) -> int:  # fmt: skip
    """The number of executions of a kernel: those of its block, or of its clock where these are not known."""
    known = None if kernel.block is None else executions[kernel.block]
    if known is not None:
        return known
    own = [clock for clock in group.clocks if kernel.number in clocks[clock].kernels]
    return max(measured[clock][0] for clock in own or group.clocks)


def merged(rows: Sequence[Row]) -> tuple[list[Row], list[int]]:
    """Rows of equal kernels as one, such as those of layers that a loop in Python writes out, and the index of each.

    Kernels are equal if they are of the same lines, and of the same work in a call.
    """
    found: dict[object, int] = {}
    together: list[Row] = []
    positions = []
    for row in rows:
        totals = (row.flops, row.functions, row.bytes_moved)
        work = [None if total is None else total / max(row.calls, 1) for total in totals]
        position = found.setdefault((row.name, row.lines, row.dtype, row.threads, *work), len(together))
        positions.append(position)
        if position == len(together):
            together.append(row)
        else:
            together[position] = _sum(together[position], row)
    return together, positions


def _sum(one: Row, other: Row) -> Row:
    names = ("calls", "timings", "seconds", "flops", "functions", "bytes_moved")
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in names}
    sums: dict[str, Any] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
    return replace(one, **sums)


def bytes_of(members: Sequence[Kernel], calls: Mapping[int, int]) -> int:
    """The bytes that kernels move together: each array once, those that pass between them not at all.

    Kernels that are executed equally often are counted together.
    """
    return sum(reads + writes for reads, writes in _moved(members, calls))


def _moved(members: Sequence[Kernel], calls: Mapping[int, int]) -> Iterable[tuple[int, int]]:
    for times in dict.fromkeys(calls.values()):
        together = [kernel for kernel in members if calls[kernel.number] == times]
        numbers = {kernel.number for kernel in together}
        reads: dict[int, int] = {}
        writes: dict[int, int] = {}
        for kernel in together:
            for read in kernel.reads:
                if read.producer not in numbers:
                    reads[read.array] = max(reads.get(read.array, 0), read.size)
            for write in kernel.writes:
                if not write.consumers <= numbers or not write.consumers:
                    writes[write.array] = max(writes.get(write.array, 0), write.size)
        yield times * sum(reads.values()), times * sum(writes.values())


def limited(row: Row, machine: MeasuredMachine | None) -> Row:
    """The row with the machine's limit: the longer of the times for its arithmetic and for its bytes."""
    if machine is None or row.flops is None or row.functions is None:
        return row
    limits: list[tuple[float, str]] = []
    peak = machine.peak(row.dtype, row.threads)
    if peak:
        limits.append(((row.flops + FUNCTION_FLOPS * row.functions) / peak, "compute"))
    if row.bytes_moved:
        level, rate = machine.bandwidth_for(row.bytes_moved // max(row.calls, 1), row.threads)
        if rate:
            limits.append((row.bytes_moved / rate, level))
    if not limits:
        return row
    seconds, bound = max(limits)
    return replace(row, limit_seconds=seconds, bound=bound) if seconds else row


def labels_of(members: Sequence[Kernel]) -> list[str]:
    """Labels of kernels by their computation; copies and fills are mentioned where there is nothing else."""
    working = [kernel.label for kernel in members if kernel.count != Count()]
    return working or [kernel.label for kernel in members]


def dtype_of_members(members: Sequence[Kernel]) -> str:
    """The element type of the kernel with the most arithmetic."""
    return max(members, key=lambda kernel: kernel.count.flops or 0).dtype if members else ""
