"""Compute indices in `index` type from loop variables, without casts to integers and back.

    %n = arith.index_cast %i : index to i64
    %m = arith.addi %n, %c1_i64 : i64             %p = arith.addi %i, %c1 : index
    %p = arith.index_castui %m : i64 to index

Comparisons and min/max that the bounds of loops determine are folded; for `a` that is not negative, `a - a / b * b` is
a remainder, and a shift of `a` to the right fills in zeros. So no guard is left for an index that cannot be negative,
or for a division of one.

An index has 64 bits, so that arithmetic in i64 wraps as arithmetic in `index` does, and both casts keep all bits.
Narrower integers are unchanged unless the index is known to fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import CLAMPS, Ranges, clamped_operand, decided, remainder_of
from mlirml.analysis.traits import INDEX_CASTS
from mlirml.analysis.values import operands_first
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.ir.rank_zero import insertion_point_after
from mlirml.raising.nests.conditions import Limits

_ARITHMETIC = frozenset(
    f"arith.{name}"
    for name in (
        "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "maxsi", "minsi",
        "maxui", "minui", "andi", "ori", "xori", "select",
    )
)  # fmt: skip


def make_indices_plain(function: mlir.Operation) -> None:
    """Rewrite the casts to `index` and the comparisons of integers that come from indices."""
    ops = list(operations(function))
    plain = _Plain(Ranges())
    for op in ops:
        if op.name in INDEX_CASTS and isinstance(op.results[0].type, mlir.IndexType):
            if plain.is_rooted(op.operands[0]):
                op.results[0].replace_all_uses_with(plain.index(op.operands[0]))
        elif op.name == "arith.cmpi" and plain.compares_indices(op):
            for number, operand in enumerate(op.operands):
                op.operands[number] = plain.index(operand)


class _Plain:
    """Integers as indices."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._rooted: dict[mlir.Value, bool] = {}
        self._made: dict[mlir.Value, mlir.Value] = {}

    def compares_indices(self, op: mlir.Operation) -> bool:
        """True if integers computed from indices are compared with each other or with constants."""
        rooted = [self.is_rooted(v) for v in op.operands]
        known = [is_wide(v.type) and _number(v) is not None for v in op.operands]
        return any(rooted) and all(map(any, zip(rooted, known)))

    def is_rooted(self, value: mlir.Value) -> bool:
        """True if an integer is computed from an index and may be computed in `index` type."""
        for each in operands_first(value, self._unknown_integers):
            if each not in self._rooted:
                self._rooted[each] = self._finds_root(each)
        return self._rooted[value]

    def _unknown_integers(self, value: mlir.Value) -> Sequence[mlir.Value]:
        """The integers that decide whether another one is computed from an index, if that is not known."""
        op = defining_op(value)
        return _integers(op) if value not in self._rooted and op is not None and op.name in _ARITHMETIC else ()

    def _finds_root(self, value: mlir.Value) -> bool:
        op = defining_op(value)
        if op is None:
            return False
        if op.name in INDEX_CASTS and isinstance(op.operands[0].type, mlir.IndexType):
            return is_wide(value.type) or self._fits(op.operands[0], value.type)
        if op.name not in _ARITHMETIC or not is_wide(value.type):
            return False
        return any(self._rooted[v] for v in _integers(op))

    def _fits(self, index: mlir.Value, type_: mlir.Type) -> bool:
        low, high = self._ranges.of(index)
        return low is not None and high is not None and low >= 0 and high < 1 << (type_.width - 1)

    def index(self, value: mlir.Value) -> mlir.Value:
        """An integer as an index."""

        def integers(one: mlir.Value) -> Sequence[mlir.Value]:
            op = defining_op(one)
            is_computed = op is not None and op.name in _ARITHMETIC and one not in self._made and self.is_rooted(one)
            return _integers(op) if is_computed else ()

        for each in operands_first(value, integers):
            if each not in self._made:
                self._made[each] = self._make(each)
        return self._made[value]

    def _make(self, value: mlir.Value) -> mlir.Value:
        op = defining_op(value)
        if self.is_rooted(value):
            assert op is not None
            if op.name in INDEX_CASTS:
                return op.operands[0]
            integers = [self._made[v] for v in _integers(op)]
            with op.location, mlir.InsertionPoint(op):
                operands = [op.operands[0], *integers] if op.name == "arith.select" else integers
                return emit.same_type(op.name, *operands)
        number = _number(value)
        with value.location, insertion_point_after(value):
            if number is not None:
                return emit.index(number)
            return emit.value("arith.index_cast", [value], mlir.IndexType.get())


