"""The kernels of a program before they are lowered: their work, their lines, and how often they are executed.

Each structured operation and loop nest of @main becomes a kernel with a number, which is marked on its location. What
passes make of it has the mark, too. Loops and branches with kernels that are worth a clock belong to the host: their
kernels are executed as often as they iterate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mlirml.analysis.structured import is_contraction
from mlirml.analysis.traits import CONTROL, SEQUENTIAL_LOOPS, TENSOR_STARTS, TENSOR_VIEWS
from mlirml.analysis.work import FUNCTION_FLOPS, Count, Work, trips_of, work_of
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import SORTS
from mlirml.errors import SourceLocation
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, main_function, mlir, operations
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import marked, marks_of, source_locations
from mlirml.pipelines.llvm.time_kernels import BEGINS, ENDS, HOST, KERNEL, call_clock, declare_clock, is_host_control

_LIBRARY = (*SORTS, *LIBRARY_CALLS, *COMPACTIONS)
_LEAST_WORK = 15_000
"""Flops and bytes of a kernel, about a microsecond, below which the clocks would take a part of the time.

A loop whose kernels are smaller than that, on average, is one kernel.
"""
_OUTSIDE = -1
"""The consumer of what is used by no kernel, such as a result of the program."""


@dataclass(frozen=True)
class Read:
    """Bytes of an array that a kernel reads; `producer` is the kernel that writes it, -1 if it is none."""

    array: int
    size: int
    producer: int


@dataclass(frozen=True)
class Write:
    """Bytes of an array that a kernel writes, and the kernels that use it, -1 for others."""

    array: int
    size: int
    consumers: frozenset[int]


@dataclass
class Kernel:
    """A kernel: its work for one execution, and the block of the host that executes it.

    `block` is None for what bufferization makes: how often that is executed, its clock tells.
    """

    number: int
    label: str
    block: int | None
    locations: list[SourceLocation]
    count: Count = Count()
    dtype: str = ""
    is_contraction: bool = False
    reads: list[Read] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    used_by: tuple[int, ...] = ()


@dataclass
class Block:
    """A block of host code: @main's, or one of a loop or branch. `executions` is None where it depends on values."""

    op: mlir.Operation | None
    region: int
    executions: int | None


@dataclass
class Kernels:
    """All kernels of a program, and its blocks of host code."""

    kernels: list[Kernel] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def are_counted(self) -> bool:
        """True if it is known how often each block with kernels is executed."""
        return all(kernel.block is None or self.blocks[kernel.block].executions is not None for kernel in self.kernels)


def find_kernels(module: mlir.Operation) -> Kernels:
    """The kernels of a module on tensors, which are marked."""
    found = Kernels()
    works: list[tuple[mlir.Operation, Work]] = []
    block = main_function(module).regions[0].blocks[0]
    found.blocks.append(Block(None, 0, 1))
    _find(found, works, block, 0)
    _connect(found.kernels, works)
    return found


def find_later_kernels(module: mlir.Operation, found: Kernels) -> None:
    """Add the kernels that bufferization makes, copies and fills, which have no marks yet."""
    works: list[tuple[mlir.Operation, Work]] = []
    first = len(found.kernels)
    main = main_function(module)
    for block in main.regions[0].blocks:
        _find_unmarked(found, works, block)
    array = _next_array(found)
    for kernel, (_, work) in zip(found.kernels[first:], works, strict=True):
        kernel.reads = [Read(array + i, size, _OUTSIDE) for i, size in enumerate(work.reads.values())]
        array += len(kernel.reads)
        kernel.writes = [Write(array + i, s, frozenset([_OUTSIDE])) for i, s in enumerate(work.writes.values())]
        array += len(kernel.writes)


def count_blocks(module: mlir.Operation, found: Kernels) -> None:
    """Let a module count the executions of the blocks of the host: each calls the clock with its number."""
    i64 = mlir.IntegerType.get_signless(64, context=module.context)
    with module.context, module.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        declare_clock(BEGINS)
        declare_clock(ENDS)
    for number, block in enumerate(found.blocks):
        if block.op is not None:
            with block.op.location, mlir.InsertionPoint.at_block_begin(block.op.regions[block.region].blocks[0]):
                count = emit.number(i64, number)
                call_clock(BEGINS, count)
                call_clock(ENDS, count)


def _find(found: Kernels, works: list[tuple[mlir.Operation, Work]], block: mlir.Block, number: int) -> None:
    for op in block_ops(block):
        if _is_host(op):
            op.location = marked(op.location, HOST, len(found.blocks))
            for region, inner in _blocks_of(op):
                here = len(found.blocks)
                found.blocks.append(Block(op, region, _executions(op, found.blocks[number].executions)))
                _find(found, works, inner, here)
        elif _is_kernel(op):
            works.append((op, _add_kernel(found, op, number)))


