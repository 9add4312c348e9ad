"""Reductions read: the combination of an accumulator with a term, and pairs of an extreme and its index."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from mlirml.analysis.constants import float_of
from mlirml.analysis.traits import COMPARISONS
from mlirml.analysis.values import depends_on
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.ir.combiners import COMBINERS, Combiner, Formula

_SEVERAL = [combiner for combiner in COMBINERS.values() if combiner.several is not None]
_MIRRORED = str.maketrans("lg", "gl")
"""The predicate with its operands exchanged."""
_COMMUTES = frozenset(op for op in COMBINERS if "." in op)


@dataclass(frozen=True)
class Combination:
    """`ops`, the last of which has the result, combine an accumulator and `term` by a combiner."""

    combiner: Combiner
    ops: tuple[mlir.Operation, ...]
    term: mlir.Value

    @property
    def op(self) -> mlir.Operation:
        """The operation with the result."""
        return self.ops[-1]


def combination_of(value: mlir.Value, accumulator: mlir.Value) -> Combination | None:
    """The combination in `value = combiner(accumulator, term)`; None for other values.

    The term may depend on the accumulator, or there may be other uses of it, where `is_only_use` is not asked.
    """
    op = defining_op(value)
    if op is None:
        return None
    for combiner in _SEVERAL:
        for name in ("a", "b"):
            found = _Match(name, accumulator)
            if found.matches(combiner.formula, value) and found.term is not None:
                return Combination(combiner, tuple(found.ops), found.term)
    terms = [operand for operand in op.operands if operand != accumulator]
    single = COMBINERS.get(op.name) if len(terms) == 1 else None
    return Combination(single, (op,), terms[0]) if single is not None else None


class _Match:
    """A formula that is compared with a value; `name` is that of the accumulator in it."""

    def __init__(self, name: str, accumulator: mlir.Value) -> None:
        self.name = name
        self.accumulator = accumulator
        self.term: mlir.Value | None = None
        self.ops: list[mlir.Operation] = []

    def matches(self, formula: Formula, value: mlir.Value) -> bool:
        """True if a value is computed by a formula of the accumulator and the term."""
        if formula == self.name:
            return bool(value == self.accumulator)
        if isinstance(formula, str):
            self.term = value if self.term is None else self.term
            return bool(value == self.term) and value != self.accumulator
        if not isinstance(formula, tuple):
            number = float_of(value)
            location = mlir.Location.unknown(value.context)
            return number is not None and number == mlir.FloatAttr.get(value.type, formula, location).value
        op, (name, *wanted) = defining_op(value), formula
        if op is None or op.name != name or len(op.operands) != len(wanted):
            return False
        orders = [list(op.operands), list(op.operands)[::-1]] if name in _COMMUTES else [list(op.operands)]
        before = self.term, len(self.ops)
        for operands in orders:
            if all(self.matches(each, operand) for each, operand in zip(wanted, operands, strict=True)):
                self.ops.append(op)
                return True
            self.term = before[0]
            del self.ops[before[1] :]
        return False


def is_only_use(combination: Combination, accumulator: mlir.Value, others: Sequence[mlir.Operation] = ()) -> bool:
    """True if nothing but `others` uses the accumulator or an intermediate value, and one operation uses the result."""
    *inner, (result,) = (op.results for op in combination.ops)
    within = [accumulator, *(value for values in inner for value in values)]
    users = [use.owner.operation for value in within for use in value.uses]
    return all(user in (*combination.ops, *others) for user in users) and sum(1 for _ in result.uses) == 1


@dataclass(frozen=True)
class Argmax:
    """Result `value` is the extreme of `term`, result `index` the `position` where it is; both change where `better`.

        better = term > best; yield select(better, term, best), select(better, position, before)

    The value may be computed as a maximum or minimum, too.
    """

    value: int
    index: int
    term: mlir.Value
    position: mlir.Value
    better: mlir.Value


def argmaxes_of(
    yields: Sequence[mlir.Value], accumulators: Sequence[mlir.Value], is_position: Callable[[mlir.Value], bool]
) -> Iterator[Argmax]:
    """The pairs of results that are an argmax or argmin; `is_position` is True for the index of the reduced loop."""
    for index, value in itertools.permutations(range(len(yields)), 2):
        place, best = defining_op(yields[index]), accumulators[value]
        if place is None or place.name != "arith.select" or place.operands[2] != accumulators[index]:
            continue
        better, position, _ = place.operands
        term = _term_of(yields[value], better, best)
        if term is None or not is_position(position) or depends_on(term, accumulators):
            continue
        if depends_on(better, [best]) and not depends_on(better, [accumulators[index]]):
            yield Argmax(value, index, term, position, better)


def _term_of(value: mlir.Value, better: mlir.Value, best: mlir.Value) -> mlir.Value | None:
    """The term of `select(better, term, best)`, or of the extreme that this is."""
    op = defining_op(value)
    if op is not None and op.name == "arith.select":
        return op.operands[1] if (op.operands[0], op.operands[2]) == (better, best) else None
    found = combination_of(value, best)
    if found is None or found.combiner.ignores_nan:  # `maxnumf` replaces a best value that is NaN, `better` does not
        return None
    return found.term if found.combiner is extreme_of(better, found.term, best) else None


def extreme_of(better: mlir.Value, term: mlir.Value, best: mlir.Value) -> Combiner | None:
    """The extreme that takes `term` instead of `best` where a condition holds; None for other conditions.

    cmpi sgt, term, best                                                a maximum of integers
    cmpf ogt, term, best                                                ... of floats, NaN terms ignored
    cmpf ogt, term, best or (cmpf uno, term, term and cmpf ord, best, best)     ... the first NaN kept
    """
    op = defining_op(better)
    keeps_nan = op is not None and op.name == "arith.ori" and _is_first_nan(op.operands[1], term, best)
    if keeps_nan and op is not None:
        op = defining_op(op.operands[0])
    if op is None or op.name not in COMPARISONS:
        return None
    predicates = emit.INTEGER_PREDICATES if op.name == "arith.cmpi" else emit.FLOAT_PREDICATES
    number = mlir.IntegerAttr(op.attributes["predicate"]).value
    predicate = next((name for name, value in predicates.items() if value == number), "")
    if list(op.operands) == [best, term]:
        predicate = predicate.translate(_MIRRORED)
    elif list(op.operands) != [term, best]:
        return None
    found = [row for row in COMBINERS.values() if row.is_extreme and row.better == predicate]
    return next((row for row in found if row.ignores_nan == (row.is_float and not keeps_nan)), None)


def _is_first_nan(value: mlir.Value, term: mlir.Value, best: mlir.Value) -> bool:
    """True for the condition that `term` is NaN and `best` is not."""
    op = defining_op(value)
    if op is None or op.name != "arith.andi":
        return False
    tests = [defining_op(operand) for operand in op.operands]
    found = {(t.attributes["predicate"].value, *t.operands) for t in tests if t is not None and t.name == "arith.cmpf"}
    return found == {(emit.FLOAT_PREDICATES["uno"], term, term), (emit.FLOAT_PREDICATES["ord"], best, best)}
