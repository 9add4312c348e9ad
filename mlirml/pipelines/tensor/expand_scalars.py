"""Expand scalars: the computations of a serial loop that do not depend on loop-carried values go into vectorised loops.

Before, where %s is carried from one iteration to the next:
    %r = scf.for %i = %c0 to %c2048 step %c1 iter_args(%s = %s0) -> (f64) {
      %a = tensor.extract %x[%i] : tensor<2048xf64>
      %e = math.exp %a : f64
      %p = arith.mulf %s, %decay : f64
      %t = arith.addf %p, %e : f64
      scf.yield %t : f64
    }
After:
    %r = scf.for %c = %c0 to %c2048 step %c512 iter_args(%s1 = %s0) -> (f64) {
      %slice = tensor.extract_slice %x[%c] [512] [1] : tensor<2048xf64> to tensor<512xf64>
      %table = linalg.generic ... ins(%slice) { math.exp } -> tensor<512xf64>
      %q = scf.for %k = %c0 to %c512 step %c1 iter_args(%s = %s1) -> (f64) {
        %e = tensor.extract %table[%k] : tensor<512xf64>
        %p = arith.mulf %s, %decay : f64
        %t = arith.addf %p, %e : f64
        scf.yield %t : f64
      }
      scf.yield %q : f64
    }

This is loop distribution with scalar expansion, in strips that stay in the first-level cache (Padua and Wolfe, Advanced
compiler optimizations for supercomputers, CACM 29, 1986). The iterations after the last whole strip are unchanged.
Computations that are invariant in the enclosing loop are hoisted out of it, for all iterations of the inner loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.cost import instructions
from mlirml.analysis.traits import INDEX_CASTS, LOOPS
from mlirml.analysis.values import captured_values, is_within, used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST

_LANES = 8
_LEAST_IN_TABLE = 3
_LEAST_IN_STRIP = 8
"""The least number of instructions that a table saves for a value. In strips the store and the load of an element are
close together, and tables of indices do not pay, as their addresses would conflict with those of other stores."""


@register(when=LOOP_OR_REQUEST, optional=True)
class ExpandScalarsPass(Pass):
    """Compute values that depend on no earlier iteration in strips of `strip` iterations.

    Loops of less than `shortest` iterations are unchanged. Tables for all iterations of the enclosing loop have at most
    `longest` elements. With `always` tables are used even if they do not pay.
    """

    strip: int = 512
    shortest: int = 64
    longest: int = 1 << 14
    always: bool = False

    def run(self, module: mlir.Operation) -> None:
        for loop in reversed(named_operations(module, ("scf.for",))):  # inner loops first: outer ones are cloned
            with suppress(NoMatch):
                build_table(match_table(loop, self.longest, self.always))
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                build_strips(match_strips(loop, self.strip, self.shortest, self.always))


@dataclass(frozen=True, eq=False)
class Split:
    """A split loop body: the values of `tables` are computed beforehand, so `replaced` operations are not needed."""

    loop: mlir.Operation
    tables: tuple[mlir.Value, ...]
    replaced: frozenset[mlir.Operation]
    gain: float

    @property
    def body(self) -> mlir.Block:
        return self.loop.regions[0].blocks[0]

    @property
    def variable(self) -> mlir.Value:
        return self.body.arguments[0]


@dataclass(frozen=True, eq=False)
class Table:
    """A loop whose tables are computed before the enclosing loop."""

    split: Split
    around: mlir.Operation
    first: int
    trips: int


@dataclass(frozen=True, eq=False)
class Strips:
    """A loop in strips of `length` iterations; `trips` is None if the trip count is dynamic."""

    split: Split
    length: int
    trips: int | None


def match_table(loop: mlir.Operation, longest: int, always: bool) -> Table:
    """Match a loop of constant trip count with computations that are invariant in the enclosing loop."""
    around = loop.parent.operation
    if around.name != "scf.for":
        raise NoMatch("there is no loop around")
    trips, trips_around = trip_count(loop), trip_count(around)
    if trips is None or not 1 < trips <= longest:
        raise NoMatch("the trip count is dynamic, or too large for a table")
    if trips_around is not None and trips_around < 4 and not always:
        raise NoMatch("the loop around has few iterations")
    carried = set(list(loop.regions[0].blocks[0].arguments)[1:])
    dependent = {value for value in captured_values(loop) if is_defined_in(value, around)}
    found = match_split(loop, dependent | carried, 1 if always else _LEAST_IN_TABLE, 0)
    first = constant_of(loop.operands[0])
    if not found.tables or (found.gain < 2 and not always) or first is None:
        raise NoMatch("a table would save little")
    return Table(found, around, first, trips)


def match_strips(loop: mlir.Operation, strip: int, shortest: int, always: bool) -> Strips:
    """Match an innermost loop with computations that depend on no loop-carried value."""
    if not loop.results:
        raise NoMatch("no iteration depends on another one")
    body_ops = [op for op in operations(loop) if op != loop]
    if any(op.name in LOOPS for op in body_ops):
        raise NoMatch("there are loops in it")
    trips = trip_count(loop)
    if trips is not None and trips < shortest:
        raise NoMatch("there are few iterations")
    carried = set(list(loop.regions[0].blocks[0].arguments)[1:])
    found = match_split(loop, carried, 1 if always else _LEAST_IN_STRIP, _LANES)
    if not found.tables or (found.gain < max(4, instructions(body_ops) / 5) and not always):
        raise NoMatch("strips would save little")
    if trips is None and is_in_loop(loop) and found.gain < 16 and not always:
        raise NoMatch("there may be less iterations than a strip has")
    return Strips(found, trips if trips is not None and trips <= 2 * strip else strip, trips)


def trip_count(loop: mlir.Operation) -> int | None:
    """The trip count of a loop of step 1, if it is known. Raises `NoMatch` for another step."""
    lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
    if step != 1:
        raise NoMatch("the step is not 1")
    return None if lower is None or upper is None else max(upper - lower, 0)


def is_in_loop(op: mlir.Operation) -> bool:
    """True if an operation is nested in a loop."""
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in ("scf.for", "scf.while", "scf.parallel"):
            return True
    return False


def is_defined_in(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value is a block argument of an operation, or is defined in its regions."""
    owner = defining_op(value)
    if owner is not None:
        return is_within(owner, op)
    holder = value.owner.owner.operation
    return bool(holder == op) or is_within(holder, op)