def _find_unmarked(found: Kernels, works: list[tuple[mlir.Operation, Work]], block: mlir.Block) -> None:
    for op in block_ops(block):
        if is_host_control(op):
            for _, inner in _blocks_of(op):
                _find_unmarked(found, works, inner)
        elif op.name == "memref.copy" or op.name in _LIBRARY or op.name.startswith("linalg."):
            is_marked = any(marks_of(inner.location, KERNEL) for inner in operations(op))
            works += [] if is_marked else [(op, _add_kernel(found, op, None))]


def _add_kernel(found: Kernels, op: mlir.Operation, block: int | None) -> Work:
    """Add a kernel and mark its location; its arrays are those of the returned work."""
    work = work_of(op)
    number = len(found.kernels)
    sums_products = op.name.startswith("linalg.") and is_contraction(op)
    lines = source_locations(op.location)
    found.kernels.append(Kernel(number, label_of(op), block, lines, work.count, work.dtype, sums_products))
    op.location = marked(op.location, KERNEL, number)
    return work


def label_of(op: mlir.Operation) -> str:
    """A word for what a kernel is: `matmul`, `elementwise`, `reduction`, `loop`, `sort`."""
    dialect, _, name = str(op.name).partition(".")
    if dialect == "linalg":
        if name != "generic":
            return name
        if len(block_ops(op.regions[0].blocks[0])) == 1:  # a yield
            return "copy"
        return "reduction" if "reduction" in str(op.attributes["iterator_types"]) else "elementwise"
    return {"scf": "loop", "memref": "copy"}.get(dialect, name.replace("_", " "))


def _is_kernel(op: mlir.Operation) -> bool:
    if op.name in TENSOR_STARTS:
        return False
    if op.name.startswith("linalg.") or op.name in _LIBRARY:
        return True
    return op.name in CONTROL and any(
        inner.name in SEQUENTIAL_LOOPS or inner.name.startswith("linalg.") for inner in operations(op)
    )


def _is_host(op: mlir.Operation) -> bool:
    """True for a loop or branch with kernels that take much longer than a look at the clock."""
    if op.name not in CONTROL:
        return False
    weighed = [_weight(block) for _, block in _blocks_of(op)]
    return any(number and work >= _LEAST_WORK * number for work, number in weighed)


def _weight(block: mlir.Block) -> tuple[float, int]:
    """About how much work the kernels of a block do in one execution of it, and their number; inner loops in full."""
    total, number = 0.0, 0
    for op in block_ops(block):
        if op.name in CONTROL:
            trips = (trips_of(op) if op.name == "scf.for" else None) or 1
            work, kernels = max((_weight(inner) for _, inner in _blocks_of(op)), default=(0.0, 0))
            total, number = total + trips * work, number + trips * kernels
        elif _is_kernel(op):
            found = work_of(op)
            flops = (found.count.flops or 0) + FUNCTION_FLOPS * (found.count.functions or 0)
            total += flops + sum(found.reads.values()) + sum(found.writes.values())
            number += 1
    return total, number


def _blocks_of(op: mlir.Operation) -> Iterator[tuple[int, mlir.Block]]:
    for number, region in enumerate(op.regions):
        for block in region.blocks:
            yield number, block


def _executions(op: mlir.Operation, outer: int | None) -> int | None:
    """The number of executions of a block of an operation, in a block that is executed `outer` times."""
    trips = trips_of(op) if op.name == "scf.for" else None
    return None if trips is None or outer is None else trips * outer


def _connect(kernels: list[Kernel], works: list[tuple[mlir.Operation, Work]]) -> None:
    """Fill in which kernel reads what another writes."""
    producers: dict[mlir.Value, int] = {}
    arrays: dict[mlir.Value, int] = {}
    for kernel, (op, _) in zip(kernels, works, strict=True):
        producers.update((result, kernel.number) for result in op.results)
    for kernel, (op, work) in zip(kernels, works, strict=True):
        number = arrays.setdefault
        kernel.reads = [
            Read(number(value, len(arrays)), size, producers.get(value, _OUTSIDE)) for value, size in work.reads.items()
        ]
        kernel.writes = [
            Write(number(value, len(arrays)), size, frozenset(_consumers(value))) for value, size in work.writes.items()
        ]
        kernel.used_by = tuple(sorted({n for result in op.results for n in _consumers(result)} - {_OUTSIDE}))


def _consumers(value: mlir.Value) -> Iterator[int]:
    """The kernels that use a value, also by views of it; -1 for other uses."""
    for use in value.uses:
        op = use.owner.operation
        if op.name in TENSOR_VIEWS:
            yield from _consumers(op.results[0])
            continue
        marks: list[int] = []
        while op is not None and not marks:
            marks = marks_of(op.location, KERNEL)
            op = op.parent.operation if op.parent is not None else None
        yield from marks or [_OUTSIDE]


def _next_array(found: Kernels) -> int:
    arrays = [read.array for kernel in found.kernels for read in kernel.reads]
    arrays += [write.array for kernel in found.kernels for write in kernel.writes]
    return 1 + max(arrays, default=-1)
