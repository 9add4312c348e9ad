"""Splice loads: neighbours in a row of a stencil are lanes of two adjacent vectors, so that each vector is loaded once.

Before:
    scf.for %i = %c0 to %c148 step %c1 {
      %left = memref.load %a[%i] : memref<150xf64>
      %i2 = arith.addi %i, %c2 : index
      %right = memref.load %a[%i2] : memref<150xf64>
      %sum = arith.addf %left, %right : f64
      memref.store %sum, %b[%i] : memref<148xf64>
    }
After:
    %first = vector.load %a[%c0] : memref<150xf64>, vector<8xf64>
    %start = vector.shuffle %first, %first [0, 0, 0, 0, 0, 0, 0, 1]
    scf.for %i = %c0 to %c144 step %c8 iter_args(%before = %start) -> (vector<8xf64>) {
      %i2 = arith.addi %i, %c2 : index
      %right = vector.load %a[%i2] : memref<150xf64>, vector<8xf64>
      %left = vector.shuffle %before, %right [6, 7, 8, 9, 10, 11, 12, 13]
      %sum = arith.addf %left, %right : vector<8xf64>
      vector.store %sum, %b[%i] : memref<148xf64>, vector<8xf64>
      scf.yield %right
    }
    // and the same for the vector from %c140 on, which overlaps with the last one

A vector of 64 bytes that does not start at a line takes the time of two loads, and of three neighbours two or three do
not; AVX-512 shifts two vectors by lanes in one instruction. This is predictive commoning of vectors (Eichenberger, Wu
and O'Brien, "Vectorization for SIMD architectures with alignment constraints", PLDI 2004). Where the loop loads nothing
that it stores, elements may be computed twice, so that rows that are no multiple of a vector have no scalar rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field

from mlirml.analysis.affine import Reader
from mlirml.analysis.constants import constant_of
from mlirml.analysis.memory import ELEMENT_VIEWS, are_apart, memory_of
from mlirml.codegen.cpu.elementwise.transpose import shuffle
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, named_operations, seen_through
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import every
from mlirml.pipelines.memref.lanes import Values, broadcast, on_lanes, value_of
from mlirml.targets.machine import Processor

_ACCESSES = ("memref.load", "memref.store")
_WIDTHS = (32, 64)


@register(when=every(("scf.for",), ("memref.load",)), optional=True)
class SpliceLoadsPass(Pass):
    """Vectorise innermost loops with loads of neighbours, each vector of which is loaded once; for AVX-512."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        if not self.processor.has_avx512:
            return
        for loop in named_operations(module, ("scf.for",)):
            if not any(op.regions for op in block_ops(loop.regions[0].blocks[0])):
                with suppress(NoMatch):
                    build(match(loop, self.processor))


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store: its indices, and the address of its element in elements of `buffer`; None if that is dynamic."""

    op: mlir.Operation
    buffer: mlir.Value
    indices: tuple[Linear, ...]
    address: Linear | None
    is_uniform: bool


@dataclass(eq=False)
class Row:
    """Loads at a constant distance of each other, by how many elements they are before the last one of them."""

    last: Access
    distances: dict[mlir.Operation, int] = field(default_factory=dict)

    @property
    def first(self) -> mlir.Operation:
        """The load that is the most elements before the last one."""
        return max(self.distances, key=lambda op: self.distances[op])

    @property
    def span(self) -> int:
        return self.distances[self.first]


@dataclass(frozen=True, eq=False)
class Stencil:
    """A loop of `count` iterations from `start` on, its accesses, and the loads that are spliced."""

    loop: mlir.Operation
    start: int
    count: int
    lanes: int
    accesses: dict[mlir.Operation, Access]
    rows: list[Row]
    is_in_place: bool

    @property
    def variable(self) -> mlir.Value:
        return self.loop.regions[0].blocks[0].arguments[0]


def match(loop: mlir.Operation, processor: Processor) -> Stencil:
    """Raises `NoMatch` for loops without neighbours, or with other operations than loads, arithmetic and stores."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
    if loop.results or lower is None or upper is None or step != 1:
        raise NoMatch("bounds that are not constant")
    variable = loop.regions[0].blocks[0].arguments[0]
    ops = block_ops(loop.regions[0].blocks[0])[:-1]
    check_operations(ops)
    reader = Reader(lambda _: True)
    accesses = {op: match_access(op, variable, reader) for op in ops if op.name in _ACCESSES}
    is_in_place = match_overlaps(accesses)
    widths = {mlir.MemRefType(memory_of(op).type).element_type.width for op in accesses}
    if len(widths) != 1 or not widths <= {*_WIDTHS}:
        raise NoMatch("elements of several widths")
    lanes = processor.lanes(widths.pop())
    rows = rows_of(accesses.values(), lanes)
    if not rows or upper - lower < lanes:
        raise NoMatch("no neighbours, or less than a vector")
    return Stencil(loop, lower, upper - lower, lanes, accesses, rows, is_in_place)


