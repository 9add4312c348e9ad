"""Scores as a kernel streams over them: products of two factors, what is computed of their elements, and its uses.

    s = a @ b                            products: the scores, of rows and columns
    m = the maxima of f(s)               reductions, along the columns
    o = g(s, m) @ v                      sinks: products of which one factor, the weights, are computed scores

A block of threads has some `rows` of the scores, and iterates over tiles of their `columns`, in as many passes as there
are reductions that depend on each other. A sink that sums over the rows of the scores is the same problem with rows and
columns exchanged. All operations on scores read and write them at their own point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from mlirml.analysis.structured import indexing_maps, is_contraction, sizes_of
from mlirml.analysis.values import depends_on, used_values
from mlirml.codegen.gpu.combiners import Combiner
from mlirml.codegen.gpu.contract.product import Product, flipped, has_zero_init, match_product
from mlirml.codegen.gpu.elements import Indices, apply, out_map
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.outs import carried_outs
from mlirml.codegen.gpu.reads import Untraceable, read_indices, reads, reads_of_operands
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

Store = tuple[mlir.Value, mlir.Value]


@dataclass(frozen=True)
class Pass:
    """One iteration over the columns: reductions that do not depend on each other, sinks, and the products needed."""

    reductions: tuple[Combiner, ...]
    sinks: tuple[Product, ...]
    products: tuple[Product, ...]


@dataclass(frozen=True)
class Plan:
    """A problem; the `rows` and `columns` of all products are those of the first, and side 0 of a sink its weights.

    `row_stores` are returned tensors with an element for each row, each with the reduction whose result it reads.
    `sink_stores` has those that are computed from each sink.
    """

    products: tuple[Product, ...]
    reductions: tuple[Combiner, ...]
    sinks: tuple[Product, ...]
    row_stores: tuple[tuple[Store, mlir.Value], ...]
    sink_stores: tuple[tuple[Store, ...], ...]

    @property
    def batches(self) -> int:
        return self.products[0].size(self.products[0].batch)

    @property
    def rows(self) -> int:
        return self.products[0].size(self.products[0].rows)

    @property
    def columns(self) -> int:
        return self.products[0].size(self.products[0].columns)

    def point(self, batch: Form, row: Form, column: Form) -> Indices:
        """The indices of an element of the scores."""
        return self.products[0].result_indices(batch, row, column)

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The iterations over the columns, in order."""
        known = [result for combiner in self.reductions for result in reduced_results(combiner)]
        levels: dict[mlir.Operation, int] = {}
        for op in [*(c.op for c in self.reductions), *(s.op for s in self.sinks)]:
            before = [c.op for c in self.reductions if c.op != op and depends_on_results(op, reduced_results(c))]
            levels[op] = max((1 + levels[each] for each in before), default=0)
        found = []
        for level in sorted(set(levels.values())):
            reductions = tuple(c for c in self.reductions if levels[c.op] == level)
            sinks = tuple(s for s in self.sinks if levels[s.op] == level)
            ops = [*(c.op for c in reductions), *(s.op for s in sinks)]
            values = [v for op in ops for v in used_values(op)]
            needed = tuple(p for p in self.products if any(reaches(v, p.result, known) for v in values))
            found.append(Pass(reductions, sinks, needed))
        return tuple(found)


def reduced_results(combiner: Combiner) -> list[mlir.Value]:
    """The results of an operation that are reduced."""
    return [combiner.op.results[n] for n in combiner.carried]


def row_indices(plan: Plan, target: mlir.Value, point: Indices) -> Indices:
    """The indices of a reduced result at a row."""
    op = next(combiner.op for combiner in plan.reductions if target in reduced_results(combiner))
    return apply(out_map(op, list(op.results).index(target)), point)


def depends_on_results(op: mlir.Operation, values: Sequence[mlir.Value]) -> bool:
    """True if an operation is computed from one of some values."""
    return any(depends_on(operand, values) for operand in used_values(op))