def match_split(loop: mlir.Operation, dependent: set[mlir.Value], least: int, lanes: int) -> Split:
    """The computations of a loop body that use none of the `dependent` values.

    Tables are for values that take at least `least` instructions, computed in vectors of `lanes`; 0 without vectors.
    """
    ops = block_ops(loop.regions[0].blocks[0])
    inner = {result for op in ops for result in op.results}
    independent: dict[mlir.Value, mlir.Operation] = {}
    for op in ops:
        is_free = all(v not in dependent and (v not in inner or v in independent) for v in used_values(op))
        if is_free and is_scalar(op) and not (op.name == "tensor.extract" and op.operands[0] in inner):
            independent[op.results[0]] = op
    rest = [op for op in ops if not (op.results and op.results[0] in independent)]
    needed = dict.fromkeys(value for op in rest for value in used_values(op) if value in independent)
    slices = {value: slice_of(value, independent) for value in needed}
    tables = tuple(value for value in needed if instructions(slices[value]) >= least)
    made = {op for value in tables for op in slices[value]}
    kept = {op for value in needed if value not in tables for op in slices[value]}
    gain = instructions(made - kept) - len(tables) - ((instructions(made) + len(tables)) / lanes if lanes else 0)
    return Split(loop, tables, frozenset(made - kept), gain)


def is_scalar(op: mlir.Operation) -> bool:
    """True if an operation computes one scalar from scalars, or from an element of an array."""
    if len(op.results) != 1 or op.regions:
        return False
    if not isinstance(op.results[0].type, (mlir.FloatType, mlir.IntegerType, mlir.IndexType)):
        return False
    return bool(op.name.startswith(("arith.", "math.")) or op.name == "tensor.extract")


def slice_of(value: mlir.Value, independent: Mapping[mlir.Value, mlir.Operation]) -> set[mlir.Operation]:
    """The operations that compute a value, among the `independent` ones."""
    found: set[mlir.Operation] = set()
    waiting = [value]
    while waiting:
        op = independent.get(waiting.pop())
        if op is not None and op not in found:
            found.add(op)
            waiting += op.operands
    return found


