"""Products as tile kernels with reductions of their rows: softmax, norms, sums, extrema and argmax of a product.

A block has all columns of its rows, if they fit into a tile:

    sums = the tile of the product
    most = the maxima of sums along the columns         a vector with an element for each row
    the results, computed from the sums and the reductions

Longer rows are reduced in two steps: each block stores the state of its part of a row, and a second kernel merges them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.reductions import extreme_of
from mlirml.analysis.row_tiles import row_tile
from mlirml.analysis.values import depends_on
from mlirml.codegen.gpu.combiners import Combiner, Extreme
from mlirml.codegen.gpu.contract.product import Product, flipped, match_product
from mlirml.codegen.gpu.elements import Elements, apply, out_map
from mlirml.codegen.gpu.index import Base, Digit, Form, UnknownDivisionError, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host
from mlirml.codegen.gpu.reads import Untraceable, reads, reads_of_operands
from mlirml.codegen.gpu.rows import Problem, element_indices, match_rows
from mlirml.codegen.tile.contract import TileContract, choose_tile, depth_of, factor_type
from mlirml.codegen.tile.cutile import REDUCTIONS
from mlirml.codegen.tile.tiles import TileKernel, element_type
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import TILE
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

Store = tuple[mlir.Value, mlir.Value]
_DEPTH_BYTES = 128


@dataclass(frozen=True)
class RowProduct:
    """A product, and reductions of its rows: the columns of the product are the reduced loops."""

    product: Product
    problem: Problem

    def point(self, batch: Form, row: Form, column: Form) -> list[Form]:
        """The loops of the reductions at an element of the product."""
        shape, indices = self.product.result.type.shape, self.product.result_indices(batch, row, column)
        first, length = len(shape), 1
        while length < self.problem.length and first:
            first -= 1
            length *= shape[first]
        if length != self.problem.length:
            raise NoMatch("the reductions have other rows")
        rows = cut_up(flat(indices[:first], shape[:first]), self.problem.rows)
        return self.problem.point(rows, cut_up(flat(indices[first:], shape[first:]), self.problem.columns))


def lower_tile_rows(host: Host, reductions: Sequence[mlir.Operation], stores: Sequence[Store]) -> None:
    """Build the kernel of a product and of reductions of its rows, or two of them; raises NoMatch."""
    matched = match_row_product(reductions, stores)
    product = matched.product
    type_ = factor_type(host, product)
    rows, columns, batch = (product.size(loops) for loops in (product.rows, product.columns, product.batch))
    whole = row_tile(rows, columns, batch, host.device.processors)
    if whole is not None:
        depth = depth_of(host, product, type_, _DEPTH_BYTES)
        with host.kernel("rows", (1,), TileKernel) as kernel:
            assert isinstance(kernel, TileKernel)
            kernel.op.attributes[TILE] = mlir.DictAttr.get({"warps": emit.i64(whole.warps)})
            RowContract(kernel, matched, (whole.rows, whole.columns, depth), type_).build(stores)
        return
    if matched.problem.whole or len(matched.problem.combiners) > 1:
        raise NoMatch("rows are longer than a tile")
    tile = choose_tile(host, product)
    depth = depth_of(host, product, type_, tile.depth_bytes)
    (combiner,) = matched.problem.combiners
    parts = [host.array([-(-columns // tile.columns), batch, rows], each) for each in combiner.types]
    with host.kernel("contract", (1,), TileKernel) as kernel:
        assert isinstance(kernel, TileKernel)
        kernel.op.attributes[TILE] = mlir.DictAttr.get({"warps": emit.i64(tile.warps)})
        RowContract(kernel, matched, (tile.rows, tile.columns, depth), type_).build_parts(parts)
    merge_parts(host, matched, parts, -(-columns // tile.columns))


def match_row_product(reductions: Sequence[mlir.Operation], stores: Sequence[Store]) -> RowProduct:
    """Read operations as a product and reductions of its rows, of each of which one element is read; raises NoMatch."""
    product = match_product(reductions[0])
    problem = match_rows(reductions[1:], stores)
    if product.size(product.columns) != problem.length or not is_last(product):
        product = flipped(product)
    if product.size(product.columns) != problem.length or not is_last(product):
        raise NoMatch("the reductions are not along the columns")
    if problem.count * problem.length != math.prod(product.result.type.shape):
        raise NoMatch("the reductions have other rows")
    matched = RowProduct(product, problem)
    sizes = [product.size(loops) for loops in (product.batch, product.rows, product.columns)]
    batch, row, column = (form(Digit(Base(name, size))) for name, size in zip("brc", sizes, strict=True))
    here = product.result_indices(batch, row, column)
    targets = {product.result, *(result for combiner in problem.combiners for result in combiner.op.results)}
    try:
        point = matched.point(batch, row, column)
        found = [at for combiner in problem.combiners for at in reads_of_operands(combiner.op, point, targets)]
        for value, _, first in problem.whole:
            found += reads(value, element_indices(value, problem, point, first), targets)
        for value, _, order in problem.each:
            found += reads(value, each_indices(value, problem, point, order), targets)
    except (Untraceable, UnknownDivisionError):
        raise NoMatch("a reduction reads other elements of the product") from None
    if any(indices != here for tensor, indices in found if tensor == product.result):
        raise NoMatch("a reduction reads other elements of the product")
    return matched


def is_last(product: Product) -> bool:
    """True if the columns are the last loops of the result, in order."""
    loops = [d.position for d in out_map(product.op, 0).results]
    return bool(product.columns) and tuple(loops[len(loops) - len(product.columns) :]) == product.columns


def each_indices(value: mlir.Value, problem: Problem, point: Sequence[Form], order: Sequence[int]) -> tuple[Form, ...]:
    """The indices of a result with an element for each row, at a point."""
    row = [p for d, p in enumerate(point) if d not in problem.reduced_dims]
    return tuple(row[d] for d in order) if order else tuple(cut_up(flat(row, problem.rows), value.type.shape))


class RowContract(TileContract):
    """The kernel: the tile of a product, reductions of its rows, and results that are computed from both."""

    def __init__(self, kernel: TileKernel, matched: RowProduct, tile: tuple[int, int, int], type_: mlir.Type) -> None:
        super().__init__(kernel, matched.product, tile, type_)
        self.problem = matched.problem
        self.point = matched.point(self.batch, self.row, self.column)
        self.axes = tuple(kernel.axes[index.terms[0][0].base] for index in (self.row, self.column))

    def build(self, stores: Sequence[Store]) -> None:
        """Build the kernel whose tiles have whole rows."""
        self.compute()
        for combiner in self.problem.combiners:
            with combiner.op.location:
                first = len(combiner.op.operands) - len(combiner.op.results)
                inits = [
                    self.tiles.get(combiner.op.operands[first + n], self.at(combiner, n)) for n in combiner.carried
                ]
                for n, value in zip(combiner.carried, self.reduce(combiner, inits), strict=True):
                    self.tiles.give(combiner.op.results[n], self.at(combiner, n), value)
        found = [(v, out, each_indices(v, self.problem, self.point, order)) for v, out, order in self.problem.each]
        found += [(v, out, element_indices(v, self.problem, self.point, first)) for v, out, first in self.problem.whole]
        for value, out, indices in found:
            self.kernel.store(out, [(flat(indices, value.type.shape), self.tiles.get(value, indices))])

    def build_parts(self, parts: Sequence[mlir.Value]) -> None:
        """Build the kernel that stores the states of its columns."""
        self.compute()
        (combiner,) = self.problem.combiners
        rows = self.product.size(self.product.rows)
        index = (self.number * self.product.size(self.product.batch) + self.batch) * rows + self.row
        for part, state in zip(parts, self.reduce(combiner, None), strict=True):
            self.kernel.store(part, [(index, state)])

    def at(self, combiner: Combiner, number: int) -> tuple[Form, ...]:
        """The indices of a reduction's result."""
        return apply(out_map(combiner.op, number), self.point)

    def reduce(self, combiner: Combiner, inits: Sequence[mlir.Value] | None) -> list[mlir.Value]:
        """The states of a reduction, a vector of rows each, from some inits or from identities."""
        if isinstance(combiner, Extreme):
            return self.extreme(combiner)
        values = combiner.values(self.tiles, self.point)
        found = []
        for n, (reducer, value) in enumerate(zip(combiner.reducers, values, strict=True)):
            if reducer.combiner.vector_kind not in REDUCTIONS:
                raise NoMatch(f"{reducer.combiner.word} of a tile")
            bits = reducer.type.width
            start = None if inits is None else inits[n]
            found.append(self.along(reducer.combiner.vector_kind, value, reducer.combiner.identity(bits), start))
        return found

    def along(self, name: str, value: mlir.Value, identity: float, init: mlir.Value | None = None) -> mlir.Value:
        """A tile combined along the columns."""
        kernel, (row, column) = self.kernel, self.axes
        (tile,) = kernel.aligned([value], self.axes)
        before = kernel.filled((row,), element_type(tile), identity) if init is None else init
        (before,) = kernel.aligned([before], (row,))
        return kernel.reduce(name, kernel.masked(kernel.valid(column), tile, identity), column, before)

    def extreme(self, combiner: Extreme) -> list[mlir.Value]:
        """The extreme of each row, and the first index where it is."""
        kernel, found, op = self.kernel, combiner.found, combiner.op
        given = {argument: argument for argument in combiner.arguments}
        environment = self.tiles.arguments(op, self.point, given)
        for inner in combiner.body.ops:
            if not any(depends_on(value, combiner.arguments) for value in inner.operands):
                self.tiles.body_op(inner, self.point, environment)
        kind = extreme_of(found.better, found.term, combiner.arguments[found.value])
        if kind is None or kind.vector_kind not in REDUCTIONS:
            raise NoMatch("an extreme of a tile")
        term, position = (self.tiles.value_of(value, environment) for value in (found.term, found.position))
        (term,) = kernel.aligned([term], self.axes)
        own, place = element_type(term), element_type(position)
        best = self.along(kind.vector_kind, term, kind.identity(own.width))
        hit = kernel.compare("oeq" if kind.is_float else "eq", term, best)
        if kind.is_float and not kind.ignores_nan:
            hit = kernel.same_type("arith.ori", hit, kernel.compare("uno", term, term))
        last = (1 << place.width - 1) - 1
        (position,) = kernel.aligned([position], self.axes)
        where = self.along("minsi", kernel.masked(hit, position, last), last)
        return [best, where] if found.value < found.index else [where, best]


def merge_parts(host: Host, matched: RowProduct, parts: Sequence[mlir.Value], count: int) -> None:
    """Build the kernel that merges the states of the parts of each row: a thread for a row."""
    product, problem = matched.product, matched.problem
    (combiner,) = problem.combiners
    total = problem.count
    with host.kernel("merge", (THREADS,)) as kernel:
        elements = Elements(kernel)
        number = kernel.cover(-(-total // THREADS)) * THREADS + kernel.thread()

        def row() -> None:
            index = form(Digit(Base(number, total)))
            batch, row = cut_up(index, [product.size(product.batch), product.size(product.rows)])
            point = matched.point(batch, row, Form())
            combiner.start(elements, point)

            def step(k: Form, state: list[mlir.Value]) -> list[mlir.Value]:
                return combiner.merge(state, [kernel.load(part, k * total + index) for part in parts])

            state = kernel.loop((1, count, 1), step, [kernel.load(part, index) for part in parts])
            combiner.finish(elements, point, state)
            elements.reduced.add(combiner.op)
            for value, out, order in problem.each:
                indices = each_indices(value, problem, point, order)
                kernel.store(out, [(flat(indices, value.type.shape), elements.get(value, indices))])

        kernel.guarded([kernel.below(number, total)], row)