def reaches(value: mlir.Value, target: mlir.Value, known: Sequence[mlir.Value]) -> bool:
    """True if a value is computed from a target otherwise than by values that are known."""
    todo, seen = [value], set[mlir.Value]()
    while todo:
        each = todo.pop()
        if each == target:
            return True
        op = defining_op(each)
        if op is not None and each not in seen and each not in known:
            todo += used_values(op)
        seen.add(each)
    return False


def match_streamed(ops: Sequence[mlir.Operation], stores: Sequence[Store]) -> Plan:
    """Read the operations of a function as one problem; raises NoMatch."""
    contractions = [op for op in ops if is_contraction(op)]
    first: list[mlir.Operation] = []
    rest: list[mlir.Operation] = []
    for op in contractions:
        earlier = [result for other in contractions if other != op for result in other.results]
        (rest if depends_on_results(op, earlier) else first).append(op)
    reductions = [op for op in ops if op not in contractions and carried_outs(op)]
    if not first or not (rest or reductions):
        raise NoMatch("nothing is computed of scores")
    combiners = [Combiner(op) for op in reductions]
    product = match_product(first[0])
    try:
        return match_oriented(product, first[1:], combiners, rest, stores)
    except NoMatch:
        return match_oriented(flipped(product), first[1:], combiners, rest, stores)


def match_oriented(
    product: Product,
    others: Sequence[mlir.Operation],
    combiners: Sequence[Combiner],
    last: Sequence[mlir.Operation],
    stores: Sequence[Store],
) -> Plan:
    """The problem whose rows are those of one product; raises NoMatch."""
    symbols = [
        form(Digit(Base(name, product.size(loops))))
        for name, loops in (("batch", product.batch), ("row", product.rows), ("column", product.columns))
    ]
    if product.size(product.columns) == 1:
        raise NoMatch("the scores are a vector")
    batch, row, column = symbols
    point = product.result_indices(batch, row, column)
    products = [product, *(oriented(match_product(op), symbols, point) for op in others)]
    if not all(map(has_zero_init, products)):
        raise NoMatch("a product is added to something")
    checker = _Checker(products, combiners, point)
    for combiner in combiners:
        checker.check_reduction(combiner, column)
    sinks = [checker.sink(match_product(op), symbols) for op in last]
    rows: list[tuple[Store, mlir.Value]] = []
    by_sink: list[list[Store]] = [[] for _ in sinks]
    for value, out in stores:
        number = next((n for n, sink in enumerate(sinks) if depends_on(value, [sink.result])), None)
        if number is None:
            rows.append(((value, out), checker.row_source(value)))
        else:
            checker.check_sink_store(value, sinks, number, symbols)
            by_sink[number].append((value, out))
    return Plan(tuple(products), tuple(combiners), tuple(sinks), tuple(rows), tuple(map(tuple, by_sink)))


def oriented(product: Product, symbols: Sequence[Form], point: Indices) -> Product:
    """The product with its factors in the order in which its result has the point; raises NoMatch."""
    for each in (product, flipped(product)):
        sizes = [each.size(loops) for loops in (each.batch, each.rows, each.columns)]
        if sizes == [extent(symbol) for symbol in symbols] and each.result_indices(*symbols) == point:
            return each
    raise NoMatch("two products have other rows and columns")


def extent(symbol: Form) -> int:
    """The number of values of a symbol."""
    return 1 + (symbol.range[1] or 0)