def build_table(found: Table) -> None:
    """Compute the tables before the enclosing loop, and read them in the loop."""
    loop = found.split.loop
    with loop.location, mlir.InsertionPoint(found.around):
        tables = build_tables(found.split, emit.index(found.first), found.trips)
    with loop.location, mlir.InsertionPoint(loop):
        lower, inits = loop.operands[0], list(loop.operands)[3:]
        results = build_loop(found.split, tables, lower, found.trips, inits)
    replace_op(loop, *results)


def build_strips(found: Strips) -> None:
    """Run whole strips with tables and without checks, and the remaining iterations unchanged."""
    loop = found.split.loop
    lower, upper, step = list(loop.operands)[:3]
    inits = list(loop.operands)[3:]
    with loop.location, mlir.InsertionPoint(loop):
        if found.trips == found.length:
            replace_op(loop, *build_strip(found, lower, inits))
            return
        end = end_of_strips(found, lower, upper)
        length = emit.index(found.length)
        results = emit.for_loop(lower, end, length, lambda first, carried: build_strip(found, first, carried), inits)
        if found.trips is None or found.trips % found.length:
            ops = block_ops(found.split.body)
            results = emit.for_loop(
                end, upper, step, lambda i, carried: clone_body(found.split.body, ops, [i, *carried], {}), results
            )
    replace_op(loop, *results)


def end_of_strips(found: Strips, lower: mlir.Value, upper: mlir.Value) -> mlir.Value:
    """The end of the last whole strip."""
    first = constant_of(lower)
    if found.trips is not None and first is not None:
        return emit.index(first + found.trips // found.length * found.length)
    length = emit.index(found.length)
    trips = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), emit.index(0))
    whole = emit.same_type("arith.muli", emit.same_type("arith.divui", trips, length), length)
    return emit.same_type("arith.addi", lower, whole)


def build_strip(found: Strips, first: mlir.Value, inits: Sequence[mlir.Value]) -> list[mlir.Value]:
    """A strip from iteration `first` on."""
    tables = build_tables(found.split, first, found.length)
    return build_loop(found.split, tables, first, found.length, inits)


