"""Transposes of control flow.

The reverse loop visits iterations in reverse order: it recomputes iteration `k` from the carried values at its start,
as far as derivatives read them, and then propagates cotangents through it. Only such values are stored; a loop that is
linear in its carried values stores none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mlirml.analysis.values import outer_variables, walk
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.bodies import refuse
from mlirml.autodiff.checkpoint import (
    FEW,
    LEVELS,
    MOST_LEVELS,
    UNBOUNDED,
    attribute,
    cut,
    keep_bounds,
    max_trip_count,
    root,
    trip_count_of,
)  # fmt: skip
from mlirml.autodiff.copies import copied, recomputed
from mlirml.autodiff.liveness import live_values
from mlirml.autodiff.reverse import Sweep, active_values, transpose
from mlirml.autodiff.rows import rows_read
from mlirml.autodiff.rule_table import one_of_two_tensors
from mlirml.autodiff.saved import row_bytes, saved_values
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, operations
from mlirml.ir.marked_sizes import MARKS
from mlirml.ir.text.control import REJECTION


@transpose("scf.for")
def for_loop(sweep: Sweep, op: mlir.Operation) -> None:
    """The reverse loop, from the last iteration to the first."""
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    carried = list(block.arguments)[1:]
    yields = list(block_ops(block)[-1].operands)
    wanted, outer = _differentiated(sweep, op)
    trip_count = trip_count_of(lower, upper, step)
    most = max_trip_count(op, trip_count)
    tapes = [_Tape(value, most) for value in carried]
    starts = [sweep.of(op.results[i]) for i in wanted]
    starts += [sweep.cotangents.get(x) or tensors.zeros_like(x) for x in outer]
    masked = any(r in sweep.masked for r in op.results)
    rows = {x: complete for x, complete in rows_read(op).items() if x in outer and x not in sweep.cotangents}

    iteration = _Recomputed()

    def body(k: mlir.Value, cotangents: list[mlir.Value]) -> list[mlir.Value]:
        last = emit.same_type("arith.subi", trip_count, emit.index(1))
        iteration.number = number = emit.same_type("arith.subi", last, k)
        environment = {value: tape.read(number) for value, tape in zip(carried, tapes)}
        environment[block.arguments[0]] = emit.same_type(
            "arith.addi", lower, emit.same_type("arith.muli", number, step)
        )
        iteration.ops = ops = recomputed(block, environment)
        iteration.originals = {environment[r]: r for op in block_ops(block)[:-1] for r in op.results}
        inner = Sweep(_with_replaced(sweep.active, environment), sweep.checkpoint_bytes, sweep.dead)
        inner.cotangents.update(zip(outer, cotangents[len(wanted) :]))
        inner.unwritten.update(rows)
        for i, cotangent in zip(wanted, cotangents):
            inner.add(environment.get(yields[i], yields[i]), cotangent, masked)
        # The sum of the cotangents of an outer value that is yielded unchanged is in `inner` already.
        inner.run(ops)
        iteration.written = [x for x, complete in rows.items() if complete and x not in inner.unwritten]
        return [inner.of(environment[carried[i]]) for i in wanted] + [inner.of(x) for x in outer]

    results = emit.for_loop(emit.index(0), trip_count, emit.index(1), body, starts)
    _leave_uninitialised(results, [len(wanted) + outer.index(x) for x in iteration.written])
    live = live_values(results[0].owner.operation) if results else set()
    if LEVELS not in op.attributes or attribute(op, LEVELS) == 1:
        more = _save(iteration, tapes, most, sweep, live)
        if more:
            tapes += more
            live = live_values(results[0].owner.operation)
    kept = [tape for tape in tapes if tape.is_read(live)]
    levels = _levels_of(op, most, kept, sweep.checkpoint_bytes)
    if levels > 1:
        sweep.dead += [tape.placeholder.owner for tape in tapes]
        sweep.dead.append(results[0].owner)  # built only to find the values that it reads
        for_loop(sweep, _in_segments(sweep, op, most, levels))
        return
    for tape in [tape for tape in tapes if tape not in kept]:
        tape.drop()
    _record(sweep, op, kept)
    sweep.cotangents.update(zip(outer, results[len(wanted) :]))
    sweep.masked.update(outer)
    for i, cotangent in zip(wanted, results):
        if sweep.is_active(inits[i]):
            sweep.add(inits[i], cotangent, True)


def _differentiated(sweep: Sweep, op: mlir.Operation) -> tuple[list[int], list[mlir.Value]]:
    """The loop-carried values that have cotangents, by index, and the values from outside that get some."""
    inits, block = list(op.operands)[3:], op.regions[0].blocks[0]
    carried = list(block.arguments)[1:]
    yields = list(block_ops(block)[-1].operands)
    possible = [i for i, r in enumerate(op.results) if is_float(r.type)
                and (r in sweep.cotangents or carried[i] in sweep.active)]  # fmt: skip
    wanted = _read_by([i for i in possible if op.results[i] in sweep.cotangents], possible, carried, yields)
    outer = [x for x in outer_variables(op) if sweep.is_active(x) and x not in inits]
    outer += [x for x in dict.fromkeys(inits) if sweep.is_active(x) and _used_inside(x, block)]
    return wanted, outer


def _read_by(
    wanted: Sequence[int], possible: Sequence[int], carried: Sequence[mlir.Value], yields: Sequence[mlir.Value]
) -> list[int]:
    """The loop-carried values that have cotangents, and those that the next values of these depend on.

    The cotangents of others, such as the change of a solution that only the condition of a loop reads, are zero; times
    an infinite derivative they would be NaN.
    """
    next_of = {carried[i]: yields[i] for i in possible}

    def parts(value: mlir.Value) -> Iterable[mlir.Value]:
        if value in next_of:
            return [next_of[value]]
        return [] if isinstance(value.owner, mlir.Block) else outer_variables(value.owner.operation)

    read = set[mlir.Value]()
    for i in wanted:
        if carried[i] not in read:
            read.update(walk(carried[i], parts))
    return [i for i in possible if carried[i] in read]


def _leave_uninitialised(results: Sequence[mlir.Value], indices: Sequence[int]) -> None:
    """Give a loop that writes all elements of some results, by index, inits without contents for them."""
    for index in indices:
        loop = results[0].owner.operation
        with mlir.InsertionPoint(loop):
            loop.operands[3 + index] = emit.empty(results[index].type)


class _Recomputed:
    """An iteration that the reverse loop recomputes."""

    number: mlir.Value
    ops: list[mlir.Operation]
    originals: dict[mlir.Value, mlir.Value]  # by their copies
    written: list[mlir.Value]  # outer values for all of whose rows cotangents are stored


def _save(
    iteration: _Recomputed, tapes: Sequence[_Tape], most: int, sweep: Sweep, live: set[mlir.Value]
) -> list[_Tape]:
    """Tapes for results of costly operations, or for values cheaply computed from them, where they fit."""
    carried = [value for tape in tapes for value in tape.reads if value in live]
    ops = [op for op in iteration.ops if op not in sweep.dead]
    cut = saved_values(ops, carried, live)
    if cut is None or most * sum(row_bytes(value) or 0 for value in cut) > sweep.checkpoint_bytes:
        return []
    more = []
    for value in cut:
        if value not in iteration.originals:
            continue
        with value.owner.location, mlir.InsertionPoint(value.owner.parent):
            tape = _Tape(iteration.originals[value], most)
        with value.owner.location, mlir.InsertionPoint(value.owner):
            value.replace_all_uses_with(tape.read(iteration.number))
        more.append(tape)
    return more


def _levels_of(op: mlir.Operation, most: int, kept: Sequence[_Tape], checkpoint_bytes: int) -> int:
    """The depth of the nest that a loop is split into, so that the stored values fit: 1 for one that is not split.

    Each level costs one more execution of all iterations. A loop with a known bound is split at most once and stores
    the square root of its iterations; of one without a bound, tapes are short enough for any trip count.
    """
    if LEVELS in op.attributes:
        return attribute(op, LEVELS)
    row = sum(tape.row_bytes for tape in kept)
    if row * most <= checkpoint_bytes or most <= FEW:
        return 1
    if most < UNBOUNDED:
        return 2
    for levels in range(2, MOST_LEVELS + 1):
        if levels * root(most, levels) * row <= checkpoint_bytes:
            return levels
    raise refuse(
        op,
        f"its derivative reads values carried into each iteration, {_amount(op, row)}, and the trip count has no known "
        "bound",
        "give a bound: `ml.fori_loop(0, 1000, ...)` with `np.where(i < n, new, old)`; or make `n` static",
    )


def _amount(op: mlir.Operation, row: int) -> str:
    """A number of bytes for an error message, which does not show the marks of dynamic sizes."""
    function = op
    while function.name != "func.func":
        function = function.parent.operation
    marks = list(function.attributes[MARKS]) if MARKS in function.attributes else []
    return "arrays of dynamic sizes" if any(row % mark == 0 for mark in marks) else f"{row} bytes"


def _in_segments(sweep: Sweep, op: mlir.Operation, most: int, levels: int) -> mlir.Operation:
    """Replace the loop by one that is split into segments."""
    new = cut(op, most, levels)
    for old, result in zip(op.results, new.results):
        if old in sweep.cotangents:
            sweep.cotangents[result] = sweep.cotangents[old]
        if old in sweep.masked:
            sweep.masked.add(result)
    sweep.active |= active_values([new], sweep.active)
    sweep.dead.append(op)
    return new


class _Tape:
    """The tape of a loop-carried value: its value at the start of each iteration, to be recorded if it is read."""

    def __init__(self, value: mlir.Value, trip_count: int) -> None:
        self.value = value
        type_ = value.type
        self._tensor = isinstance(type_, mlir.RankedTensorType)
        self.element = type_.element_type if self._tensor else type_
        self.shape = list(type_.shape) if self._tensor else []
        self.kind = mlir.RankedTensorType.get([trip_count, *self.shape], self.element)
        self.placeholder = emit.empty(self.kind)
        self.reads: list[mlir.Value] = []

    @property
    def row_bytes(self) -> int:
        """The bytes of the value of one iteration."""
        width = getattr(self.element, "width", 64)
        elements: int = math.prod(self.shape)
        return elements * max(1, int(width) // 8)

    def read(self, number: mlir.Value) -> mlir.Value:
        """The value at the start of an iteration."""
        if not self._tensor:
            value = emit.value("tensor.extract", [self.placeholder, number], self.element)
        else:
            value = emit.slice_op("tensor.extract_slice", [self.placeholder], self.value.type, *self._row(number))
        self.reads.append(value)
        return value

    def write(self, number: mlir.Value, value: mlir.Value, tape: mlir.Value) -> mlir.Value:
        """Record the value at the start of an iteration."""
        if not self._tensor:
            return emit.value("tensor.insert", [value, tape, number], self.kind)
        return emit.insert_slice(value, tape, *self._row(number))

    def _row(self, number: mlir.Value) -> tuple[list[mlir.Value | int], list[int]]:
        """The offsets and sizes of the row of an iteration."""
        return [number, *[0] * len(self.shape)], [1, *self.shape]

    def is_read(self, live: set[mlir.Value]) -> bool:
        """True if a read of the tape is live; if not, the tape is dead code."""
        return any(value in live for value in self.reads)

    def drop(self) -> None:
        """Replace the reads of the tape, which are dead code."""
        for value in self.reads:
            with value.owner.location, mlir.InsertionPoint(value.owner):
                other = emit.empty(value.type) if self._tensor else emit.number(value.type, 0)
            value.replace_all_uses_with(other)
            value.owner.erase()
        self.placeholder.owner.erase()


def _record(sweep: Sweep, op: mlir.Operation, tapes: Sequence[_Tape]) -> None:
    """Let the loop write tapes, which replace the placeholders."""
    if not tapes:
        return
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    with op.location, mlir.InsertionPoint(op):
        empty = [emit.empty(tape.kind) for tape in tapes]

        def body(i: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            environment = dict(zip(block.arguments, [i, *values]))
            number = emit.value("arith.divsi", [emit.same_type("arith.subi", i, lower), step], i.type)
            written = values[len(inits) :]

            def write() -> None:
                for position, tape in enumerate(tapes):
                    if tape.value in environment and written[position] == values[len(inits) + position]:
                        written[position] = tape.write(number, environment[tape.value], written[position])

            write()
            for inner in block_ops(block)[:-1]:
                clone_with(inner, environment)
                write()
            return [environment.get(y, y) for y in block_ops(block)[-1].operands] + written

        results = emit.for_loop(lower, upper, step, body, [*inits, *empty])
        keep_bounds(op, results)
    for old, new in zip(op.results, results):
        old.replace_all_uses_with(new)
    for tape, new in zip(tapes, results[len(inits) :]):
        tape.placeholder.replace_all_uses_with(new)
        sweep.dead.append(tape.placeholder.owner)
    sweep.dead.append(op)


def _with_replaced(active: set[mlir.Value], environment: dict[mlir.Value, mlir.Value]) -> set[mlir.Value]:
    """The active values, and those that replaced them."""
    return active | {new for old, new in environment.items() if old in active}


def _used_inside(value: mlir.Value, block: mlir.Block) -> bool:
    return any(value in list(inner.operands) for op in block_ops(block) for inner in operations(op))


@transpose("scf.if", "scf.index_switch")
def branches(sweep: Sweep, op: mlir.Operation) -> None:
    """Recompute the taken branch and propagate cotangents through it."""
    wanted = [r for r in op.results if r in sweep.cotangents]
    cotangents = [sweep.cotangents[r] for r in wanted]
    outer = [x for x in outer_variables(op) if sweep.is_active(x)]
    if not outer:
        return
    types = [x.type for x in outer]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = emit.create(op.name, list(op.operands), types, attributes, regions=len(op.regions))
    for number, region in enumerate(op.regions):
        (block,) = region.blocks
        with mlir.InsertionPoint(emit.block(new, [], number)):
            environment: dict[mlir.Value, mlir.Value] = {}
            ops = recomputed(block, environment)
            inner = Sweep(_with_replaced(sweep.active, environment), sweep.checkpoint_bytes, sweep.dead)
            ends = list(block_ops(block)[-1].operands)
            for result, cotangent in zip(wanted, cotangents):
                value = ends[list(op.results).index(result)]
                inner.add(environment.get(value, value), cotangent, True)
            inner.run(ops)
            emit.create("scf.yield", [inner.of(x) for x in outer])
    for x, cotangent in zip(outer, new.results):
        sweep.add(x, cotangent, True)


@transpose("arith.select", types=one_of_two_tensors)
def select(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent goes to the selected tensor, zeros to the other one."""
    condition, a, b = op.operands
    cotangent = sweep.cotangents[op.results[0]]
    zeros = tensors.zeros_like(cotangent)
    for value, pair in ((a, (cotangent, zeros)), (b, (zeros, cotangent))):
        if sweep.is_active(value):
            sweep.add(value, emit.same_type("arith.select", condition, *pair), True)


