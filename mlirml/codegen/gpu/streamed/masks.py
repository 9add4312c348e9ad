"""Columns that a mask leaves to a block of rows, where comparisons of indices mask scores.

    %keep = arith.cmpi sle, %column, (%row + 3)
    %score = arith.select %keep, %s, %minus_infinity

A tile may be skipped if each reduction of a pass would combine its identity with it, and each weight of a sink would be
zero: bodies are evaluated with the condition false, and with numbers that are not known as finite ones. So what is
masked is not read, and neither are infinities and NaN among it. Nothing is skipped unless each row keeps a column,
since a row that is masked whole has no maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlirml.analysis.attention import index_and_offset
from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.traits import FLOAT_CASTS
from mlirml.codegen.gpu.combiners import Combiner
from mlirml.codegen.gpu.index import Base, Digit, Form, UnknownDivisionError, form, split
from mlirml.codegen.gpu.outs import carried_outs
from mlirml.codegen.gpu.streamed.plan import Pass, Plan, mentions
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations

Number = float | bool | None
"""A value of a body where a condition is false; None if it is not known."""
_PREDICATES = {2: (False, True), 3: (False, False), 4: (True, True), 5: (True, False), 6: (False, True),
               7: (False, False), 8: (True, True), 9: (True, False)}  # fmt: skip
"""For slt, sle, sgt, sge and the unsigned ones: whether the first operand is the greater one, and whether strictly."""


@dataclass(frozen=True)
class Band:
    """A condition on an element of the scores: its index in one dimension less that in another is at most `offset`, or
    at least that.
    """

    row: int
    column: int
    at_most: bool
    offset: int

    def opposite(self) -> Band:
        """The condition that holds where this one does not."""
        return Band(self.row, self.column, not self.at_most, self.offset + (1 if self.at_most else -1))


def bands_of(plan: Plan, each: Pass) -> list[Band]:
    """The conditions without which nothing in a pass has to be computed."""
    found = [band for band in conditions(plan) if is_needed(plan, each, band)]
    return found if rows_have_columns(plan, found) else []


def conditions(plan: Plan) -> list[Band]:
    """The comparisons of indices by which elements of the scores are selected, and their opposites."""
    function = plan.products[0].op.parent.operation
    rank = len(plan.products[0].result.type.shape)
    found: dict[Band, None] = {}
    for op in operations(function):
        if op.name == "arith.cmpi" and op.parent.operation.name == "linalg.generic":
            band = band_of(op) if indexing_maps(op.parent.operation)[-1].n_dims == rank else None
            if band is not None:
                found[band] = found[band.opposite()] = None
    return list(found)


def band_of(compare: mlir.Operation) -> Band | None:
    """The condition of a comparison of the last index of a body with another one."""
    predicate = compare.attributes["predicate"].value
    if predicate not in _PREDICATES:
        return None
    greater, strict = _PREDICATES[predicate]
    (a, a_more), (b, b_more) = map(index_and_offset, compare.operands)
    last = indexing_maps(compare.parent.operation)[-1].n_dims - 1
    if predicate > 5 and min(a_more, b_more) < 0:
        return None  # the sum wraps around
    if a == last and 0 <= b < last:  # a + a_more < b + b_more: column - row < b_more - a_more
        offset = b_more - a_more
        return Band(b, last, not greater, offset + (strict if greater else -strict))
    if b == last and 0 <= a < last:
        offset = a_more - b_more
        return Band(a, last, greater, offset + (-strict if greater else strict))
    return None


def is_needed(plan: Plan, each: Pass, band: Band) -> bool:
    """True if a pass computes nothing where a condition is false."""
    evaluate = Evaluation(plan, band)
    for combiner in each.reductions:
        if not all(is_identity(combiner, n, evaluate(r.value)) for n, r in enumerate(combiner.reducers)):
            return False
    return all(evaluate.tensor(sink.op.operands[sink.sides[0].operand]) == 0 for sink in each.sinks)


def is_identity(combiner: Combiner, number: int, value: Number) -> bool:
    """True if a number changes nothing when it is combined."""
    reducer = combiner.reducers[number].combiner
    if value is None or isinstance(value, bool):
        return False
    return value == 0 if reducer.word == "sum" else bool(reducer.word == "maximum" and value == -math.inf)


class Evaluation:
    """Values of bodies where a condition is false; numbers that are not known are taken for finite ones."""

    def __init__(self, plan: Plan, band: Band) -> None:
        self.band = band
        self.products = [product.result for product in plan.products]
        self._known: dict[mlir.Value, Number] = {}

    def __call__(self, value: mlir.Value) -> Number:
        if value not in self._known:
            self._known[value] = None
            self._known[value] = self.evaluate(value)
        return self._known[value]

    def tensor(self, tensor: mlir.Value) -> Number:
        """The value of the element of a tensor."""
        op = defining_op(tensor)
        if op is None or tensor in self.products:
            return None
        if op.name == "linalg.fill":
            return self(op.operands[0])
        if op.name != "linalg.generic":
            return None
        number = list(op.results).index(tensor)
        if number in carried_outs(op):
            return None
        return self(block_ops(op.regions[0].blocks[0])[-1].operands[number])

    def evaluate(self, value: mlir.Value) -> Number:
        op = defining_op(value)
        if op is None:
            around = value.owner.owner.operation
            if around.name != "linalg.generic" or value.arg_number >= len(around.operands) - len(around.results):
                return None
            return self.tensor(around.operands[value.arg_number])
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            scalar = isinstance(attribute, mlir.FloatAttr | mlir.IntegerAttr | mlir.BoolAttr)
            return attribute.value if scalar else None
        if op.name == "arith.cmpi":
            band = band_of(op)
            return {self.band: False, self.band.opposite(): True}.get(band) if band is not None else None
        if op.name == "arith.select":
            condition, *both = map(self, op.operands)
            if condition is not None:
                return both[0] if condition else both[1]
            return both[0] if both[0] == both[1] else None
        if op.name in FLOAT_CASTS:
            found = self(op.operands[0])
            return found if found in (0, math.inf, -math.inf) else None
        rule = _RULES.get(op.name)
        return None if rule is None else rule(op, *map(self, op.operands))


Rule = Callable[..., Number]


def _add(op: mlir.Operation, a: Number, b: Number) -> Number:
    if a is None or b is None:
        known = b if a is None else a
        return known if known in (math.inf, -math.inf) else None
    return a + b


def _subtract(op: mlir.Operation, a: Number, b: Number) -> Number:
    return _add(op, a, None if b is None else -b)


def _negate(op: mlir.Operation, a: Number) -> Number:
    return None if a is None else -a


def _multiply(op: mlir.Operation, a: Number, b: Number) -> Number:
    if a is None or b is None:
        return 0.0 if 0 in (a, b) else None
    return a * b


def _divide(op: mlir.Operation, a: Number, b: Number) -> Number:
    if b is None or a is None:
        return 0.0 if a == 0 else None
    return a / b if b else None


def _exponential(op: mlir.Operation, a: Number) -> Number:
    return 0.0 if a == -math.inf else None


def _compare(op: mlir.Operation, a: Number, b: Number) -> Number:
    predicate = op.attributes["predicate"].value
    if predicate == 1:  # oeq: an infinity is no finite number
        if a is None or b is None:
            return False if math.inf in (a, b) or -math.inf in (a, b) else None
        return a == b
    if predicate == 14 and a is not None and b is not None:  # uno
        return math.isnan(a) or math.isnan(b)
    return None


def _and(op: mlir.Operation, a: Number, b: Number) -> Number:
    if a is False or b is False:
        return False
    return True if a is True and b is True else None


def _or(op: mlir.Operation, a: Number, b: Number) -> Number:
    if a is True or b is True:
        return True
    return False if a is False and b is False else None


_RULES: dict[str, Rule] = {
    "arith.addf": _add, "arith.subf": _subtract, "arith.mulf": _multiply, "arith.divf": _divide,
    "arith.negf": _negate, "math.exp": _exponential, "arith.cmpf": _compare, "arith.andi": _and, "arith.ori": _or,
}  # fmt: skip


def rows_have_columns(plan: Plan, bands: Sequence[Band]) -> bool:
    """True if each row has a column for which all conditions hold."""
    if not bands or len({(band.row, band.column) for band in bands}) > 1:
        return False
    shape = plan.products[0].result.type.shape
    rows, columns = shape[bands[0].row], shape[bands[0].column]
    most = min((band.offset for band in bands if band.at_most), default=columns)
    least = max((band.offset for band in bands if not band.at_most), default=-rows)
    return most >= max(least, 0) and least + rows <= columns


@dataclass(frozen=True)
class Window:
    """The columns that rows from `start` to `end` need: from `start + low` to `end + high`, where None is no limit."""

    start: Form
    low: int | None
    high: int | None


def window(plan: Plan, bands: Sequence[Band], first: Form, count: int) -> Window | None:
    """The columns that are needed of a block of rows that begins with one; None for all."""
    if not bands:
        return None
    row, column = (form(Digit(Base(name, size))) for name, size in (("row", plan.rows), ("column", plan.columns)))
    point = plan.point(form(Digit(Base("batch", plan.batches))), row, column)
    band = bands[0]
    exchanged = mentions(point[band.row], column)
    own, other = (band.column, band.row) if exchanged else (band.row, band.column)
    size = plan.products[0].result.type.shape[own]
    if point[other] != column or (point[own] != row and size % count):
        return None
    try:
        start = first if point[own] == row else split(first, size)[1]
    except UnknownDivisionError:
        return None
    high = min((band.offset for band in bands if band.at_most), default=None)
    low = max((band.offset for band in bands if not band.at_most), default=None)
    if exchanged:
        low, high = (None if high is None else -high), (None if low is None else -low)
    return Window(start, low, high)
