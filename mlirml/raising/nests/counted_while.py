"""Turn a `while` that counts up to a limit into a `for`.

    %r:2 = scf.while (%i = %a, %n = %n0) : (i64, i64) -> (i64, i64) {
      %going_on = arith.cmpi slt, %i, %b : i64
      scf.condition(%going_on) %i, %n : i64, i64
    } do {
    ^bb0(%i: i64, %n: i64):
      ... %m ...
      %j = arith.addi %i, %c1 : i64
      scf.yield %j, %m
    }

becomes, with the casts between i64 and index,

    %m = scf.for %i = %a to %b step %c1 iter_args(%n = %n0) -> (i64) {
      ... %m ...
      scf.yield %m
    }
    %j = arith.maxsi %a, %b

so that its indices are known to be in bounds, and it can be raised. The condition must be this comparison alone, and
each iteration must add the same constant to the counter.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.ranges import Ranges
from mlirml.analysis.while_ranges import is_outside
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch
from mlirml.raising.nests.counters import end_value

_LESS, _GREATER = 2, 4  # slt, sgt
_FAR = 1 << 61
"""Values nearer to zero than this do not overflow in the computations on two of them here."""


@dataclass(frozen=True)
class Counted:
    """A counting loop: `number` is the position of the counter among the carried values; `step` is added to it.

    `passed` has, for each argument of the second block, the position of the carried value that it has.
    """

    loop: mlir.Operation
    number: int
    limit: mlir.Value
    step: int
    passed: tuple[int, ...]


def count_loops(function: mlir.Operation) -> None:
    """Turn the counting `scf.while` of a function into `scf.for`, inner ones first."""
    ranges = Ranges()
    for loop, match in matched(match_counted, reversed(named_operations(function, ("scf.while",))), ranges):
        with loop.location, mlir.InsertionPoint(loop):
            build_for(match)
        loop.erase()


def match_counted(loop: mlir.Operation, ranges: Ranges) -> Counted:
    """The counter of a loop; raises `NoMatch` if it has none."""
    before, after = (region.blocks[0] for region in loop.regions)
    *others, final = block_ops(before)
    test = defining_op(final.operands[0])
    if test is None or test.name != "arith.cmpi" or test not in others:
        raise NoMatch("the condition is no comparison")
    if any(op != test and op.name != "arith.constant" for op in others):
        raise NoMatch("more is computed in the condition")
    arguments, forwarded = list(before.arguments), list(final.operands)[1:]
    if any(value not in arguments for value in forwarded):
        raise NoMatch("more is passed on than what is carried")
    passed = tuple(arguments.index(value) for value in forwarded)
    predicate = mlir.IntegerAttr(test.attributes["predicate"]).value
    counter, limit = test.operands if predicate == _LESS else list(test.operands)[::-1]
    if predicate not in (_LESS, _GREATER) or counter not in arguments or not is_outside(limit, loop):
        raise NoMatch("it does not count up to a number")
    number = arguments.index(counter)
    if str(counter.type) not in ("i64", "index") or number not in passed:
        raise NoMatch("the counter is no index")
    added = defining_op(block_ops(after)[-1].operands[number])
    inside = [argument for argument, place in zip(after.arguments, passed, strict=True) if place == number]
    if added is None or added.name != "arith.addi" or not any(value in inside for value in added.operands):
        raise NoMatch("an iteration does not add to the counter")
    by = next((value for value in added.operands if value not in inside), None)
    step = constant_of(by) if by is not None else None
    if step is None:
        raise NoMatch("an iteration adds another number each time")
    start = loop.operands[number]
    if step < 1 or (step > 1 and not (ranges.of(start)[0] > -_FAR and max(ranges.of(limit)[1], step) < _FAR)):
        raise NoMatch("the counter may wrap")
    return Counted(loop, number, limit, step, passed)


def build_for(match: Counted) -> None:
    """Build the loop at the insertion point, and replace the results of the `scf.while`."""
    loop, number = match.loop, match.number
    type_ = loop.operands[number].type
    inits = [value for place, value in enumerate(loop.operands) if place != number]
    lower, upper = as_index(loop.operands[number]), as_index(outside(match.limit, loop))
    bounds = [lower, upper, emit.index(match.step)]
    new = emit.create("scf.for", [*bounds, *inits], [value.type for value in inits], regions=1)
    body = new.regions[0].blocks.append(
        mlir.IndexType.get(), *[v.type for v in inits], arg_locs=[loop.location] * (1 + len(inits))
    )
    with mlir.InsertionPoint(body):
        counter = as_type(body.arguments[0], type_)
    carried = list(body.arguments)[1:]
    carried.insert(number, counter)
    after = loop.regions[1].blocks[0]
    for argument, place in zip(after.arguments, match.passed, strict=True):
        argument.replace_all_uses_with(carried[place])
    *ops, final = block_ops(after)
    for op in ops:
        body.append(op)
    with final.location, mlir.InsertionPoint(body):
        emit.create("scf.yield", [value for place, value in enumerate(final.operands) if place != number])
    results = list(new.results)
    results.insert(number, as_type(end_value(lower, upper, match.step, Ranges()), type_))
    final.erase()
    for result, place in zip(loop.results, match.passed, strict=True):
        result.replace_all_uses_with(results[place])


def outside(value: mlir.Value, loop: mlir.Operation) -> mlir.Value:
    """A value before the loop: a constant may have to be cloned."""
    op = defining_op(value)
    if op is None or op.block != loop.regions[0].blocks[0]:
        return value
    return op.clone().results[0]


def as_index(value: mlir.Value) -> mlir.Value:
    """A 64-bit integer as an index."""
    return as_type(value, mlir.IndexType.get())


def as_type(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """A 64-bit integer or an index, converted to the other type if needed."""
    return value if value.type == type_ else emit.value("arith.index_cast", [value], type_)