def decide(function: mlir.Operation) -> None:
    """Fold comparisons and min/max by integer range analysis; branches of `scf.if` refine ranges by the condition."""
    for block in function.regions[0].blocks:
        _decide_in(block, Limits(Ranges(), Reader(lambda _: True)))


def _decide_in(block: mlir.Block, limits: Limits) -> None:
    for op in block_ops(block):
        if op.name == "scf.if":
            for region, holds in zip(op.regions, (True, False)):
                for inner in region.blocks:
                    _decide_in(inner, limits.given(op.operands[0], holds))
        elif op.name.startswith("scf."):
            for region in op.regions:
                for inner in region.blocks:
                    _decide_in(inner, limits)
        rule = _DECISIONS.get(op.name)
        if rule is not None and not isinstance(op.results[0].type, mlir.ShapedType):
            with op.location, mlir.InsertionPoint(op):
                value = rule(op, limits)
            if value is not None:
                op.results[0].replace_all_uses_with(value)


def _compared(op: mlir.Operation, limits: Limits) -> mlir.Value | None:
    if isinstance(op.operands[0].type, mlir.ShapedType):
        return None
    predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
    outcome = decided(predicate, *map(limits.of, op.operands))
    return None if outcome is None else emit.constant(mlir.BoolAttr.get(outcome))


def _clamped(op: mlir.Operation, limits: Limits) -> mlir.Value | None:
    return clamped_operand(op, limits.of)


def _left_over(op: mlir.Operation, limits: Limits) -> mlir.Value | None:
    divided = remainder_of(op)
    if divided is None or limits.of(divided[0])[0] < 0 or limits.of(divided[1])[0] <= 0:
        return None
    return emit.same_type("arith.remsi", *divided)


def _shifted(op: mlir.Operation, limits: Limits) -> mlir.Value | None:
    """A shift of a number that is not negative moves zeros in, for which more is known of what comes after it."""
    return emit.same_type("arith.shrui", *op.operands) if limits.of(op.operands[0])[0] >= 0 else None


def _both(op: mlir.Operation, _: Limits) -> mlir.Value | None:
    """Fold `and` with false, and `or` with true."""
    deciding = 0 if op.name == "arith.andi" else -1
    return next((v for v in op.operands if is_bool(v) and _number(v) == deciding), None)


def _chosen(op: mlir.Operation, _: Limits) -> mlir.Value | None:
    condition = _number(op.operands[0]) if is_bool(op.operands[0]) else None
    return None if condition is None else op.operands[1 if condition else 2]


def is_bool(value: mlir.Value) -> bool:
    """True if a value is a condition."""
    return isinstance(value.type, mlir.IntegerType) and value.type.width == 1


_DECISIONS = {
    "arith.andi": _both,
    "arith.ori": _both,
    "arith.select": _chosen,
    "arith.cmpi": _compared,
    **dict.fromkeys(CLAMPS, _clamped),
    "arith.subi": _left_over,
    "arith.shrsi": _shifted,
}


def is_wide(type_: mlir.Type) -> bool:
    """True for the type of integers as wide as an index."""
    return isinstance(type_, mlir.IntegerType) and type_.width == 64


def _number(value: mlir.Value) -> int | None:
    """The value of an integer constant; -1 for true."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.BoolAttr):
        return -int(attribute.value)
    return attribute.value if isinstance(attribute, mlir.IntegerAttr) else None


def _integers(op: mlir.Operation) -> list[mlir.Value]:
    """The operands of an operation that have the type of its result."""
    return list(op.operands)[1 if op.name == "arith.select" else 0 :]
