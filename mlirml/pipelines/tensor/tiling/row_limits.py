"""Build the limits of a mask for a block of rows: columns where it may hold, and columns where it holds in all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from mlirml.analysis.dimensions import Part
from mlirml.analysis.masks.limits import Both, Cut, Either, Limits, Not, Row, Sum
from mlirml.analysis.masks.terms import ELEMENT, INDEX, LITERAL, SCALAR, Term
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

Indices = Callable[[Part], mlir.Value]
"""The index of a tiled dimension."""


@dataclass(frozen=True)
class Columns:
    """Columns `may_low` to `may_high` where a condition may hold, and `low` to `high` where it holds."""

    may_low: mlir.Value
    may_high: mlir.Value
    low: mlir.Value
    high: mlir.Value


@dataclass
class Elements:
    """Builds terms at the insertion point, for the indices of one position."""

    index: Indices
    _built: dict[Term, mlir.Value] = field(default_factory=dict)

    def build(self, term: Term) -> mlir.Value:
        """The value of a term."""
        found = self._built.get(term)
        if found is None:
            found = self._built[term] = self._build(term)
        return found

    def _build(self, term: Term) -> mlir.Value:
        if term.name == INDEX:
            return self.index(term.payload)
        if term.name == LITERAL:
            return emit.number(term.type, term.payload)
        if term.name == SCALAR:
            return term.payload
        if term.name == ELEMENT:
            tensor, parts = term.payload
            indices = [emit.index(0) if part is None else self.index(part) for part in parts]
            return emit.value("tensor.extract", [tensor, *indices], term.type)
        assert term.op is not None
        operands = [self.build(arg) for arg in term.args]
        attributes = {name: term.op.attributes[name] for name in term.op.attributes}
        return emit.value(term.op.name, operands, term.type, **attributes)


def can_build(term: Term) -> bool:
    """True if all leaves of a term are indices, numbers, scalars, and elements of tensors in memory."""
    found, seen = [term], {term}
    while found:
        one = found.pop()
        if one.op is None or not one.args:
            if one.name not in (INDEX, LITERAL, SCALAR, ELEMENT):
                return False
            continue
        fresh = set(one.args) - seen  # terms share parts: each is looked at once
        seen |= fresh
        found += fresh
    return True


def terms_of(limits: Limits) -> list[Term]:
    """The terms that limits are computed from."""
    if isinstance(limits, Row):
        return [limits.condition]
    if isinstance(limits, Cut):
        return [term for cut in (limits.low, limits.high) if cut is not None for _, term in cut.terms + cut.rest]
    if isinstance(limits, Not):
        return terms_of(limits.a)
    return [*terms_of(limits.a), *terms_of(limits.b)] if isinstance(limits, Both | Either) else []


def row_columns(limits: Limits, elements: Elements, count: int) -> Columns:
    """The columns of one row, from 0 to `count`; no columns are from `count` to 0."""
    none, all_ = (emit.index(count), emit.index(0)), (emit.index(0), emit.index(count))
    if isinstance(limits, Cut):
        return _cut(limits, elements, count)
    if isinstance(limits, Row):
        condition = elements.build(limits.condition)
        low = emit.same_type("arith.select", condition, all_[0], none[0])
        high = emit.same_type("arith.select", condition, all_[1], none[1])
        return Columns(low, high, low, high)
    if isinstance(limits, Both):
        a, b = (row_columns(each, elements, count) for each in (limits.a, limits.b))
        may = _nonempty(_most(a.may_low, b.may_low), _least(a.may_high, b.may_high), count)
        return Columns(*may, *_nonempty(_most(a.low, b.low), _least(a.high, b.high), count))
    if isinstance(limits, Either):
        a, b = (row_columns(each, elements, count) for each in (limits.a, limits.b))
        may = _least(a.may_low, b.may_low), _most(a.may_high, b.may_high)
        return Columns(*may, *_joined((a.low, a.high), (b.low, b.high)))
    if isinstance(limits, Not):
        a = row_columns(limits.a, elements, count)
        may = _others(a.low, a.high, count, all_)
        return Columns(*may, *_others(a.may_low, a.may_high, count, none))
    return Columns(*all_, *none)


def block_columns(limits: Limits, index: Indices, rows: Part, block: int, count: int) -> tuple[Columns, mlir.Value]:
    """The columns of `block` rows, the first of which `index` is for, and whether the mask holds in each row."""

    def body(r: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        row = emit.same_type("arith.addi", index(rows), r)
        found = row_columns(limits, Elements(lambda part: row if part == rows else index(part)), count)
        some = emit.same_type("arith.andi", carried[4], emit.compare("slt", found.low, found.high))
        return [
            _least(carried[0], found.may_low),
            _most(carried[1], found.may_high),
            _most(carried[2], found.low),
            _least(carried[3], found.high),
            some,
        ]

    none, all_ = (emit.index(count), emit.index(0)), (emit.index(0), emit.index(count))
    inits = [*none, *all_, emit.constant(mlir.BoolAttr.get(True))]
    *edges, some = emit.for_loop(emit.index(0), emit.index(block), emit.index(1), body, inits)
    return Columns(*edges), some


def _cut(cut: Cut, elements: Elements, count: int) -> Columns:
    """The columns between two sums; any columns if a number is so large that the sum may wrap around."""
    safe: mlir.Value | None = None
    edges = []
    for sum_, missing in ((cut.low, 0), (cut.high, count)):
        if sum_ is None:
            edges.append(emit.index(missing))
            continue
        total, checks = _total(sum_, elements)
        edges.append(_least(_most(total, emit.index(0)), emit.index(count)))
        for check in checks:
            safe = check if safe is None else emit.same_type("arith.andi", safe, check)
    low, high = _nonempty(edges[0], edges[1], count)
    if safe is None:
        return Columns(low, high, low, high)
    none, all_ = (emit.index(count), emit.index(0)), (emit.index(0), emit.index(count))
    may = [emit.same_type("arith.select", safe, edge, other) for edge, other in zip((low, high), all_, strict=True)]
    must = [emit.same_type("arith.select", safe, edge, other) for edge, other in zip((low, high), none, strict=True)]
    return Columns(*may, *must)


def _total(sum_: Sum, elements: Elements) -> tuple[mlir.Value, list[mlir.Value]]:
    """The value of a sum as an index, and the conditions under which it does not wrap around."""
    checks: list[mlir.Value] = []
    total = _added(emit.index(sum_.constant), sum_.terms, elements, checks)
    if sum_.scale != 1:
        total = emit.same_type("arith.muli", total, emit.index(sum_.scale))
    if sum_.shift:
        total = emit.same_type("arith.addi", total, emit.index(sum_.shift))
    return _added(total, sum_.rest, elements, checks), checks


def _added(
    total: mlir.Value, terms: Sequence[tuple[int, Term]], elements: Elements, checks: list[mlir.Value]
) -> mlir.Value:
    """A sum with terms added; `checks` gets the conditions under which it does not wrap around."""
    for sign, term in terms:
        value = elements.build(term)
        if isinstance(value.type, mlir.IntegerType):
            value = emit.value("arith.index_cast", [value], mlir.IndexType.get())
        if term.name != INDEX:
            width = term.type.width if isinstance(term.type, mlir.IntegerType) else 64
            bound = 1 << (40 if width >= 64 else max(width - 5, 0))
            checks += [emit.compare("slt", value, emit.index(bound)), emit.compare("sgt", value, emit.index(-bound))]
        total = emit.same_type("arith.addi" if sign > 0 else "arith.subi", total, value)
    return total


def _nonempty(low: mlir.Value, high: mlir.Value, count: int) -> tuple[mlir.Value, mlir.Value]:
    """Columns `low` to `high`, or `count` to 0 if there are none."""
    some = emit.compare("slt", low, high)
    low = emit.same_type("arith.select", some, low, emit.index(count))
    return low, emit.same_type("arith.select", some, high, emit.index(0))


def _joined(a: tuple[mlir.Value, mlir.Value], b: tuple[mlir.Value, mlir.Value]) -> tuple[mlir.Value, mlir.Value]:
    """The columns of both intervals if they touch, else those of the longer one."""
    touch = emit.same_type("arith.andi", emit.compare("sle", a[0], b[1]), emit.compare("sle", b[0], a[1]))
    longer = emit.compare("sge", emit.same_type("arith.subi", a[1], a[0]), emit.same_type("arith.subi", b[1], b[0]))
    found = []
    for x, y, join in ((a[0], b[0], _least), (a[1], b[1], _most)):
        one = emit.same_type("arith.select", longer, x, y)
        found.append(emit.same_type("arith.select", touch, join(x, y), one))
    return found[0], found[1]


def _others(
    low: mlir.Value, high: mlir.Value, count: int, between: tuple[mlir.Value, mlir.Value]
) -> tuple[mlir.Value, mlir.Value]:
    """All other columns, if they are one interval; `between` if some are on both sides."""
    zero, end = emit.index(0), emit.index(count)
    empty = emit.compare("sge", low, high)
    first, last = emit.compare("sle", low, zero), emit.compare("sge", high, end)
    after = _nonempty(high, end, count)
    before = _nonempty(zero, low, count)
    found = []
    for number, whole in enumerate((zero, end)):
        edge = emit.same_type("arith.select", last, before[number], between[number])
        edge = emit.same_type("arith.select", first, after[number], edge)
        found.append(emit.same_type("arith.select", empty, whole, edge))
    return found[0], found[1]


def _least(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.minsi", a, b)


def _most(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.maxsi", a, b)