@transpose("scf.while")
def while_loop(sweep: Sweep, op: mlir.Operation) -> None:
    """Count the iterations in a loop of its own; the reverse loop is that of an `scf.for` with this trip count.

    Before:
        %r = scf.while (%a = %x) { scf.condition(%p) %b } do { scf.yield %c }
    After:
        %n = scf.while (%a = %x, %i = 0) { scf.condition(%p) %b, %i } do { scf.yield %c, %i + 1 }
        %l = scf.for 0 to %n iter_args(%a = %x) { ...; scf.yield %c }
        %r = the `%b` of `%l`
    """
    if REJECTION in op.attributes:
        raise refuse(
            op,
            "which of the proposed random numbers is accepted depends on what is differentiated",
            "`ml.stop_gradient` takes the shape parameter out of the derivative",
        )
    before, after = (region.blocks[0] for region in op.regions)
    with mlir.InsertionPoint(op):
        count = _iterations(op)

        def body(i: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            environment = dict(zip(before.arguments, values))
            copied(before, environment)
            _, *passed = block_ops(before)[-1].operands
            environment.update(zip(after.arguments, [environment.get(x, x) for x in passed]))
            copied(after, environment)
            return [environment.get(x, x) for x in block_ops(after)[-1].operands]

        last = emit.for_loop(emit.index(0), count, emit.index(1), body, list(op.operands))
        environment = dict(zip(before.arguments, last))
        ops = [*(x.owner.operation for x in last[:1]), *copied(before, environment)]
    sweep.active |= active_values(ops, sweep.active)
    _, *passed = block_ops(before)[-1].operands
    for old, inner in zip(op.results, passed):
        new = environment.get(inner, inner)
        if old in sweep.cotangents and sweep.is_active(new):
            sweep.add(new, sweep.cotangents[old], old in sweep.masked)
        old.replace_all_uses_with(new)
    sweep.dead.append(op)
    sweep.run(ops)


def _iterations(op: mlir.Operation) -> mlir.Value:
    """The number of iterations of an `scf.while`, from a clone of it that counts them."""
    before, after = (region.blocks[0] for region in op.regions)
    index = emit.index(0).type
    types = [*(r.type for r in op.results), index]
    new = emit.create("scf.while", [*op.operands, emit.index(0)], types, regions=2)
    inits = [*(x.type for x in op.operands), index]
    for number, (block, arguments) in enumerate(((before, inits), (after, types))):
        with mlir.InsertionPoint(emit.block(new, arguments, number)):
            *given, count = new.regions[number].blocks[0].arguments
            environment = dict(zip(block.arguments, given))
            recomputed(block, environment)
            end = block_ops(block)[-1]
            if number:
                count = emit.same_type("arith.addi", count, emit.index(1))
            emit.create(end.name, [*(environment.get(x, x) for x in end.operands), count])
    return new.results[len(types) - 1]
