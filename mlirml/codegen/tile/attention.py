"""Attention as one tile kernel: the scores of a block of rows are never in memory.

    most, total, sums = -inf, 0, 0
    for keys in the tiles of the keys:
        scores = queries @ keys, and what the dispatch computes of them
        now = max(most, the maxima of the scores)
        weights = exp(scores - now)
        total = total * exp(most - now) + the sums of the weights
        sums = sums * exp(most - now) + weights @ values
        most = now
    the results, computed from sums / total

That is the online softmax of M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (2018), in the
loop of T. Dao et al., "FlashAttention" (2022). What is between the products is computed in f32, exponentials as powers
of two: where the scores are a constant times something, that constant and log2(e) are one factor. A row whose scores
have been -inf so far has 0 instead of its maximum, so that its weights are 0 and no NaN; if all of them are, its
results are NaN, as without tiles. Below a triangle of -inf the tiles need no mask, and those above it are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.attention import Attention, match_attention, triangle_of
from mlirml.codegen.gpu.combiners import Combiner
from mlirml.codegen.gpu.contract.product import Product, flipped, has_zero_init, match_product
from mlirml.codegen.gpu.elements import apply, out_map
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.kernel import Host
from mlirml.codegen.tile.contract import Store, contract, factor, finish
from mlirml.codegen.tile.tiles import Axis, TileKernel, WideTiles
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import TILE
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

ROWS, KEYS = (64, 128), 128
"""The rows of a tile, fewest first, and its keys: the fastest of those that were measured on an H100."""
_ROWS_OF_A_WARP, _OCCUPANCY = 16, 2
_LOG2_E = math.log2(math.e)
_LEAST, _MOST = 16, 256
"""The fewest and the most elements of a query."""


@dataclass(frozen=True)
class Sizes:
    """The tile: rows, keys, the elements of a query and of a value, as powers of two."""

    rows: int
    keys: int
    depth: int
    width: int


def lower_tile_attention(host: Host, last: mlir.Operation, stores: Sequence[Store]) -> None:
    """Build the kernel of attention that ends with a product; raises NoMatch."""
    if not host.device.tile:
        raise NoMatch("no assembler of tiles")
    attention = match_attention(last)
    first = match_product(attention.first)
    second = match_product(last)
    if second.sides[0].operand != attention.weights:
        second = flipped(second)
    if not has_zero_init(first) or not has_zero_init(second):
        raise NoMatch("a product is added to something")
    if last_loop(first) not in first.columns:
        first = flipped(first)
    depth, width = first.size(first.depth), second.size(second.columns)
    if not (_LEAST <= depth <= _MOST and _LEAST <= width <= _MOST and first.size(first.rows) >= _LEAST):
        raise NoMatch("too small or too large for tiles")
    rows = next((rows for rows in ROWS if first.size(first.rows) <= rows), ROWS[-1])
    sizes = Sizes(rows, KEYS, power_of_two(depth), power_of_two(width))
    with host.kernel("attention", (1,), TileKernel) as kernel:
        assert isinstance(kernel, TileKernel)
        warps = max(4, rows // _ROWS_OF_A_WARP)
        hints = {"warps": emit.i64(warps), "occupancy": emit.i64(_OCCUPANCY)}
        kernel.op.attributes[TILE] = mlir.DictAttr.get(hints)
        TileAttention(kernel, attention, first, second, sizes).build(stores)


def last_loop(product: Product) -> int:
    """The loop that indexes the last dimension of the result."""
    return out_map(product.op, 0).results[-1].position


def power_of_two(number: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


class Scores(WideTiles):
    """Tiles whose exponentials of scores less their maximum are powers of two.

    `low` are the maxima of the rows over `scale`, and the scores `scale` times their bases. In a tile that is `below`
    the diagonal a triangle masks nothing.
    """

    below = False
    scale = 1.0
    low: mlir.Value | None = None

    def apply(self, op: mlir.Operation, operands: Sequence[mlir.Value]) -> mlir.Value:
        """The result of an elementwise operation on tiles."""
        if op.name == "arith.select" and triangle_of(op) is not None:
            return self.masked(op, [self.wide(value) for value in operands])
        made = defining_op(operands[0]) if op.name == "math.exp" else None
        if self.low is None or made is None or made.name != "arith.subf":
            return super().apply(op, operands)
        kernel, axes = self.kernel, self.kernel.order[operands[0]]
        (maxima,) = kernel.aligned([self.times(self.low, self.scale)], axes)
        base, factor = base_of(made.operands[0])
        if made.operands[1] != maxima or factor != self.scale:
            return super().apply(op, operands)
        return self.power(base, self.low)

    def masked(self, select: mlir.Operation, operands: Sequence[mlir.Value]) -> mlir.Value:
        """The scores of a triangle: a factor of the scores stays outside of the mask."""
        condition, tile, otherwise = operands
        if self.below:
            return tile
        base, factor = base_of(tile)
        chosen = self.kernel.apply(select, [condition, base, otherwise], mlir.F32Type.get())
        return self.times(chosen, factor)

    def power(self, base: mlir.Value, low: mlir.Value) -> mlir.Value:
        """The exponential of the scale times a difference."""
        factor = self.scale * _LOG2_E
        difference = self.kernel.same_type("arith.subf", self.times(base, factor), self.times(low, factor))
        found = emit.same_type("math.exp2", difference)
        self.kernel.order[found] = self.kernel.order[difference]
        return found

    def times(self, tile: mlir.Value, factor: float) -> mlir.Value:
        """A tile times a number."""
        kernel = self.kernel
        if factor == 1:
            return tile

        def build() -> mlir.Value:
            return kernel.same_type("arith.mulf", kernel.filled(kernel.order[tile], mlir.F32Type.get(), factor), tile)

        return kernel.once(("times", tile, factor), build)


def base_of(tile: mlir.Value) -> tuple[mlir.Value, float]:
    """The tile without a positive constant factor, and this factor, 1 if there is none."""
    op = defining_op(tile)
    if op is not None and op.name == "arith.mulf":
        for one, other in (op.operands, reversed(list(op.operands))):
            factor = splat_of(other)
            if factor is not None and 0 < factor < math.inf:
                return one, factor
    return tile, 1.0


def splat_of(tile: mlir.Value) -> float | None:
    """The number that all elements of a tile are."""
    op = defining_op(tile)
    while op is not None and op.name in ("vector.broadcast", "arith.extf"):
        op = defining_op(op.operands[0])
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return float(attribute.value) if isinstance(attribute, mlir.FloatAttr) else None


class TileAttention:
    """The kernel: the block's axes, and what is known of each tile of keys."""

    def __init__(self, kernel: TileKernel, attention: Attention, first: Product, second: Product, sizes: Sizes) -> None:
        self.kernel = kernel
        self.first, self.second = first, second
        self.tiles = Scores(kernel)
        self.scales: set[float] = set()
        self.f32 = mlir.F32Type.get()
        self.maxima, self.totals = attention.maxima, attention.totals
        self.diagonal = triangle_of(attention.score)
        self.types = [product.op.operands[product.sides[1].operand].type.element_type for product in (first, second)]
        rows, batch = first.size(first.rows), first.size(first.batch)
        self.keys = first.size(first.columns)
        if self.keys != second.size(second.depth) or rows != second.size(second.rows):
            raise NoMatch("the products have other sizes")
        blocks = -(-rows // sizes.rows)
        kernel.grid = (blocks * batch, 1, 1)
        block = kernel.at(kernel.block_number())
        self.batch, number = Form(), block
        if batch > 1:
            number = emit.same_type("arith.remui", block, kernel.constant(blocks))
            head = emit.same_type("arith.divui", block, kernel.constant(blocks))
            self.batch = form(Digit(Base(head, batch)))
        if self.diagonal is not None:  # the longest rows come first
            number = emit.same_type("arith.subi", kernel.constant(blocks - 1), number)
        zero = kernel.constant(0)
        self.sizes = sizes
        self.row = kernel.axis("row", rows, sizes.rows, number)
        self.depth = kernel.axis("depth", first.size(first.depth), sizes.depth, zero)
        self.width = kernel.axis("width", second.size(second.columns), sizes.width, zero)
        self.rows_axis, self.width_axis = self.axis_of(self.row), self.axis_of(self.width)

    def axis_of(self, index: Form) -> Axis:
        """The axis that an index is all of."""
        if len(index.terms) != 1:
            raise NoMatch("an axis has one element")
        return self.kernel.axes[index.terms[0][0].base]

    def build(self, stores: Sequence[Store]) -> None:
        """Build the kernel."""
        kernel = self.kernel
        rows = (self.rows_axis,)
        carried = [
            kernel.filled(rows, self.f32, -math.inf),
            kernel.filled(rows, self.f32, 0),
            kernel.filled((self.rows_axis, self.width_axis), self.f32, 0),
        ]
        orders = [kernel.order[value] for value in carried]

        def step(number: Form, carried: list[mlir.Value]) -> list[mlir.Value]:
            kernel.order.update(zip(carried, orders, strict=True))
            key = kernel.axis("key", self.keys, self.sizes.keys, kernel.at(number))
            return self.step(key, *carried)

        steps = -(-self.keys // self.sizes.keys)
        for lower, upper, below in self.ranges(steps):
            self.tiles.below = below
            carried = kernel.loop((lower, upper, 1), step, carried, steps)
            kernel.order.update(zip(carried, orders, strict=True))
        _, total, sums = carried
        point = self.second.result_indices(self.batch, self.row, self.width)
        finish(self.tiles, self.second, point, kernel.same_type("arith.divf", sums, total), stores)

    def ranges(self, steps: int) -> list[tuple[Form | int, Form, bool]]:
        """Ranges of tiles of keys, and for each whether it is below the diagonal of a triangle."""
        most = self.hidden(steps)
        if self.diagonal is None:
            return [(0, most, False)]
        # A row sees the keys up to its own number and the offset of the diagonal.
        first, keys = self.kernel.start(self.rows_axis), self.sizes.keys
        whole = self.tiles_below(first, self.diagonal + 1, most)
        last = self.tiles_below(first, self.diagonal + self.sizes.rows + keys - 1, most)
        return [(0, whole, True), (whole, last, False)]

    def tiles_below(self, first: mlir.Value, offset: int, most: Form) -> Form:
        """The number of whole tiles of keys before an offset from the first row, at most those that there are."""
        kernel = self.kernel
        key = emit.same_type("arith.addi", first, kernel.constant(offset))
        positive = emit.same_type("arith.maxsi", key, kernel.constant(0))
        tiles = emit.same_type("arith.divui", positive, kernel.constant(self.sizes.keys))
        return form(Digit(Base(emit.same_type("arith.minsi", tiles, kernel.at(most)))))

    def hidden(self, number: int) -> Form:
        """A number as an argument of the kernel: the assembler unrolls short loops whose count it knows."""
        host = self.kernel.host
        with mlir.InsertionPoint(host.end):
            outside = emit.index(number)
        return form(Digit(Base(self.kernel.argument(outside), number + 1)))

    def step(self, key: Form, most: mlir.Value, total: mlir.Value, sums: mlir.Value) -> list[mlir.Value]:
        """The maxima, the totals and the sums after the tile of keys."""
        kernel = self.kernel
        self.score(key)
        key_axis = self.axis_of(key)
        valid = kernel.valid(key_axis)
        self.tiles.low = None
        (value,) = self.values(self.maxima, key)
        base, self.tiles.scale = base_of(value)
        self.scales.add(self.tiles.scale)
        if len(self.scales) > 1:  # maxima are carried on without it
            raise NoMatch("the scores have several factors")
        now = kernel.reduce("maximumf", kernel.masked(valid, base, -math.inf), key_axis, most)
        low = kernel.filled((self.rows_axis,), self.f32, -math.inf)
        none = kernel.compare("oeq", now, low)
        known = kernel.same_type("arith.select", none, kernel.filled((self.rows_axis,), self.f32, 0), now)
        self.tiles.low = known
        self.give(self.maxima, self.tiles.times(known, self.tiles.scale), key)
        self.give(self.totals, kernel.constant(1, self.f32), key)
        (value,) = self.values(self.totals, key)
        again = self.tiles.power(most, known)
        before = kernel.same_type("arith.mulf", total, again)
        total = kernel.reduce("add", kernel.masked(valid, value, 0), key_axis, before)
        point = self.second.point(self.batch, self.row, self.width, key)
        weights = self.second.raw(self.tiles, 0, point)
        weights = kernel.as_type(kernel.masked(valid, weights, 0), self.types[1])
        values = factor(self.tiles, self.second, 1, point, self.types[1])
        scaled = kernel.same_type("arith.mulf", sums, again)
        return [now, total, contract(kernel, [weights, values], ("row", "width", "key"), scaled)]

    def score(self, key: Form) -> None:
        """Compute the tile of the first product, and register it as its result."""
        kernel, first = self.kernel, self.first
        point = first.point(self.batch, self.row, key, self.depth)
        factors = [factor(self.tiles, first, side, point, self.types[0]) for side in (0, 1)]
        axes = (self.rows_axis, self.axis_of(key))
        zero = kernel.filled(axes, self.f32, 0)
        scores = contract(kernel, factors, ("row", "key", "depth"), zero)
        kernel.order[scores] = axes
        self.tiles.give(first.result, first.result_indices(self.batch, self.row, key), scores)

    def point_of(self, op: mlir.Operation, key: Form) -> list[Form]:
        """The loops of an operation on the scores."""
        point = list(self.first.result_indices(self.batch, self.row, key))
        if len(point) != out_map(op, 0).n_dims:
            raise NoMatch("an operation does not have the loops of the scores")
        return point

    def values(self, reduced: mlir.Value, key: Form) -> list[mlir.Value]:
        """The tile of what a reduction combines."""
        op = defining_op(reduced)
        assert op is not None
        axes = (self.rows_axis, self.axis_of(key))
        return self.kernel.aligned(Combiner(op).values(self.tiles, self.point_of(op, key)), axes)

    def give(self, reduced: mlir.Value, value: mlir.Value, key: Form) -> None:
        """Register the results of a reduction."""
        op = defining_op(reduced)
        assert op is not None
        indices = apply(out_map(op, list(op.results).index(reduced)), self.point_of(op, key))
        self.tiles.give(reduced, indices, value)
