"""Inspect indices: a chunk of iterations runs without checks after a vectorized loop has inspected its indices.

Before, in @main:
    scf.for %i = %c0 to %n step %c1 {
      %key = memref.load %keys[%i] : memref<?xi64>
      %moved = arith.addi %key, %c5 : i64
      %inside = arith.cmpi ult, %moved, %c10 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 5 : i64}
      ... %x[%position] ...
    }
After:
    scf.for %c = %c0 to %n step %c512 {
      %end = arith.minsi %c + 512, %n
      %outside = scf.for %i = %c to %end iter_args(%any = %false) {
        scf.yield %any or not (arith.cmpi ult, %keys[%i], %c5) : i1
      }
      scf.if %outside {
        scf.for %i = %c to %end step %c1 { /* as it was */ } {mlirml.inspected}
      } else {
        scf.for %i = %c to %end step %c1 { ... %x[%index] ... }
      }
    }

So inspector and executor share the data in the first-level cache, and the executor is the same loop as with
`checks = False`. The indices must not depend on values that the loop stores or carries.

A loop over the rows of a sparse matrix, `for k in range(start[i], start[i + 1])` in a loop over `i`, has too few
iterations for that. If `start` does not decrease from row to row of a chunk, its rows are the range from the start of
the first to the end of the last, and the inspector checks that range. A loop over `columns[start[i]:start[i + 1]]`,
which goes from zero to the length of the slice and adds the start to its variable, is first rewritten to that form.

The terms inspector and executor are those of J. Saltz, R. Mirchandaney and K. Crowley, Run-time parallelization and
scheduling of loops, IEEE Transactions on Computers 40, 1991.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.memory import body_effects
from mlirml.analysis.ranges import Ranges
from mlirml.analysis.values import outer_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP, every
from mlirml.pipelines.checks.version_checks import (
    INSPECTED,
    Check,
    Checked,
    checked_loops,
    clone_body,
    clone_folded,
    factor_of,
    match,
    needed_by,
    outside_of,
    without_checks,
)
from mlirml.pipelines.memref.split_loops import is_fixed

Values = Sequence[mlir.Value]
_FAR = 1 << 62
_MOST_FOR_BOUND = 12
"""The maximum number of operations between a loaded row start and the loop bound."""


@register(when=every(PROGRAM_LOOP, ("cf.assert",)), optional=True)
class InspectIndicesPass(Pass):
    """Inspect the indices of `chunk` iterations, or of `rows` rows of a sparse matrix, and run these without checks.

    Loops of more than `longest` operations keep their checks.
    """

    chunk: int = 512
    rows: int = 64
    longest: int = 64

    def run(self, module: mlir.Operation) -> None:
        loops = checked_loops(module)
        while loops:
            loop = loops.pop(0)
            with suppress(NoMatch):
                start_from_row(loop)
            with suppress(NoMatch):
                found = match_inspected(loop, self.longest)
                rows = match_rows(found)
                loops = outside_of(loop if rows is None else rows.loop, loops)  # the others are replaced
                if rows is None:
                    build_chunks(found, self.chunk)
                else:
                    build_rows(found, rows, self.rows)


@dataclass(frozen=True, eq=False)
class Rows:
    """The loop over rows, and the array of their starts: row `i` is from `start[i]` to `start[i + 1]`.

    `first` is the computation of the loop bound from `start[i]`.
    """

    loop: mlir.Operation
    start: mlir.Value
    first: Loaded

    def bound(self, row: mlir.Value) -> mlir.Value:
        """The start of a row, as a loop bound."""
        load = self.first.load
        values = {load.results[0]: emit.value("memref.load", [self.start, row], load.results[0].type)}
        for op in self.first.ops:
            for operand in op.operands:
                if operand not in values:
                    values[operand] = emit.constant(constant_attribute(operand))
            clone_with(op, values)
        return values[self.first.value]


def start_from_row(loop: mlir.Operation) -> None:
    """Make a loop from zero to `end - start` run from `start` to `end`, if its variable is only added to `start`."""
    if loop.name != "scf.for":
        raise NoMatch("it is no loop")
    lower, upper, step = list(loop.operands)[:3]
    length = defining_op(upper)
    if constant_of(lower) != 0 or constant_of(step) != 1 or length is None or length.name != "arith.subi":
        raise NoMatch("it does not go from zero to a length")
    end, start = length.operands
    ranges = Ranges()
    if any(not -_FAR < number < _FAR for value in (start, end) for number in ranges.of(value)):
        raise NoMatch("the length may overflow")
    variable = loop.regions[0].blocks[0].arguments[0]
    users = [use.owner.operation for use in variable.uses]
    if not users or any(op.name != "arith.addi" or set(op.operands) != {start, variable} for op in users):
        raise NoMatch("its variable is used by itself")
    for op in users:
        replace_op(op, variable)
    loop.operands[0], loop.operands[1] = start, end


def match_inspected(loop: mlir.Operation, longest: int) -> Checked:
    """Match a loop whose checked indices are loaded from memory that the loop does not write."""
    found = match(loop, longest)
    if all(is_linear(check, found) for check in found.checks):
        raise NoMatch("the ends of a range tell of all indices")
    carried = set(list(loop.regions[0].blocks[0].arguments)[1:])
    used = [check.key for check in found.checks] + [value for op in found.computed for value in op.operands]
    if any(value in carried for value in used):
        raise NoMatch("an index depends on the iteration before")
    if not loads_constant_memory(found, loop):
        raise NoMatch("the loop may store into what its indices are loaded from")
    return found


def is_linear(check: Check, found: Checked) -> bool:
    """True if an index increases or decreases by one, or is constant, from iteration to iteration."""
    return factor_of(check, found) in (-1, 0, 1)


def loads_constant_memory(found: Checked, loop: mlir.Operation) -> bool:
    """True if no operation in `loop` may store to the memory from which the indices are loaded."""
    done = body_effects(loop)
    loads = [op for op in found.computed if op.name == "memref.load"]
    return not any(done.writes_to(op.operands[0]) for op in loads)


def match_rows(found: Checked) -> Rows | None:
    """The enclosing loop, if it iterates over the rows of a sparse matrix whose column indices are checked."""
    inner = found.loop
    outer = inner.parent.operation
    if outer.name != "scf.for" or constant_of(outer.operands[2]) != 1 or constant_of(inner.operands[2]) != 1:
        return None
    lower, upper = (loaded_index(value) for value in list(inner.operands)[:2])
    row = outer.regions[0].blocks[0].arguments[0]
    if lower is None or upper is None or lower.load.operands[0] != upper.load.operands[0]:
        return None
    if lower.load.operands[1] != row or not follows(upper.load.operands[1], row) or not are_alike(lower, upper):
        return None
    captured = set(outer_values(inner))
    values = {v for op in found.computed for v in op.operands if v in captured}
    body = outer.regions[0].blocks[0]
    if not all(is_fixed(value, body) for value in values):
        return None
    start = lower.load.operands[0]
    if not is_fixed(start, body) or body_effects(outer).writes_to(start) or not loads_constant_memory(found, outer):
        return None
    return Rows(outer, start, lower)


@dataclass(frozen=True, eq=False)
class Loaded:
    """A value computed by `ops` from an element of a one-dimensional array and constants."""

    value: mlir.Value
    load: mlir.Operation
    ops: tuple[mlir.Operation, ...]


def loaded_index(value: mlir.Value) -> Loaded | None:
    """The element from which a value is computed, and the operations."""
    ops: list[mlir.Operation] = []
    loads: list[mlir.Operation] = []

    def collect(value: mlir.Value) -> bool:
        op = defining_op(value)
        if op is None or op in ops or op in loads or constant_of(value) is not None:
            return op is not None
        if op.name == "memref.load":
            loads.append(op)
            return len(loads) == 1 and len(op.operands) == 2
        if not op.name.startswith("arith.") or len(ops) >= _MOST_FOR_BOUND or not all(map(collect, op.operands)):
            return False
        ops.append(op)
        return True

    return Loaded(value, loads[0], tuple(ops)) if collect(value) and loads else None


def constant_attribute(value: mlir.Value) -> mlir.Attribute:
    op = defining_op(value)
    assert op is not None
    return op.attributes["value"]


def are_alike(one: Loaded, other: Loaded) -> bool:
    """True if two values are computed from their elements in the same way."""
    same = {one.load.results[0]: other.load.results[0]}
    for a, b in zip(one.ops, other.ops):
        if a.name != b.name or a.results[0].type != b.results[0].type or len(a.operands) != len(b.operands):
            return False
        if {name: str(a.attributes[name]) for name in a.attributes} != {n: str(b.attributes[n]) for n in b.attributes}:
            return False
        for x, y in zip(a.operands, b.operands):
            known = x in same or y in same.values()
            if same.get(x) != y if known else (constant_of(x), x.type) != (constant_of(y), y.type):
                return False
        same[a.results[0]] = b.results[0]
    return len(one.ops) == len(other.ops) and same.get(one.value) == other.value


def follows(value: mlir.Value, row: mlir.Value) -> bool:
    """True if a value is `row + 1`."""
    op = defining_op(value)
    return op is not None and op.name == "arith.addi" and op.operands[0] == row and constant_of(op.operands[1]) == 1


def build_chunks(found: Checked, chunk: int) -> None:
    """Replace a loop by a loop over chunks, each inspected and then executed."""
    loop = found.loop
    body = block_ops(loop.regions[0].blocks[0])
    rest, ranges = without_checks(found)

    def executed(first: mlir.Value, end: mlir.Value, inits: Values) -> list[mlir.Value]:
        return loop_like(loop, first, end, inits, lambda arguments: clone_body(loop, rest, arguments, ranges))

    def checked(first: mlir.Value, end: mlir.Value, inits: Values) -> list[mlir.Value]:
        body_of = lambda arguments: clone_body(loop, body, arguments)  # noqa: E731
        return loop_like(loop, first, end, inits, body_of, inspected=True)

    build_inspected(loop, chunk, lambda first, end: outside(found, first, end), executed, checked)


def build_rows(found: Checked, rows: Rows, count: int) -> None:
    """Replace a loop over rows by a loop over chunks of rows, each inspected and then executed."""
    loop, inner = rows.loop, found.loop
    rest, ranges = without_checks(found)

    def inspected(first: mlir.Value, end: mlir.Value) -> mlir.Value:
        one = emit.index(1)

        def falls(i: mlir.Value, any_before: list[mlir.Value]) -> Values:
            here, there = rows.bound(i), rows.bound(emit.same_type("arith.addi", i, one))
            return [emit.same_type("arith.ori", any_before[0], emit.compare("sgt", here, there))]

        falling = emit.for_loop(first, end, one, falls, [emit.number(flag(), 0)])[0]

        def columns() -> Values:
            return [outside(found, rows.bound(first), rows.bound(end))]

        return emit.conditional(falling, lambda: [falling], columns, [flag()])[0]

    def executed(first: mlir.Value, end: mlir.Value, inits: Values) -> list[mlir.Value]:
        def row(arguments: Values) -> Values:
            values = dict(zip(loop.regions[0].blocks[0].arguments, arguments))
            *ops, final = block_ops(loop.regions[0].blocks[0])
            for op in ops:
                if op != inner:
                    clone_with(op, values)
                    continue
                lower, upper, _, *carried = [values.get(value, value) for value in inner.operands]
                columns = lambda arguments: clone_body(inner, rest, arguments, ranges, values)  # noqa: E731
                values.update(zip(inner.results, loop_like(inner, lower, upper, carried, columns)))
            return [values.get(value, value) for value in final.operands]

        return loop_like(loop, first, end, inits, row)

    def checked(first: mlir.Value, end: mlir.Value, inits: Values) -> list[mlir.Value]:
        body = block_ops(loop.regions[0].blocks[0])
        return loop_like(loop, first, end, inits, lambda arguments: clone_body(loop, body, arguments))

    inner.attributes[INSPECTED] = mlir.UnitAttr.get()
    build_inspected(loop, count, inspected, executed, checked)


Build = Callable[[mlir.Value, mlir.Value, Values], list[mlir.Value]]
"""Builds the iterations from a first one to the end of a chunk; returns the carried values."""


def build_inspected(
    loop: mlir.Operation, chunk: int, inspected: Callable[[mlir.Value, mlir.Value], mlir.Value], executed: Build,
    checked: Build,
) -> None:  # fmt: skip
    """Replace a loop by a loop over chunks: `inspected` is true if an index is negative or out of bounds."""
    lower, upper, step, *inits = loop.operands
    with loop.location, mlir.InsertionPoint(loop):
        length = emit.same_type("arith.muli", step, emit.index(chunk))

        def body(first: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            left = emit.same_type("arith.subi", upper, first)
            end = emit.same_type("arith.addi", first, emit.same_type("arith.minsi", left, length))
            some = inspected(first, end)
            types = [value.type for value in carried]
            return emit.conditional(
                some, lambda: checked(first, end, carried), lambda: executed(first, end, carried), types
            )

        results = emit.for_loop(lower, upper, length, body, inits)
    replace_op(loop, *results)


def outside(found: Checked, first: mlir.Value, end: mlir.Value) -> mlir.Value:
    """True if a checked index is negative or out of bounds in an iteration; the loads of indices are in bounds."""
    linear = [check for check in found.checks if is_linear(check, found)]
    loaded = [check for check in found.checks if check not in linear]
    last = emit.same_type("arith.subi", end, emit.index(1))
    ranges = Ranges().given_ranges({check.key: (0, check.size - 1) for check in linear})

    def of_iterations() -> Values:
        def body(i: mlir.Value, any_before: list[mlir.Value]) -> Values:
            return [emit.same_type("arith.ori", any_before[0], is_outside(found, loaded, i, ranges))]

        return emit.for_loop(first, end, found.loop.operands[2], body, [emit.number(flag(), 0)])

    if not linear:
        return of_iterations()[0]
    ends = [is_outside(found, linear, at) for at in (first, last)]
    some = emit.same_type("arith.ori", *ends)
    return emit.conditional(some, lambda: [some], of_iterations, [flag()])[0]


def is_outside(
    found: Checked, checks: Sequence[Check], i: mlir.Value, ranges: Ranges | None = None
) -> mlir.Value:  # fmt: skip
    """True if one of the indices is negative or out of bounds in iteration `i`, where `ranges` holds."""
    loop = found.loop
    ops = needed_by([check.key for check in checks], found.computed)
    values = clone_folded(loop, ops, [i], ranges)
    some: mlir.Value | None = None
    for check in checks:
        key = values.get(check.key, check.key)
        beyond = emit.compare("uge", key, emit.number(key.type, check.size))
        some = beyond if some is None else emit.same_type("arith.ori", some, beyond)
    assert some is not None
    return some


def loop_like(
    loop: mlir.Operation, lower: mlir.Value, upper: mlir.Value, inits: Values, body: Callable[[Values], Values],
    *, inspected: bool = False,
) -> list[mlir.Value]:  # fmt: skip
    """A loop with the step and the attributes of another."""
    attributes = {name: loop.attributes[name] for name in loop.attributes}
    if inspected:
        attributes[INSPECTED] = mlir.UnitAttr.get()
    types = [value.type for value in inits]
    new = emit.create("scf.for", [lower, upper, loop.operands[2], *inits], types, attributes, regions=1)
    block = emit.block(new, [mlir.IndexType.get(), *types])
    with mlir.InsertionPoint(block):
        emit.create("scf.yield", body(list(block.arguments)))
    return list(new.results)


def flag() -> mlir.Type:
    return mlir.IntegerType.get_signless(1)