def build_loop(
    split: Split,
    tables: Sequence[mlir.Value],
    first: mlir.Value,
    length: int,
    inits: Sequence[mlir.Value],
) -> list[mlir.Value]:
    """A strip of the loop, with loads from tables instead of the computations."""
    ops = [op for op in block_ops(split.body) if op not in split.replaced]

    def iteration(k: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        elements = {}
        for value, table in zip(split.tables, tables):
            element = emit.value("tensor.extract", [table, k], mlir.ShapedType(table.type).element_type)
            elements[value] = element if element.type == value.type else cast(element, value.type)
        index = emit.same_type("arith.addi", first, k)
        return clone_body(split.body, ops, [index, *carried], elements)

    return emit.for_loop(emit.index(0), emit.index(length), emit.index(1), iteration, list(inits))


def clone_body(
    body: mlir.Block,
    ops: Sequence[mlir.Operation],
    arguments: Sequence[mlir.Value],
    known: Mapping[mlir.Value, mlir.Value],
) -> list[mlir.Value]:
    """Clone operations of a body, with some values known; returns the yielded values."""
    values = {**dict(zip(body.arguments, arguments)), **known}
    *inner, final = ops
    for op in inner:
        clone_with(op, values)
    return [values.get(value, value) for value in final.operands]


def build_tables(split: Split, first: mlir.Value, length: int) -> list[mlir.Value]:
    """The tables of `length` iterations from `first` on."""
    return Strip(split, first, length).tables()


@dataclass(frozen=True, eq=False)
class Strip:
    """`length` iterations of a loop, from `first` on."""

    split: Split
    first: mlir.Value
    length: int

    def tables(self) -> list[mlir.Value]:
        """The tables, with a value for each iteration."""
        wanted = self.split.tables
        independent = {op.results[0]: op for op in block_ops(self.split.body) if is_scalar(op)}
        needed = set().union(*(slice_of(value, independent) for value in wanted))
        slices = {
            op: rows
            for op in block_ops(self.split.body)
            if op in needed and op.name == "tensor.extract" and (rows := self.rows_of(op)) is not None
        }
        inits = [emit.empty(mlir.RankedTensorType.get([self.length], widened(value.type))) for value in wanted]
        maps = [mlir.AffineMap.get_identity(1)] * (len(slices) + len(inits))

        def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
            known = {op.results[0]: argument for op, argument in zip(slices, arguments)}
            return [self.value(value, known) for value in wanted]

        return list(emit.generic(list(slices.values()), inits, maps, ["parallel"], body).results)

    def rows_of(self, extract: mlir.Operation) -> mlir.Value | None:
        """The slice of an array that is read at consecutive indices; None if the indices are not consecutive."""
        array, *indices = list(extract.operands)
        offsets = [self.offset_of(index) for index in indices]
        if sum(offset is not None for offset in offsets) != 1:
            return None
        if any(offset is None and self.is_inside(index) for index, offset in zip(indices, offsets)):
            return None
        sizes = [1 if offset is None else self.length for offset in offsets]
        whole = mlir.RankedTensorType(array.type)
        if any(not whole.is_dynamic_dim(axis) and size > whole.shape[axis] for axis, size in enumerate(sizes)):
            return None
        starts = [index if offset is None else offset for index, offset in zip(indices, offsets)]
        return emit.extract_slice(array, starts, sizes, [self.length])

    def offset_of(self, index: mlir.Value) -> mlir.Value | None:
        """The start index of a strip, for an index that is the loop's plus an invariant; None for others."""
        if index == self.split.variable:
            return self.first
        op = defining_op(index)
        if op is None or op.name != "arith.addi" or not self.is_inside(index):
            return None
        one, other = op.operands
        if other == self.split.variable:
            one, other = other, one
        if one != self.split.variable or self.is_inside(other):
            return None
        return emit.same_type("arith.addi", self.first, other)

    def is_inside(self, value: mlir.Value) -> bool:
        """True if a value is defined in the body of the loop."""
        owner = value.owner
        return bool((owner if isinstance(owner, mlir.Block) else owner.operation.block) == self.split.body)

    def value(self, value: mlir.Value, known: dict[mlir.Value, mlir.Value]) -> mlir.Value:
        """A value of the body in a generic, with indices as 64-bit integers, which LLVM vectorises."""
        if value not in known:
            known[value] = self._built(value, known)
        return known[value]

    def _built(self, value: mlir.Value, known: dict[mlir.Value, mlir.Value]) -> mlir.Value:
        target_type = widened(value.type)
        if value == self.split.variable:
            index = emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(0))
            return cast(emit.same_type("arith.addi", self.first, index), target_type)
        if not self.is_inside(value):
            return value if value.type == target_type else cast(value, target_type)
        op = defining_op(value)
        assert op is not None
        if op.name == "tensor.extract":
            indices = [cast(self.value(index, known), mlir.IndexType.get()) for index in list(op.operands)[1:]]
            element = emit.value("tensor.extract", [op.operands[0], *indices], value.type)
            return element if value.type == target_type else cast(element, target_type)
        operands = [self.value(operand, known) for operand in op.operands]
        if op.name in INDEX_CASTS:
            return resized(operands[0], target_type, is_signed=op.name == "arith.index_cast")
        if op.name == "arith.constant":
            is_same = value.type == target_type
            return op.clone().operation.results[0] if is_same else emit.number(target_type, constant_of(value) or 0)
        attributes = {name: op.attributes[name] for name in op.attributes}
        with op.location:
            return emit.create(op.name, operands, [target_type], attributes).results[0]


def widened(value_type: mlir.Type) -> mlir.Type:
    """The element type of a table: 64-bit integers for indices."""
    return mlir.IntegerType.get_signless(64) if isinstance(value_type, mlir.IndexType) else value_type


def cast(value: mlir.Value, target_type: mlir.Type) -> mlir.Value:
    """An index as an integer, or an integer as an index."""
    return emit.value("arith.index_cast", [value], target_type)


def resized(value: mlir.Value, target_type: mlir.Type, *, is_signed: bool) -> mlir.Value:
    """An integer with the width of `target_type`."""
    if value.type == target_type:
        return value
    if value.type.width > target_type.width:
        return emit.value("arith.trunci", [value], target_type)
    return emit.value("arith.extsi" if is_signed else "arith.extui", [value], target_type)