def check_operations(ops: Iterable[mlir.Operation]) -> None:
    """Raises `NoMatch` for anything but accesses, and arithmetic on indices or on elements."""
    for op in ops:
        if op.name in _ACCESSES:
            continue
        if not op.name.startswith("arith.") or len(op.results) != 1:
            raise NoMatch("more than arithmetic")
        of_index = [isinstance(value.type, mlir.IndexType) for value in op.operands]
        if any(of_index) and not isinstance(op.results[0].type, mlir.IndexType):
            raise NoMatch("an element of the index")


def match_access(op: mlir.Operation, variable: mlir.Value, reader: Reader) -> Access:
    """An access of one element for all iterations, or of adjacent ones."""
    memory = memory_of(op)
    kind = memory.type.element_type
    if not isinstance(kind, mlir.IntegerType | mlir.FloatType):
        raise NoMatch("elements that are no numbers")
    indices: list[Linear] = []
    for value in list(op.operands)[1 if op.name == "memref.load" else 2 :]:
        index = reader.read(value)
        if index is None or not all(is_index_from_outside(v, variable) for v in index.factors):
            raise NoMatch("an index that is not linear")
        indices.append(index)
    strides, offset = memory.type.get_strides_and_offset()
    factors = [index.factor(variable) for index in indices]
    is_uniform = not any(factors)
    if not is_uniform and (any(factors[:-1]) or factors[-1] != 1 or strides[-1] != 1):
        raise NoMatch("elements that are not adjacent")
    if op.name == "memref.store" and is_uniform:
        raise NoMatch("one element for all iterations")
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    address = None if dynamic in (offset, *strides) else Linear(offset)
    for index, stride in zip(indices, strides, strict=True):
        address = address + index * stride if address is not None else None
    return Access(op, seen_through(memory, ELEMENT_VIEWS), tuple(indices), address, is_uniform)


def is_index_from_outside(value: mlir.Value, variable: mlir.Value) -> bool:
    """True for the induction variable of a loop, and for indices that are not computed in it."""
    owner = value.owner
    block = owner if isinstance(owner, mlir.Block) else owner.operation.block
    return bool(value == variable or block != variable.owner) and isinstance(value.type, mlir.IndexType)


def match_overlaps(accesses: dict[mlir.Operation, Access]) -> bool:
    """True if an iteration loads what it stores; raises `NoMatch` where iterations may depend on each other."""
    is_in_place = False
    for store, stored in accesses.items():
        for op, other in accesses.items():
            if store.name != "memref.store" or op == store or are_apart(memory_of(store), memory_of(op)):
                continue
            is_same = other.buffer == stored.buffer and stored.address is not None and other.address == stored.address
            if op.name == "memref.store" or not is_same:
                raise NoMatch("a buffer that is accessed again")
            is_in_place = True
    return is_in_place


