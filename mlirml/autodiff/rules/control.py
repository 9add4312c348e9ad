"""Transposes of control flow.

A loop goes backwards: the round `k` is computed again from the carried values that it began with, as far as its
derivative reads them, and swept. Only such values are kept; a loop that is linear in what it carries keeps none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    most_rounds,
    root,
    rounds_of,
)  # fmt: skip
from mlirml.autodiff.copies import copied
from mlirml.autodiff.liveness import live_values
from mlirml.autodiff.reverse import Sweep, active_values, transpose, used_by
from mlirml.autodiff.rows import rows_read
from mlirml.autodiff.rule_table import one_of_two_tensors
from mlirml.autodiff.saved import row_bytes, saved_values
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, operations


@transpose("scf.for")
def for_loop(sweep: Sweep, op: mlir.Operation) -> None:
    """The loop from its last round to its first."""
    lower, upper, step, *inits = op.operands
    block = op.regions[0].blocks[0]
    carried = list(block.arguments)[1:]
    yields = list(block_ops(block)[-1].operands)
    wanted = [i for i, r in enumerate(op.results) if is_float(r.type)
              and (r in sweep.cotangents or carried[i] in sweep.active)]  # fmt: skip
    outer = [x for x in used_by(op) if sweep.is_active(x) and x not in inits]
    outer += [x for x in dict.fromkeys(inits) if sweep.is_active(x) and _used_inside(x, block)]
    rounds = rounds_of(lower, upper, step)
    most = most_rounds(op, rounds)
    tapes = [_Tape(value, most) for value in carried]
    starts = [sweep.of(op.results[i]) for i in wanted] + [
        sweep.cotangents.get(x) or tensors.zeros_like(x) for x in outer
    ]
    masked = any(r in sweep.masked for r in op.results)
    rows = {x: complete for x, complete in rows_read(op).items() if x in outer and x not in sweep.cotangents}

    again = _Again()

    def body(k: mlir.Value, cotangents: list[mlir.Value]) -> list[mlir.Value]:
        last = emit.same_type("arith.subi", rounds, emit.index(1))
        again.number = number = emit.same_type("arith.subi", last, k)
        environment = {value: tape.read(number) for value, tape in zip(carried, tapes)}
        environment[block.arguments[0]] = emit.same_type(
            "arith.addi", lower, emit.same_type("arith.muli", number, step)
        )
        again.ops = ops = copied(block, environment)
        again.originals = {environment[r]: r for op in block_ops(block)[:-1] for r in op.results}
        inner = Sweep(_moved(sweep.active, environment), sweep.checkpoint_bytes, sweep.dead)
        inner.cotangents.update(zip(outer, cotangents[len(wanted) :]))
        inner.unwritten.update(rows)
        for i, cotangent in zip(wanted, cotangents):
            inner.add(environment.get(yields[i], yields[i]), cotangent, masked)
        # A value from outside that is yielded as it is has its sum in `inner` already.
        inner.run(ops)
        again.written = [x for x, complete in rows.items() if complete and x not in inner.unwritten]
        return [inner.of(environment[carried[i]]) for i in wanted] + [inner.of(x) for x in outer]

    results = emit.for_loop(emit.index(0), rounds, emit.index(1), body, starts)
    for x in again.written:
        loop = results[0].owner.operation
        with mlir.InsertionPoint(loop):
            loop.operands[3 + len(wanted) + outer.index(x)] = emit.empty(x.type)
    live = live_values(results[0].owner.operation) if results else set()
    if LEVELS not in op.attributes or attribute(op, LEVELS) == 1:
        more = _save(again, tapes, most, sweep, live)
        if more:
            tapes += more
            live = live_values(results[0].owner.operation)
    kept = [tape for tape in tapes if tape.is_read(live)]
    levels = _levels_of(op, most, kept, sweep.checkpoint_bytes)
    if levels > 1:
        sweep.dead += [tape.stand_in.owner for tape in tapes]
        sweep.dead.append(results[0].owner)  # built to see what it reads
        for_loop(sweep, _in_segments(sweep, op, most, levels))
        return
    for tape in tapes:
        if tape not in kept:
            tape.drop()
    _record(sweep, op, kept)
    for x, total in zip(outer, results[len(wanted) :]):
        sweep.cotangents[x] = total
        sweep.masked.add(x)
    for i, cotangent in zip(wanted, results):
        if sweep.is_active(inits[i]):
            sweep.add(inits[i], cotangent, True)


class _Again:
    """A round that is computed again in the loop that goes back."""

    number: mlir.Value
    ops: list[mlir.Operation]
    originals: dict[mlir.Value, mlir.Value]  # by their copies
    written: list[mlir.Value]  # values from outside for all of whose rows cotangents are stored


def _save(again: _Again, tapes: Sequence[_Tape], most: int, sweep: Sweep, live: set[mlir.Value]) -> list[_Tape]:
    """Tapes for results of costly operations, or what is cheaply computed from them, where they fit."""
    carried = [value for tape in tapes for value in tape.reads if value in live]
    ops = [op for op in again.ops if op not in sweep.dead]
    cut = saved_values(ops, carried, live)
    if cut is None or most * sum(row_bytes(value) or 0 for value in cut) > sweep.checkpoint_bytes:
        return []
    more = []
    for value in cut:
        if value not in again.originals:
            continue
        with value.owner.location, mlir.InsertionPoint(value.owner.parent):
            tape = _Tape(again.originals[value], most)
        with value.owner.location, mlir.InsertionPoint(value.owner):
            value.replace_all_uses_with(tape.read(again.number))
        more.append(tape)
    return more


def _levels_of(op: mlir.Operation, most: int, kept: Sequence[_Tape], checkpoint_bytes: int) -> int:
    """How many nested loops a loop is cut into, so that what is kept fits: 1 for one that stays whole.

    Each level costs a pass through all rounds. Of a loop with a known bound, which is cut at most once, the square
    root of its rounds is kept; of one without, tapes are short enough for any number of rounds.
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
        f"its derivative reads what each round began with, {row} bytes, and how many rounds there may be is not known",
        "give a bound: `ml.fori_loop(0, 1000, ...)` with `np.where(i < n, new, old)`; or make `n` static",
    )


