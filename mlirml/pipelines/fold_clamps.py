"""Fold clamps: an index that a check of @main has found to be in bounds is not clamped any more.

Before:
    scf.for %i = ... {
      %key = memref.load %keys[%i] : memref<9xi64>
      %moved = arith.addi %key, %c4 : i64
      %inside = arith.cmpi ult, %moved, %c8 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 4 : i64}
      %index = arith.index_cast %key : i64 to index
      %negative = arith.cmpi slt, %index, %c0 : index
      %from_end = arith.addi %index, %c4 : index
      %place = arith.select %negative, %from_end, %index : index
      %clamped = arith.minui %place, %c3 : index
      %a = memref.load %x[%clamped] : memref<4xf32>
      ...
After:
    scf.for %i = ... {
      ...
      cf.assert %inside, "index out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 4 : i64}
      ...
      %place = arith.select %negative, %from_end, %index : index
      %a = memref.load %x[%place] : memref<4xf32>
      ...

Capture clamps each index that it asserts, since most functions go on after a failed check (`mlirml-collect-checks`).
@main returns at once instead, so that a check bounds its number in all that follows it in its block, the regions of
those operations included. Whether a clamp changes anything is found by interval arithmetic from there.

The pass comes last before control flow becomes branches: a pass that moves a load before the check needs the clamp.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirml.dataclass import dataclass
from mlirml.ir import block_ops, defining_op, has_op, mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.pipelines.lower_asserts import returns_at_once
from mlirml.pipelines.rounds import constant_of

Interval = tuple[int, int]
"""The least and greatest value of a signed integer."""
Facts = Mapping[mlir.Value, Interval]
"""What checks have found about numbers that are not themselves a sum or cast of another (see `origin`)."""

_ULT, _SLT = 6, 2  # predicates of `arith.cmpi`
_SIGNED_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")
_UNSIGNED_CASTS = ("arith.index_castui", "arith.extui")


@register
@dataclass(frozen=True)
class FoldClampsPass(Pass):
    """Drop the `arith.minui` of indices that a check has found to be in bounds before."""

    name = "mlirml-fold-clamps"

    def run(self, module: mlir.Operation) -> None:
        if has_op(module, ("cf.assert",)) and has_op(module, ("arith.minui",)):
            for function in named_operations(module, ("func.func",)):
                if returns_at_once(function):
                    fold_in(function, {})


def fold_in(op: mlir.Operation, facts: Facts) -> None:
    """Fold the clamps in the regions of an operation, given what is known before it."""
    for region in op.regions:
        for block in region.blocks:
            known = dict(facts)
            for inner in block_ops(block):
                if inner.name == "cf.assert":
                    learn(inner, known)
                elif inner.name == "arith.minui":
                    fold(inner, known)
                else:
                    fold_in(inner, known)


def learn(check: mlir.Operation, known: dict[mlir.Value, Interval]) -> None:
    """Note the interval of the number in `number + constant < limit`, compared as unsigned integers."""
    comparison = defining_op(check.operands[0])
    if comparison is None or comparison.name != "arith.cmpi" or predicate_of(comparison) != _ULT:
        return
    limit = constant_of(comparison.operands[1])
    if limit is None or limit <= 0:
        return
    number, interval = origin(comparison.operands[0], (0, limit - 1))
    if interval is not None:
        low, high = known.get(number, interval)
        low, high = max(low, interval[0]), min(high, interval[1])
        if low <= high:
            known[number] = low, high


def fold(clamp: mlir.Operation, known: Facts) -> None:
    """Replace a clamp by its operand, if that is no more than the limit whenever it is computed."""
    limit, found = constant_of(clamp.operands[1]), interval_of(clamp.operands[0], known)
    if limit is not None and found is not None and found[0] >= 0 and found[1] <= limit:
        clamp.results[0].replace_all_uses_with(clamp.operands[0])
        clamp.erase()


def origin(value: mlir.Value, interval: Interval) -> tuple[mlir.Value, Interval | None]:
    """The number that constants are added to, and its interval, given that of the sum.

    Casts that keep a signed integer are seen through. The interval is None where an addition could have wrapped.
    """
    found: Interval | None = interval
    while (op := defining_op(value)) is not None:
        if op.name == "arith.addi" and (constant := constant_of(op.operands[1])) is not None:
            value = op.operands[0]
            found = None if found is None else within((found[0] - constant, found[1] - constant), value)
        elif op.name in _SIGNED_CASTS and width_of(op.operands[0]) <= width_of(value):
            value = op.operands[0]
            bound = 1 << width_of(value) - 1
            found = None if found is None else (max(found[0], -bound), min(found[1], bound - 1))
        else:
            break
    return value, found


def predicate_of(comparison: mlir.Operation) -> int:
    """What an `arith.cmpi` asks."""
    return int(mlir.IntegerAttr(comparison.attributes["predicate"]).value)


def width_of(value: mlir.Value) -> int:
    """How many bits an integer has; an index has 64 on the host."""
    return int(mlir.IntegerType(value.type).width) if isinstance(value.type, mlir.IntegerType) else 64


def within(interval: Interval, value: mlir.Value) -> Interval | None:
    """An interval, if all of it are signed integers of a value's type: nothing has wrapped."""
    bound = 1 << width_of(value) - 1
    return interval if -bound <= interval[0] and interval[1] < bound else None


def interval_of(value: mlir.Value, known: Facts) -> Interval | None:
    """The interval of an integer, if one is known and nothing wraps on the way to it."""
    if value in known:
        return known[value]
    op, constant = defining_op(value), constant_of(value)
    found: Interval | None = None
    if constant is not None:
        found = constant, constant
    elif op is None:
        pass
    elif op.name in _SIGNED_CASTS:
        found = interval_of(op.operands[0], known)
    elif op.name in _UNSIGNED_CASTS:
        found = interval_of(op.operands[0], known)
        found = None if found is not None and found[0] < 0 else found
    elif op.name == "arith.addi":
        terms = [term for operand in op.operands if (term := interval_of(operand, known)) is not None]
        found = (sum(low for low, _ in terms), sum(high for _, high in terms)) if len(terms) == 2 else None
    elif op.name == "arith.select":
        found = interval_of_select(op, known)
    return None if found is None else within(found, value)


def interval_of_select(op: mlir.Operation, known: Facts) -> Interval | None:
    """The interval of `number + offset < limit ? this : that`: each of them counts only where it is chosen."""
    comparison = defining_op(op.operands[0])
    if comparison is None or comparison.name != "arith.cmpi" or predicate_of(comparison) != _SLT:
        return None
    limit, compared = constant_of(comparison.operands[1]), interval_of(comparison.operands[0], known)
    if limit is None or compared is None:
        return None
    low, high = compared
    found = []
    for arm, interval in zip(op.operands[1:], ((low, min(high, limit - 1)), (max(low, limit), high))):
        if interval[0] <= interval[1]:
            number, narrowed = origin(comparison.operands[0], interval)
            taken = None if narrowed is None else interval_of(arm, {**known, number: narrowed})
            if taken is None:
                return None
            found.append(taken)
    return min(low for low, _ in found), max(high for _, high in found)
