"""Match a time loop: stencils over the rows of buffers, and the scalars that they use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from mlirml.analysis.constants import constant_of
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.memory import VIEWS, buffer_of, is_known, written_by
from mlirml.analysis.trip_counts import trip_count
from mlirml.codegen.cpu.elementwise.loops import SHORT, ordered, outer_order, stride_penalty
from mlirml.codegen.cpu.nest import Access, Body, Nest, match_nest, read_body
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import NoMatch

_SWEEPS = ("linalg.generic", "linalg.fill")
_PURE = ("arith.", "math.")


@dataclass(frozen=True)
class Span:
    """The rows `least` to `most` of a buffer, relative to the current row, that a stencil accesses."""

    least: int
    most: int

    def with_row(self, row: int) -> Span:
        return Span(min(self.least, row), max(self.most, row))


@dataclass(frozen=True)
class Stencil:
    """An operation on the rows `first` to `last - 1` of its first init, with independent rows.

    Its `nest` has the loop over the rows outermost, or no such loop if it works on one row. `reads` and `writes` are
    the spans of the buffers that the time loop stores to.
    """

    op: mlir.Operation
    body: Body
    nest: Nest
    first: int
    last: int
    reads: dict[mlir.Value, Span]
    writes: dict[mlir.Value, Span]
    with_rows: bool


@dataclass(frozen=True)
class TimeLoop:
    """An `scf.for` whose body consists of stencils.

    `scalars` are recomputed in each iteration; `cells` are buffers of one element, which are replaced by the value
    stored to them, and views of one element, which are replaced by a load. `outside` is hoisted before the loop.
    """

    loop: mlir.Operation
    stencils: tuple[Stencil, ...] = ()
    scalars: tuple[mlir.Operation, ...] = ()
    cells: dict[mlir.Value, mlir.Value] = field(default_factory=dict)
    outside: tuple[mlir.Operation, ...] = ()

    @property
    def buffers(self) -> list[mlir.Value]:
        """The arrays with rows that the stencils access."""
        found = {
            buffer_of(access.operand): None
            for stencil in self.stencils
            for access in stencil.nest.memory
            if access.strides
        }
        return [buffer for buffer in found if buffer.type.has_static_shape]


def match_time_loop(loop: mlir.Operation) -> TimeLoop:
    """Match a loop that carries only memory; raises NoMatch if it has other operations than stencils."""
    if loop.results:
        raise NoMatch("it carries values")
    if has_few_rounds(loop):
        raise NoMatch("it has few iterations")
    block = loop.regions[0].blocks[0]
    found = [op for op in block_ops(block)[:-1] if op.name in _SWEEPS]
    if not found:
        raise NoMatch("no stencils")
    written = {buffer_of(out) for op in found for out in written_by(op)}
    scalars: list[mlir.Operation] = []
    outside: list[mlir.Operation] = []
    cells: dict[mlir.Value, mlir.Value] = {}
    for op in block_ops(block)[:-1]:
        if op.name == "memref.store" and is_cell(op, found):
            cells[op.operands[1]] = op.operands[0]
        elif op.name == "memref.subview" and is_element(op, found, written):
            cells[op.results[0]] = op.results[0]
            scalars.append(op)
        elif op.name == "memref.alloc" or op.name in (*VIEWS, "memref.get_global"):
            if any(is_inside(operand, block, outside) for operand in op.operands):
                raise NoMatch("a view moves with time")
            outside.append(op)
        elif is_scalar(op, written, cells):
            scalars.append(op)
        elif op not in found:
            raise NoMatch(f"`{op.name}` is in it")
    stencils = tuple(match_stencil(op, written, cells) for op in found)
    return TimeLoop(loop, stencils, tuple(scalars), cells, tuple(outside))


def has_few_rounds(loop: mlir.Operation) -> bool:
    """True if the trip count is less than 3, as in the remainder of an unrolled loop: n - n % 2 to n, or min(n, 1)."""
    count = trip_count(loop)
    if count is not None:
        return count < 3
    lower, upper = (defining_op(value) for value in list(loop.operands)[:2])
    if upper is not None and upper.name == "arith.minsi" and constant_of(loop.operands[0]) == 0:
        return any((constant_of(value) or 9) < 3 for value in upper.operands)
    if lower is None or lower.name != "arith.subi":
        return False
    rest = defining_op(lower.operands[1])
    return rest is not None and rest.name == "arith.remsi" and (constant_of(rest.operands[1]) or 9) <= 3


def is_inside(value: mlir.Value, block: mlir.Block, outside: Sequence[mlir.Operation]) -> bool:
    """True if a value is defined in a loop body, by none of the operations that are hoisted before it."""
    op = defining_op(value)
    if op is None:
        return bool(value.owner == block)
    return op.block == block and op not in outside and constant_of(value) is None


def is_cell(store: mlir.Operation, stencils: Sequence[mlir.Operation]) -> bool:
    """True if a store fills a buffer of one element, allocated in the same iteration, that only later stencils read."""
    cell = store.operands[1]
    maker = defining_op(cell)
    if maker is None or maker.name != "memref.alloc" or maker.block != store.block or cell.type.rank:
        return False
    for use in cell.uses:
        user = use.owner.operation
        if user == store:
            continue
        if user not in stencils or not store.is_before_in_block(user) or cell in written_by(user):
            return False
    return True


def is_scalar(op: mlir.Operation, written: set[mlir.Value], cells: dict[mlir.Value, mlir.Value]) -> bool:
    """True if an operation computes a scalar that does not depend on stores of the loop."""
    if op.name == "memref.load":
        return op.operands[0] not in cells and is_constant(op.operands[0], written)
    return op.name.startswith(_PURE) and not op.regions


def is_constant(memory: mlir.Value, written: set[mlir.Value]) -> bool:
    """True if the loop does not store to a buffer or view."""
    buffer = buffer_of(memory)
    return is_known(buffer) and buffer not in written


def is_element(view: mlir.Operation, stencils: Sequence[mlir.Operation], written: set[mlir.Value]) -> bool:
    """True if a view is one element of a buffer that the loop does not store to, and only stencils read it."""
    element = view.results[0]
    return (
        not element.type.rank
        and is_constant(element, written)
        and all(use.owner.operation in stencils for use in element.uses)
    )


def match_stencil(op: mlir.Operation, written: set[mlir.Value], cells: dict[mlir.Value, mlir.Value]) -> Stencil:
    """Match one operation; `written` are the buffers that the loop stores to."""
    body = read_body(op)
    for inner in body.ops:
        if any(o.name == "memref.load" and not is_constant(o.operands[0], written) for o in operations(inner)):
            raise NoMatch("a body loads elements of what is stored")
    nest = match_nest(op, body)
    nest = replace(nest, accesses=tuple(None if a and a.operand in cells else a for a in nest.accesses))
    if any(nest.reduction) or min(nest.sizes, default=1) < 1:
        raise NoMatch("a reduction, or nothing to do")
    nest = nest.without_unit_dims()
    rows = [d for d in range(nest.rank) if nest.out(0).strides[d] == row_size(nest.out(0))]
    if len(rows) > 1 or not nest.num_outputs:
        raise NoMatch("the rows are not one loop")
    if rows:
        nest, size = rows_outermost(nest, rows[0]), nest.sizes[rows[0]]
    else:
        nest, size = ordered(nest), 1
    first = row_of(nest.out(0), nest, bool(rows))
    reads: dict[mlir.Value, Span] = {}
    writes: dict[mlir.Value, Span] = {}
    for number, access in enumerate(nest.accesses):
        if access is None:
            continue
        buffer = buffer_of(access.operand)
        if not is_known(buffer):
            raise NoMatch("a buffer may be another one")
        if buffer not in written:
            continue
        row = row_of(access, nest, bool(rows)) - first
        spans = [reads] if number < len(nest.accesses) - nest.num_outputs else [reads, writes]
        for span in spans:
            span[buffer] = span[buffer].with_row(row) if buffer in span else Span(row, row)
    return Stencil(op, body, nest, first, first + size, reads, writes, bool(rows))


def rows_outermost(nest: Nest, row: int) -> Nest:
    """The nest with the loop over rows outermost, and the other loops ordered by stride."""
    others = [d for d in range(nest.rank) if d != row]
    if others:
        inner = min(others, key=lambda d: (stride_penalty(nest, d), nest.sizes[d] < SHORT, -d))
        others = [*outer_order(nest, [d for d in others if d != inner]), inner]
    return nest.permuted([row, *others]).collapsed(first=1)


def row_size(access: Access) -> int:
    """The number of elements of a row of the buffer that is accessed."""
    memref_type = mlir.MemRefType(buffer_of(access.operand).type)
    if not memref_type.has_static_shape or not isinstance(memref_type.layout, mlir.AffineMapAttr):
        raise NoMatch("a buffer whose rows are not known")
    return math.prod(memref_type.shape[1:])


def row_of(access: Access, nest: Nest, with_rows: bool) -> int:
    """The row of its buffer at which an access starts; raises NoMatch if it accesses other rows in an iteration."""
    _, start = access.operand.type.get_strides_and_offset()
    if start == mlir.ShapedType.get_dynamic_stride_or_offset() or start < 0:
        raise NoMatch("a dynamic offset")
    size = row_size(access)
    row, column = divmod(int(start) + access.offset, size)
    strides, sizes = access.strides, nest.sizes
    if with_rows:
        if strides[0] != size:
            raise NoMatch("it does not iterate over the rows")
        strides, sizes = strides[1:], sizes[1:]
    steps = [(count - 1) * stride for count, stride in zip(sizes, strides, strict=True)]
    if column + sum(s for s in steps if s < 0) < 0 or column + sum(s for s in steps if s > 0) >= size:
        raise NoMatch("it reaches into other rows")
    return row


def row_bytes(buffers: Sequence[mlir.Value]) -> Iterator[int]:
    """The size in bytes of a row of each buffer."""
    for buffer in buffers:
        memref_type = mlir.MemRefType(buffer.type)
        yield math.prod(memref_type.shape[1:]) * element_bytes(memref_type.element_type)
