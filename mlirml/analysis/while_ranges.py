"""Between which numbers an integer lies that an `scf.while` carries.

    scf.while (%i = %c0, %n = %c0) {
      %going_on = arith.cmpi slt, %i, %c8
      scf.condition(%going_on) %i, %n                        // %i from 0 to 8, %n from 0 to 8
    } do {
    ^bb0(%i: i64, %n: i64):                                  // %i from 0 to 7, %n from 0 to 7
      %m = scf.if %found -> (i64) { %n + 1 } else { %n }
      scf.yield %i + 1, %m
    }

A number that each iteration moves on, and that the condition limits, tells how many iterations there are at most; that
limits all numbers which an iteration adds constants to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir

if TYPE_CHECKING:
    from mlirml.analysis.ranges import Change, Range, Ranges

_WHOLE = -(1 << 63), (1 << 63) - 1
_SWAPPED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)
_TYPES = ("index", "i64")


@dataclass(frozen=True)
class _State:
    """A number that a loop carries: what it starts with, what an iteration does to it, and what the condition says."""

    start: Range
    added: Range
    given: Range | None
    limits: Range


def range_of_result(ranges: Ranges, loop: mlir.Operation, number: int) -> Range | None:
    """The range of a result of an `scf.while`; None where nothing is known."""
    forwarded = _last(loop.regions[0]).operands[1 + number]
    return _carried(ranges, loop, forwarded, is_inside=False)


def range_of_argument(ranges: Ranges, loop: mlir.Operation, value: mlir.Value) -> Range | None:
    """The range of an argument of one of the two blocks of an `scf.while`; None where nothing is known."""
    before, after = (region.blocks[0] for region in loop.regions)
    if value.owner == before:
        return _carried(ranges, loop, value, is_inside=False)
    number = list(after.arguments).index(value)
    return _carried(ranges, loop, _last(loop.regions[0]).operands[1 + number], is_inside=True)


def _carried(ranges: Ranges, loop: mlir.Operation, value: mlir.Value, *, is_inside: bool) -> Range | None:
    """The range of an argument of the first block: in an iteration, or wherever it is read."""
    states = _states(ranges, loop)
    arguments = list(loop.regions[0].blocks[0].arguments)
    state = states.get(arguments.index(value)) if value in arguments else None
    counts = [count for each in states.values() if (count := _iterations(each)) is not None]
    if state is None or not counts:
        return None
    most = min(counts)
    low, high = state.start if state.given is None else _either(state.start, state.given)
    last = state.limits[0] + state.added[0], state.limits[1] + state.added[1]
    found = _both(_moved((low, high), state.added, most), _either((low, high), last))
    if _both(found, _WHOLE) != found:  # it may wrap
        return None
    if not is_inside:
        return found
    inside = _both(_moved((low, high), state.added, max(most - 1, 0)), _both(found, state.limits))
    return inside if inside[0] <= inside[1] else found


def _moved(start: Range, added: Range, times: int) -> Range:
    """The range of a number to which something is added at most so many times."""
    return start[0] + times * min(added[0], 0), start[1] + times * max(added[1], 0)


def _states(ranges: Ranges, loop: mlir.Operation) -> dict[int, _State]:
    """The numbers that a loop hands on from its first block to its second as they are, by their position."""
    before, after = (region.blocks[0] for region in loop.regions)
    forwarded = list(_last(loop.regions[0]).operands)[1:]
    ends, found = _last(loop.regions[1]).operands, {}
    for number, argument in enumerate(before.arguments):
        if str(argument.type) not in _TYPES or argument not in forwarded:
            continue
        inner = after.arguments[forwarded.index(argument)]
        change: Change | None = ranges.changes(ends[number], inner)
        if change is None:
            continue
        limits = _WHOLE
        for one, limit in _conditions(ranges, loop, _last(loop.regions[0]).operands[0]):
            if one == argument:
                limits = _both(limits, limit)
        found[number] = _State(ranges.of(loop.operands[number]), *change, limits)
    return found


def _iterations(state: _State) -> int | None:
    """How many iterations there are at most, by a number that only grows or only shrinks; None if it does not tell."""
    if state.given is not None:
        return None
    (low, high), (least, greatest) = state.limits, state.added
    if least > 0 and high + greatest <= _WHOLE[1]:
        return max((high - state.start[0]) // least + 1, 0)
    if greatest < 0 and low + least >= _WHOLE[0]:
        return max((state.start[1] - low) // -greatest + 1, 0)
    return None


def _conditions(ranges: Ranges, loop: mlir.Operation, condition: mlir.Value) -> Iterator[tuple[mlir.Value, Range]]:
    """What holds of the arguments of the first block where a condition holds: `a < b` for a `b` from outside."""
    op = defining_op(condition)
    if op is None:
        return
    if op.name == "arith.andi":
        for operand in op.operands:
            yield from _conditions(ranges, loop, operand)
    elif op.name == "arith.select" and _is_false(op.operands[2]):
        for operand in list(op.operands)[:2]:
            yield from _conditions(ranges, loop, operand)
    elif op.name == "scf.if":
        number = list(op.results).index(condition)
        if _is_false(_last(op.regions[1]).operands[number]):
            yield from _conditions(ranges, loop, op.operands[0])
            yield from _conditions(ranges, loop, _last(op.regions[0]).operands[number])
    elif op.name == "arith.cmpi" and str(op.operands[0].type) in _TYPES:
        from mlirml.analysis.ranges import bound

        predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
        (a, b), block = op.operands, loop.regions[0].blocks[0]
        if a.owner == block and is_outside(b, loop):
            yield a, bound(predicate, ranges.of(b), _WHOLE)
        elif b.owner == block and is_outside(a, loop):
            yield b, bound(_SWAPPED[predicate], ranges.of(a), _WHOLE)


def is_outside(value: mlir.Value, loop: mlir.Operation) -> bool:
    """True if a value is the same in all iterations of a loop, and known without looking into it."""
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        return True
    around = op.parent if op is not None else value.owner.owner
    while around is not None and around.operation.name != "builtin.module":
        if around.operation == loop:
            return False
        around = around.operation.parent
    return True


def _is_false(value: mlir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "arith.constant" and str(op.attributes["value"]) == "false"


def _last(region: mlir.Region) -> mlir.Operation:
    """What ends the block of a region."""
    operations = region.blocks[0].operations
    return operations[len(operations) - 1].operation


def _both(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), min(a[1], b[1])


def _either(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])
