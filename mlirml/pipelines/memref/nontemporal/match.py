"""Match results that loops write row by row and that are not read later."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mlirml.analysis.affine import flat_index
from mlirml.analysis.constants import constant_of
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.analysis.trip_counts import trip_count
from mlirml.codegen.cpu.cost import vector_ns
from mlirml.codegen.cpu.nest import is_contiguous
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.passes import NoMatch
from mlirml.pipelines.memref.prove_parallel import root_of

LINE_BYTES = 64
ROW_BYTES = 64 << 10
"""The maximum size of a row that is staged as a whole, if several loops or a reduction access it."""
SHORTEST_ROW_BYTES = 1024
"""Shorter rows share too many of their lines with other rows, and do not repay the second loop."""

_BYTE_NS = 0.1
"""Nanoseconds per byte between memory and one core."""

_VIEWS = ("memref.collapse_shape", "memref.expand_shape")


@dataclass(frozen=True)
class Stream:
    """A row of an array: `accesses` are its loads and stores, in the inner loops `loops` over `size` elements.

    Element i of the row is element `start` + i of the array.
    """

    array: mlir.Value
    accesses: tuple[mlir.Operation, ...]
    loops: tuple[mlir.Operation, ...]
    size: int
    start: Linear

    @property
    def bytes(self) -> int:
        return self.size * element_bytes(self.array.type.element_type)


def match_stream(array: mlir.Value, least_bytes: int) -> Stream:
    """The rows of an argument of @main; raises NoMatch if it is read elsewhere, small, or not written once in order."""
    kind = array.type
    if not kind.has_static_shape or not is_contiguous(kind) or kind.memory_space is not None:
        raise NoMatch("its elements do not follow each other")
    size = element_bytes(kind.element_type)
    if str(kind.element_type) not in ("f32", "f64", "i32", "i64"):
        raise NoMatch(f"elements of type {kind.element_type} are not stored by themselves")
    if math.prod(kind.shape) * size < least_bytes:
        raise NoMatch("it is small")
    accesses = list(accesses_of(array))
    loops = inner_loops(accesses)
    count = rows_of(loops)
    start = common_start(accesses, loops)
    stream = Stream(array, tuple(accesses), tuple(loops), count, start)
    if count * size < SHORTEST_ROW_BYTES:
        raise NoMatch("its rows are short")
    if count * size > ROW_BYTES and (len(loops) > 1 or not can_be_tiled(loops[0])):
        raise NoMatch("its rows are long, and several loops or a reduction walk over them")
    if computing_ns(loops) * len(loops) > moving_ns(loops):
        # The loops over a row alternate: computation of one does not hide the memory traffic of another.
        raise NoMatch("computing it takes longer than moving it")
    if bytes_written(stream) < least_bytes:
        raise NoMatch("only a small part of it is written")
    check_order(stream)
    return stream


def accesses_of(array: mlir.Value) -> Iterator[mlir.Operation]:
    """The loads and stores of an array."""
    for use in array.uses:
        user = use.owner.operation
        if user.name in _VIEWS and is_contiguous(user.results[0].type):
            yield from accesses_of(user.results[0])
        elif user.name == "memref.load" or (user.name == "memref.store" and use.operand_number == 1):
            yield user
        else:
            raise NoMatch(f"`{user.name}` uses it")


def inner_loops(accesses: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """The innermost loops of the accesses, in program order; they must be in one block."""
    found: list[mlir.Operation] = []
    for access in accesses:
        loop = access.block.owner.operation
        if loop.name not in COUNTED_LOOPS:
            raise NoMatch("it is written outside of loops or under a condition")
        if loop not in found:
            found.append(loop)
    if not found:
        raise NoMatch("nothing is written")
    ordered = [op for op in block_ops(found[0].block) if op.name in COUNTED_LOOPS and op in found]
    if len(ordered) != len(found):
        raise NoMatch("it is used in several blocks")
    if len(found) > 1 and any(loop.name == "scf.parallel" for loop in found):
        raise NoMatch("several parallel loops use it")
    return ordered


def rows_of(loops: Sequence[mlir.Operation]) -> int:
    """The common trip count of the inner loops, which start at 0 and have step 1."""
    counts = set()
    for loop in loops:
        lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
        if len(loop.regions[0].blocks[0].arguments) < 1 or lower != 0 or upper is None or step != 1:
            raise NoMatch("a loop does not run from 0 to a known number")
        counts.add(upper)
    if len(counts) > 1:
        raise NoMatch("the loops over a row differ in length")
    return counts.pop()


def can_be_tiled(loop: mlir.Operation) -> bool:
    """True if a loop can be tiled: it carries no values, and does not depend on its bounds."""
    return not loop.results and not any("mlirml.span" in op.attributes for op in operations(loop))


def common_start(accesses: Sequence[mlir.Operation], loops: Sequence[mlir.Operation]) -> Linear:
    """The first element of a row, which must be the same for all accesses, and defined before the loops."""
    starts = []
    for access in accesses:
        variable = access.block.arguments[0]
        element = element_of(access)
        if element.factor(variable) != 1:
            raise NoMatch("rows are not dense")
        starts.append(element.without(variable))
    if any(start != starts[0] for start in starts):
        raise NoMatch("the accesses are at different elements")
    return starts[0]


def element_of(access: mlir.Operation) -> Linear:
    """The element that a load or store accesses."""
    first = 1 if access.name == "memref.load" else 2
    array, *indices = list(access.operands)[first - 1 :]
    return flat_index(indices, array.type.shape)


def loops_around(loop: mlir.Operation) -> list[mlir.Operation]:
    """The loops around one, innermost first, up to @main."""
    found = []
    around = loop.parent.operation
    while around.name != "func.func":
        if around.name not in COUNTED_LOOPS:
            raise NoMatch(f"it is written inside of `{around.name}`")
        found.append(around)
        around = around.parent.operation
    return found


def computing_ns(loops: Sequence[mlir.Operation]) -> float:
    """Estimate of the nanoseconds to compute an element."""
    return sum(vector_ns(op) for loop in loops for op in block_ops(loop.regions[0].blocks[0]))


def moving_ns(loops: Sequence[mlir.Operation]) -> float:
    """Estimate of the nanoseconds of memory traffic for an element, of the arrays that all loops index."""
    arrays: dict[mlir.Value, int] = {}
    for loop in loops:
        variable = loop.regions[0].blocks[0].arguments[0]
        around = [op.regions[0].blocks[0].arguments[0] for op in loops_around(loop)]
        for op in block_ops(loop.regions[0].blocks[0]):
            if op.name not in ("memref.load", "memref.store"):
                continue
            element = element_of(op)
            if element.factor(variable) and all(element.factor(outer) for outer in around):
                array = op.operands[op.name == "memref.store"]
                arrays[root_of(array)] = element_bytes(array.type.element_type)
    return sum(arrays.values()) * _BYTE_NS


def bytes_written(stream: Stream) -> int:
    """The size of all rows in bytes; raises NoMatch if an element might be written twice."""
    loops: list[tuple[int, int]] = []
    rest = stream.start
    for loop in loops_around(stream.loops[0]):
        count, step = trip_count(loop), constant_of(loop.operands[2])
        variable = loop.regions[0].blocks[0].arguments[0]
        if count is None or step is None:
            raise NoMatch("a loop around the rows has bounds that are not known")
        if count > 1:
            loops.append((rest.factor(variable) * step, count))
        rest = rest.without(variable)
    if not rest.is_constant:
        raise NoMatch("the offsets of the rows are not affine in the loops")
    extent, elements = stream.size, stream.size
    for distance, count in sorted(loops):
        if distance < extent:
            raise NoMatch("rows overlap, or are written several times")
        extent += distance * (count - 1)
        elements *= count
    return elements * element_bytes(stream.array.type.element_type)


def check_order(stream: Stream) -> None:
    """Raise NoMatch unless the first loop over a row writes all of it before it is read."""
    first = [op for op in block_ops(stream.loops[0].regions[0].blocks[0]) if op in stream.accesses]
    if first[0].name != "memref.store":
        raise NoMatch("it is read first")
