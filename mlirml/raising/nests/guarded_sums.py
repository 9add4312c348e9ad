"""Sums guarded by an `if`, whose store index is linear in the loops wherever the condition holds.

%p = arith.select %c, %i, %c0 : index               if 0 <= i < n:
%o = tensor.extract %g[%p]                  is          g[i] += e
%s = arith.select %c, %o + %e, %o
tensor.insert %s into %g[%p]

Elsewhere the old element is stored back, at any index that is in bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirml.analysis.affine import Reader
from mlirml.analysis.values import combined
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import match_combination
from mlirml.raising.nests.model import Access, Statement

_AT_LEAST = {4: (1, -1, -1), 5: (1, -1, 0), 2: (-1, 1, -1), 3: (-1, 1, 0)}
"""By the predicate of `arith.cmpi` (sgt, sge, slt, sle) for `a` and `b`: the expression that is >= 0 where it holds,
`a` and `b` times a factor each plus a constant.
"""
_NEGATED = {4: 3, 5: 2, 2: 5, 3: 4}


@dataclass(frozen=True)
class Guarded:
    """A statement that is executed where all `conditions` are >= 0."""

    statement: Statement
    conditions: tuple[Linear, ...]


def match_guarded(statement: Statement, reader: Reader) -> Guarded:
    """A statement without its guard, and the conditions of the guard. Raises `NoMatch`."""
    if statement.op.name != "tensor.insert":
        raise NoMatch("it carries a number")
    old = match_combination(statement).old
    value = statement.value
    required: dict[mlir.Value, bool] = {}
    while (op := defining_op(value)) is not None and op.name == "arith.select" and old in list(op.operands)[1:]:
        condition, yes, no = op.operands
        required[condition] = no == old
        value = yes if no == old else no
    places = tuple(index_under_guards(index, required, reader) for index in list(statement.op.operands)[2:])
    write = Access(statement.write.array, places)
    reads = {v: write if v == old else access for v, access in statement.reads.items()}
    found = [condition for guard, holds in required.items() for condition in conditions_of(guard, holds, reader)]
    return Guarded(
        Statement(statement.op, statement.loops, statement.position, value, write, reads), tuple(dict.fromkeys(found))
    )


def index_under_guards(index: mlir.Value, required: Mapping[mlir.Value, bool], reader: Reader) -> Linear:
    """An index under the condition that all guards have their required value."""
    found = reader.read(index)
    while found is None:
        op = defining_op(index)
        if op is None or op.name != "arith.select" or op.operands[0] not in required:
            raise NoMatch("it stores at indices that are not linear in the loops")
        index = op.operands[1 if required[op.operands[0]] else 2]
        found = reader.read(index)
    return found


def conditions_of(guard: mlir.Value, holds: bool, reader: Reader) -> list[Linear]:
    """The expressions that must be >= 0 for a guard to hold, or not to hold."""
    return [_condition(each, holds, reader) for each in combined(guard, "arith.andi" if holds else "arith.ori")]


def _condition(guard: mlir.Value, holds: bool, reader: Reader) -> Linear:
    op = defining_op(guard)
    if op is None or op.name != "arith.cmpi":
        raise NoMatch("it runs on a condition that is not about the loops")
    a, b = (reader.read(operand) for operand in op.operands)
    predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
    signs = _AT_LEAST.get(predicate if holds else _NEGATED.get(predicate, -1))
    if a is None or b is None or signs is None:
        raise NoMatch("it runs on a condition that is not about the loops")
    return a * signs[0] + b * signs[1] + signs[2]
