"""Accumulations: statements `A[i] = A[i] + e`, also with products, extremes and bitwise operations."""

from __future__ import annotations

from mlirml.analysis.traits import COMPARISONS
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import NoMatch
from mlirml.raising.nests.model import Statement, is_pure

_FAMILIES = {name: name for name in COMBINERS} | {"arith.subf": "arith.addf", "arith.subi": "arith.addi"}


@dataclass(frozen=True)
class Combination:
    """`old` of the array and `terms` are combined by `name`; a subtracted term has True.

    `name` is `arith.select` for the extreme of `old` and one term by a comparison and a select, and for a combination
    under a condition.
    """

    name: str
    old: mlir.Value
    terms: tuple[tuple[mlir.Value, bool], ...]


def match_combination(statement: Statement) -> Combination:
    """The accumulation of a statement; raises `NoMatch` if its iterations may not be reordered."""
    old = [value for value, access in statement.reads.items() if access == statement.write]
    if len(old) != 1:
        raise NoMatch("it does not add to what it stores")
    return _match_value(statement.value, old[0])


def _match_value(value: mlir.Value, old: mlir.Value) -> Combination:
    op = defining_op(value)
    if op is not None and op.name == "arith.select":
        return _match_extreme(op, old) if uses(op.operands[0], old) else _match_where(op, old)
    name = _FAMILIES.get(op.name) if op is not None else None
    if name is None:
        raise NoMatch("later iterations need what it stores")
    terms: list[tuple[mlir.Value, bool]] = []
    while value != old:
        op = defining_op(value)
        if op is None or _FAMILIES.get(op.name) != name:
            raise NoMatch("later iterations need what it stores")
        first, second = op.operands
        taken = op.name in ("arith.subf", "arith.subi")
        if uses(first, old):
            value, term = first, second
        elif uses(second, old) and not taken:
            value, term = second, first
        else:
            raise NoMatch("later iterations need what it stores")
        if uses(term, old):
            raise NoMatch("later iterations need what it stores")
        terms.append((term, taken))
    if not terms:
        raise NoMatch("it stores what is there")
    return Combination(name, old, tuple(terms[::-1]))


def _match_where(op: mlir.Operation, old: mlir.Value) -> Combination:
    """`select(c, old + e, old)`, or with the operands exchanged: `c` may not depend on earlier iterations."""
    _, first, second = op.operands
    if old not in (first, second):
        raise NoMatch("later iterations need what it stores")
    inner = _match_value(second if first == old else first, old)
    return Combination("arith.select", old, inner.terms)


def _match_extreme(op: mlir.Operation, old: mlir.Value) -> Combination:
    condition, first, second = op.operands
    compare = defining_op(condition)
    terms = [value for value in (first, second) if value != old]
    if len(terms) != 1 or compare is None or compare.name not in COMPARISONS or uses(terms[0], old):
        raise NoMatch("later iterations need what it stores")
    predicate = mlir.IntegerAttr(compare.attributes["predicate"]).value
    ordering = predicate >= 2 if compare.name == "arith.cmpi" else predicate in (2, 3, 4, 5, 9, 10, 11, 12)
    if set(compare.operands) != {old, terms[0]} or not ordering:
        raise NoMatch("later iterations need what it stores")
    return Combination("arith.select", old, ((terms[0], False),))


def uses(value: mlir.Value, wanted: mlir.Value) -> bool:
    """True if `value` is computed from `wanted`."""
    todo, seen = [value], {value}
    while todo:
        found = todo.pop()
        if found == wanted:
            return True
        op = defining_op(found)
        if op is not None and is_pure(op):
            todo += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)
    return False
