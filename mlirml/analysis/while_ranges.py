"""Ranges of the integers that an `scf.while` carries.

    scf.while (%i = %c0, %n = %c0) {
      %going_on = arith.cmpi slt, %i, %c8
      scf.condition(%going_on) %i, %n                        // %i from 0 to 8, %n from 0 to 8
    } do {
    ^bb0(%i: i64, %n: i64):                                  // %i from 0 to 7, %n from 0 to 7
      %m = scf.if %found -> (i64) { %n + 1 } else { %n }
      scf.yield %i + 1, %m
    }

A value that each iteration increments, and that the condition bounds, bounds the trip count; that in turn bounds all
values to which an iteration adds constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlirml.analysis.values import walk
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir

if TYPE_CHECKING:
    from mlirml.analysis.ranges import Change, Range, Ranges

SIGNED = 5
"""The last predicate of signed comparisons: eq, ne, slt, sle, sgt, sge; then ult, ule, ugt, uge."""
_WHOLE = -(1 << 63), (1 << 63) - 1
_SWAPPED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)
_TYPES = ("index", "i64")


@dataclass(frozen=True)
class _State:
    """A loop-carried value: its init, the increment of an iteration, and the bound by the condition."""

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
    """The range of an argument of the first block: within an iteration, or at any of its uses."""
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
    in_body = _both(_moved((low, high), state.added, max(most - 1, 0)), _both(found, state.limits))
    return in_body if in_body[0] <= in_body[1] else found


def _moved(start: Range, added: Range, times: int) -> Range:
    """The range of a value to which `added` is added at most `times` times."""
    return start[0] + times * min(added[0], 0), start[1] + times * max(added[1], 0)


def _states(ranges: Ranges, loop: mlir.Operation) -> dict[int, _State]:
    """The values that a loop forwards unchanged from its first block to its second, by their position."""
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
    """An upper bound of the trip count, from a value that only grows or only shrinks; None without one."""
    if state.given is not None:
        return None
    (low, high), (least, greatest) = state.limits, state.added
    if least > 0 and high + greatest <= _WHOLE[1]:
        return max((high - state.start[0]) // least + 1, 0)
    if greatest < 0 and low + least >= _WHOLE[0]:
        return max((state.start[1] - low) // -greatest + 1, 0)
    return None


def _conditions(ranges: Ranges, loop: mlir.Operation, condition: mlir.Value) -> Iterator[tuple[mlir.Value, Range]]:
    """The ranges of the arguments of the first block if a condition holds: `a < b` with an invariant `b`."""
    for value in walk(condition, _all_of):
        op = defining_op(value)
        if op is None or op.name != "arith.cmpi" or str(op.operands[0].type) not in _TYPES:
            continue
        predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
        (a, b), block = op.operands, loop.regions[0].blocks[0]
        if a.owner == block and is_outside(b, loop):
            yield a, bound(predicate, ranges.of(b), _WHOLE)
        elif b.owner == block and is_outside(a, loop):
            yield b, bound(_SWAPPED[predicate], ranges.of(a), _WHOLE)


def is_outside(value: mlir.Value, loop: mlir.Operation) -> bool:
    """True if a value is loop-invariant, and defined outside of the loop or constant."""
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
    """The terminator of the block of a region."""
    operations = region.blocks[0].operations
    return operations[len(operations) - 1].operation


def _both(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), min(a[1], b[1])


def _either(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def bound(predicate: int, other: Range, whole: Range) -> Range:
    """The range of a value that compares with a value in `other` as the predicate says."""
    low, high = other
    if predicate > SIGNED:
        if low < 0 or predicate > SIGNED + 2:
            return whole
        return 0, high - (predicate == SIGNED + 1)
    return ((low, high), whole, (whole[0], high - 1), (whole[0], high), (low + 1, whole[1]), (low, whole[1]))[predicate]


def _all_of(condition: mlir.Value) -> list[mlir.Value]:
    """The conditions that must all hold for a condition that combines them."""
    op = defining_op(condition)
    if op is not None and op.name == "arith.andi":
        return list(op.operands)
    if op is not None and op.name == "arith.select" and _is_false(op.operands[2]):
        return list(op.operands)[:2]
    if op is not None and op.name == "scf.if":
        number = list(op.results).index(condition)
        if _is_false(_last(op.regions[1]).operands[number]):
            return [op.operands[0], _last(op.regions[0]).operands[number]]
    return []