def _in_segments(sweep: Sweep, op: mlir.Operation, most: int, levels: int) -> mlir.Operation:
    """The loop cut into segments, in the place of the loop."""
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
    """The values that a loop carried into each of its rounds, to be recorded if they are read."""

    def __init__(self, value: mlir.Value, rounds: int) -> None:
        self.value = value
        kind = value.type
        self._tensor = isinstance(kind, mlir.RankedTensorType)
        self.element = kind.element_type if self._tensor else kind
        self.shape = list(kind.shape) if self._tensor else []
        self.kind = mlir.RankedTensorType.get([rounds, *self.shape], self.element)
        self.stand_in = emit.empty(self.kind)
        self.reads: list[mlir.Value] = []

    @property
    def row_bytes(self) -> int:
        """What it takes in memory for a round."""
        width = getattr(self.element, "width", 64)
        elements: int = math.prod(self.shape)
        return elements * max(1, int(width) // 8)

    def read(self, number: mlir.Value) -> mlir.Value:
        """What went into a round."""
        if not self._tensor:
            value = emit.value("tensor.extract", [self.stand_in, number], self.element)
        else:
            value = emit.value("tensor.extract_slice", [self.stand_in, number], self.value.type, **self._row(1))
        self.reads.append(value)
        return value

    def write(self, number: mlir.Value, value: mlir.Value, tape: mlir.Value) -> mlir.Value:
        """Record what goes into a round."""
        if not self._tensor:
            return emit.value("tensor.insert", [value, tape, number], self.kind)
        return emit.value("tensor.insert_slice", [value, tape, number], self.kind, **self._row(1, 1))

    def _row(self, *groups: int) -> dict[str, mlir.Attribute]:
        rank = len(self.shape)
        attributes = tensors.slice_attributes(
            [mlir.ShapedType.get_dynamic_size(), *[0] * rank], [1, *self.shape], [1] * (rank + 1)
        )
        return attributes | {"operandSegmentSizes": emit.segments(*groups, 1, 0, 0)}

    def is_read(self, live: set[mlir.Value]) -> bool:
        """True if anything of it is among live values; if not, what stands in for it is dead code."""
        return any(value in live for value in self.reads)

    def drop(self) -> None:
        """Let dead code read nothing of it."""
        for value in self.reads:
            with value.owner.location, mlir.InsertionPoint(value.owner):
                other = emit.empty(value.type) if self._tensor else emit.number(value.type, 0)
            value.replace_all_uses_with(other)
            value.owner.erase()
        self.stand_in.owner.erase()


def _record(sweep: Sweep, op: mlir.Operation, tapes: Sequence[_Tape]) -> None:
    """Let the loop write tapes; the stand-ins give way to them."""
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
                for place, tape in enumerate(tapes):
                    if tape.value in environment and written[place] == values[len(inits) + place]:
                        written[place] = tape.write(number, environment[tape.value], written[place])

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
        tape.stand_in.replace_all_uses_with(new)
        sweep.dead.append(tape.stand_in.owner)
    sweep.dead.append(op)


def _moved(active: set[mlir.Value], environment: dict[mlir.Value, mlir.Value]) -> set[mlir.Value]:
    """What is active after values were replaced."""
    return active | {new for old, new in environment.items() if old in active}


def _used_inside(value: mlir.Value, block: mlir.Block) -> bool:
    return any(value in list(inner.operands) for op in block_ops(block) for inner in operations(op))


@transpose("scf.if", "scf.index_switch")
def branches(sweep: Sweep, op: mlir.Operation) -> None:
    """The branch that was taken is computed again and swept."""
    wanted = [r for r in op.results if r in sweep.cotangents]
    cotangents = [sweep.cotangents[r] for r in wanted]
    outer = [x for x in used_by(op) if sweep.is_active(x)]
    if not outer:
        return
    kinds = [x.type for x in outer]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = emit.create(op.name, list(op.operands), kinds, attributes, regions=len(op.regions))
    for number, region in enumerate(op.regions):
        (block,) = region.blocks
        with mlir.InsertionPoint(emit.block(new, [], number)):
            environment: dict[mlir.Value, mlir.Value] = {}
            ops = copied(block, environment)
            inner = Sweep(_moved(sweep.active, environment), sweep.checkpoint_bytes, sweep.dead)
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
    """The cotangent goes to the tensor that was chosen, zeros to the other one."""
    condition, a, b = op.operands
    cotangent = sweep.cotangents[op.results[0]]
    zeros = tensors.zeros_like(cotangent)
    for value, pair in ((a, (cotangent, zeros)), (b, (zeros, cotangent))):
        if sweep.is_active(value):
            sweep.add(value, emit.same_type("arith.select", condition, *pair), True)


@transpose("scf.while")
def while_loop(sweep: Sweep, op: mlir.Operation) -> None:
    """How many rounds there were is not known, so they cannot be gone back."""
    raise refuse(
        op,
        "the number of rounds is only known when it has ended",
        "use `ml.fori_loop` or `ml.scan` with a bound, and `ml.cond` or `np.where` to stop changing earlier",
    )