def rows_of(accesses: Iterable[Access], lanes: int) -> list[Row]:
    """The loads that are less than a vector before another one of their buffer."""
    groups: dict[tuple[mlir.Value, Linear], list[Access]] = {}
    for access in accesses:
        if access.op.name == "memref.load" and access.address is not None and not access.is_uniform:
            key = access.buffer, access.address - access.address.constant
            groups.setdefault(key, []).append(access)
    rows = []
    for group in groups.values():
        position = {access: access.address.constant for access in group if access.address is not None}
        ordered = sorted(group, key=lambda access: -position[access])
        while ordered:
            last = ordered[0]
            near = [access for access in ordered if position[last] - position[access] < lanes]
            row = Row(last, {access.op: position[last] - position[access] for access in near})
            if row.span:
                rows.append(row)
            ordered = ordered[len(near) :]
    return rows


def build(stencil: Stencil) -> None:
    """Replace a loop by one over vectors, and the vector that ends with the last element if there is a rest."""
    loop, lanes, start = stencil.loop, stencil.lanes, stencil.start
    whole = start + stencil.count // lanes * lanes
    with loop.location, mlir.InsertionPoint(loop):
        inits = [vector_before(stencil, row) for row in stencil.rows]
        lower, upper = emit.index(start), emit.index(whole)
        emit.for_loop(lower, upper, emit.index(lanes), lambda i, before: one_vector(stencil, i, before), inits)
        if stencil.count % lanes and stencil.is_in_place:
            clone_with(loop, {}).operands[0] = upper
        elif stencil.count % lanes:
            one_vector(stencil, emit.index(start + stencil.count - lanes), None)
    loop.erase()


def vector_before(stencil: Stencil, row: Row) -> mlir.Value:
    """The vector before the first one of a row, whose last lanes are the elements that the first iteration needs."""
    lanes, span = stencil.lanes, row.span
    first = loaded(stencil, stencil.accesses[row.first], emit.index(stencil.start))
    return shuffle(first, first, [max(0, lane - (lanes - span)) for lane in range(lanes)])


def one_vector(stencil: Stencil, i: mlir.Value, before: list[mlir.Value] | None) -> list[mlir.Value]:
    """The iterations of one vector; `before` has the vectors before it of each row, which is else loaded as it is."""
    environment: Values = {}
    found = []
    for row, vector in zip(stencil.rows, before or (), strict=False):
        last = loaded(stencil, row.last, i)
        found.append(last)
        for op, distance in row.distances.items():
            lanes = range(stencil.lanes - distance, 2 * stencil.lanes - distance)
            environment[op.results[0]] = shuffle(vector, last, lanes) if distance else last
    for op in block_ops(stencil.loop.regions[0].blocks[0])[:-1]:
        if op.name == "memref.store":
            stored(stencil, stencil.accesses[op], i, environment)
        elif op.name == "memref.load":
            if op.results[0] not in environment:
                environment[op.results[0]] = loaded(stencil, stencil.accesses[op], i)
        elif not isinstance(op.results[0].type, mlir.IndexType):
            environment[op.results[0]] = on_lanes(op, stencil.lanes, environment)
    return found


def loaded(stencil: Stencil, access: Access, i: mlir.Value) -> mlir.Value:
    """The elements of a load from iteration `i` on, or the one of all iterations."""
    operands = [memory_of(access.op), *(value_of(index, {stencil.variable: i}) for index in access.indices)]
    kind = access.op.results[0].type
    if access.is_uniform:
        return emit.value("memref.load", operands, kind)
    return emit.value("vector.load", operands, mlir.VectorType.get([stencil.lanes], kind))


def stored(stencil: Stencil, access: Access, i: mlir.Value, environment: Values) -> None:
    """Store the elements from iteration `i` on."""
    value = environment.get(access.op.operands[0], access.op.operands[0])
    indices = [value_of(index, {stencil.variable: i}) for index in access.indices]
    emit.create("vector.store", [broadcast(value, stencil.lanes), memory_of(access.op), *indices])