class _Checker:
    """Checks that operations read scores at one point, and what was reduced of them in its row."""

    def __init__(self, products: Sequence[Product], combiners: Sequence[Combiner], point: Indices) -> None:
        self.point = point
        self.products = [product.result for product in products]
        self.rows = {result: combiner for combiner in combiners for result in reduced_results(combiner)}
        self.targets = {*self.products, *self.rows}

    def row(self, target: mlir.Value) -> Indices:
        """The indices of a reduced result at the row of the point."""
        op = self.rows[target].op
        return apply(out_map(op, list(op.results).index(target)), self.point)

    def check(self, found: Sequence[tuple[mlir.Value, Indices]]) -> None:
        """Raise NoMatch if something is read elsewhere."""
        for target, indices in found:
            if indices != (self.point if target in self.products else self.row(target)):
                raise NoMatch("scores are read at another point")

    def check_reduction(self, combiner: Combiner, column: Form) -> None:
        """Check a reduction: it reduces the columns."""
        op = combiner.op
        if len(sizes_of(op)) != len(self.point):
            raise NoMatch("a reduction does not have the loops of the scores")
        reduced = {d for d in range(len(self.point)) if all(not uses(op, n, d) for n in combiner.carried)}
        own = {d for d, index in enumerate(self.point) if mentions(index, column)}
        if reduced != own or any(
            uses(op, n, d) == (d in reduced) for n in combiner.carried for d in range(len(self.point))
        ):
            raise NoMatch("a reduction has other loops than the columns")
        try:
            self.check(reads_of_operands(op, list(self.point), self.targets - set(op.results)))
        except Untraceable:
            raise NoMatch("a reduction reads scores in another way") from None

    def sink(self, product: Product, symbols: Sequence[Form]) -> Product:
        """The product with the weights as its first factor; raises NoMatch."""
        batch, row, column = symbols
        weights = [n for n in (0, 1) if depends_on(product.op.operands[n], self.targets)]
        if len(weights) != 1 or not has_zero_init(product):
            raise NoMatch("no one factor is computed of scores")
        if product.sides[0].operand != weights[0]:
            product = flipped(product)
        sizes = [product.size(loops) for loops in (product.batch, product.rows, product.depth)]
        if sizes != [extent(symbol) for symbol in symbols]:
            raise NoMatch("the weights have other sizes than the scores")
        indices = apply(maps_of(product)[weights[0]], product.point(batch, row, Form(), column))
        try:
            self.check(reads(product.op.operands[weights[0]], indices, self.targets))
        except Untraceable:
            raise NoMatch("the weights read scores in another way") from None
        return product

    def row_source(self, value: mlir.Value) -> mlir.Value:
        """The reduced result that a returned tensor reads row by row; raises NoMatch."""
        for target in self.rows:
            if depends_on(value, [target]):
                indices = read_indices(value, target, self.row(target))
                if indices is not None and self.is_traced(value, indices):
                    return target
        raise NoMatch("a result has other elements than the rows")

    def check_sink_store(
        self, value: mlir.Value, sinks: Sequence[Product], number: int, symbols: Sequence[Form]
    ) -> None:
        """Check that a returned tensor has an element for each of a sink."""
        sink = sinks[number]
        width = form(Digit(Base("width", sink.size(sink.columns))))
        indices = read_indices(value, sink.result, sink.result_indices(symbols[0], symbols[1], width))
        others = [other.result for other in sinks if other is not sink]
        if indices is None or depends_on(value, others) or not self.is_traced(value, indices, sink.result):
            raise NoMatch("a result reads other elements of the product")

    def is_traced(self, value: mlir.Value, indices: Indices, sink: mlir.Value | None = None) -> bool:
        """True if an element reads nothing of the scores but what is reduced of its row, or by way of a sink."""
        targets = self.targets if sink is None else {*self.rows, sink}
        try:
            found = [(t, at) for t, at in reads(value, indices, targets) if sink is None or t != sink]
            self.check(found)
        except (Untraceable, NoMatch):
            return False
        return True


def maps_of(product: Product) -> list[mlir.AffineMap]:
    """The indexing maps of a product."""
    return indexing_maps(product.op)


def uses(op: mlir.Operation, number: int, dim: int) -> bool:
    """True if a loop indexes a result."""
    return any(isinstance(e, mlir.AffineDimExpr) and e.position == dim for e in out_map(op, number).results)


def mentions(index: Form, symbol: Form) -> bool:
    """True if an index is computed from a symbol."""
    bases = {digit.base for digit, _ in symbol.terms}
    return any(digit.base in bases for digit, _ in index.terms)
