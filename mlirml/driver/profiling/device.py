"""Kernels of a device: each launch is waited for and timed, and has the work of the dispatch that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirml.analysis.work import Count
from mlirml.core.dataclass import dataclass
from mlirml.core.processes import native_code
from mlirml.dialects.mlirml import KERNEL
from mlirml.driver.compilation import parsed
from mlirml.driver.profiling.kernels import Kernel, find_kernels
from mlirml.driver.profiling.profile import Row
from mlirml.driver.profiling.rows import bytes_of, dtype_of_members, labels_of
from mlirml.driver.profiling.text import line_texts, named
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.ir.location import marks_of
from mlirml.passes import Pipeline
from mlirml.pipelines.llvm.time_kernels import HOST
from mlirml.pipelines.llvm.time_kernels import KERNEL as MARK

if TYPE_CHECKING:
    from mlirml.frontend.captured import Captured
    from mlirml.targets.target import Target


@dataclass(frozen=True)
class Dispatch:
    """A function that kernels of a device compute: its name, and the operations in it, whose work is known or not."""

    name: str
    kernels: tuple[Kernel, ...]
    is_counted: bool


def dispatches(target: Target, captured: Captured) -> list[Dispatch]:
    """The dispatches of a program. The caller holds the compiler lock."""
    return _dispatches(target, parsed(captured))


@native_code()
def _dispatches(target: Target, module: mlir.Module) -> list[Dispatch]:
    names = [stage.name for stage in target.pipeline.stages]
    stages = target.pipeline.stages[: names.index("offload") + 1]
    Pipeline(stages[:-1]).run(module)
    kernels = find_kernels(module.operation).kernels
    Pipeline(stages[-1:]).run(module)
    return [
        _dispatch(function, kernels)
        for function in block_ops(module.operation.regions[0].blocks[0])
        if function.name == "func.func" and KERNEL in function.attributes
    ]


def _dispatch(function: mlir.Operation, kernels: Sequence[Kernel]) -> Dispatch:
    """The dispatch of a function; one with a loop of kernels in it is not counted."""
    found: set[int] = set()
    is_counted = True
    for op in operations(function):
        found.update(marks_of(op.location, MARK))
        is_counted = is_counted and not (len(op.regions) and marks_of(op.location, HOST))
    name = str(mlir.StringAttr(function.attributes["sym_name"]).value)
    return Dispatch(name, tuple(kernels[number] for number in sorted(found)), is_counted)


def rows_of(
    found: Sequence[Dispatch], table: Sequence[str], lines: Sequence[str], measured: Sequence[tuple[int, int]]
) -> tuple[list[Row], dict[int, int]]:
    """The rows of the kernels of a table, those of one dispatch together, and the index of the row of each.

    `lines` are theirs, `measured` their launches and nanoseconds.
    """
    owners = [_owner(name, found) for name in table]
    groups: dict[str, list[int]] = {}
    for number, name in enumerate(table):
        if measured[number][0]:
            owner = owners[number]
            groups.setdefault(owner.name if owner is not None else name, []).append(number)
    rows: list[Row] = []
    positions: dict[int, int] = {}
    for numbers in groups.values():
        positions.update(dict.fromkeys(numbers, len(rows)))
        rows.append(_row(owners[numbers[0]], numbers, table, lines, measured))
    return rows, positions


def _owner(kernel: str, found: Sequence[Dispatch]) -> Dispatch | None:
    """The dispatch of a kernel, whose name begins with that of the dispatch."""
    fitting = [each for each in found if kernel == each.name or kernel.startswith(f"{each.name}_")]
    return max(fitting, key=lambda each: len(each.name), default=None)


def _row(
    owner: Dispatch | None, numbers: Sequence[int], table: Sequence[str], lines: Sequence[str],
    measured: Sequence[tuple[int, int]],
) -> Row:  # fmt: skip
    # Each call of a dispatch launches all its kernels, some of them more than once.
    calls = min(measured[number][0] for number in numbers)
    members = owner.kernels if owner is not None else ()
    is_counted = owner is not None and owner.is_counted and bool(members)
    count = sum((kernel.count for kernel in members), Count()).times(calls) if is_counted else Count(None, None)
    locations = [place for kernel in members for place in kernel.locations]
    own = tuple(dict.fromkeys(lines[number] for number in numbers if lines[number]))
    return Row(
        name=named(labels_of(members)) or table[numbers[0]],
        lines=line_texts(locations) or own,
        calls=calls,
        timings=sum(measured[number][0] for number in numbers),
        seconds=1e-9 * sum(measured[number][1] for number in numbers),
        flops=count.flops,
        functions=count.functions,
        bytes_moved=bytes_of(members, {kernel.number: calls for kernel in members}) if is_counted else None,
        dtype=dtype_of_members(members),
        threads=1,
    )
