"""Streamed scores by fused multiply-adds: a thread has four rows and four columns of the scores.

    for each tile of the columns:
        for k in the depth, some at a time, both factors in shared tiles:
            scores[i, j] += left[i, k] * right[k, j]
        shared weights = what the sinks multiply, computed of the scores
        for k in the columns, some at a time, the other factor in a shared tile:
            sums[i, j] += weights[i, k] * other[k, j]

The sums have the same four rows. All floats, and all devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.gpu.combiners import Values
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import VECTOR, SharedTiles, Tile
from mlirml.codegen.gpu.index import Form
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.codegen.gpu.streamed.kernel import Streamed
from mlirml.codegen.gpu.streamed.online import match_online
from mlirml.codegen.gpu.streamed.plan import Plan, Store
from mlirml.codegen.gpu.streamed.split import Split, choose_split, lower_merge
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_WIDEST = 256
"""The largest number of columns of a sink: their sums are in registers."""


@dataclass(frozen=True)
class Layout:
    """The threads of a block, `down` times `across`, with four rows and columns of scores each; the depth of tiles."""

    down: int
    across: int
    depth: int

    @property
    def rows(self) -> int:
        return self.down * VECTOR

    @property
    def columns(self) -> int:
        return self.across * VECTOR

    @property
    def threads(self) -> int:
        return self.down * self.across

    def width(self, sink: Product) -> int:
        """The columns of the tile of a sink: a multiple of four for each thread."""
        return -(-sink.size(sink.columns) // self.columns) * self.columns

    def shared_bytes(self, plan: Plan) -> int:
        """The shared memory of a block."""
        pad = VECTOR
        size = max(element_bytes(product.combiner.types[0]) for product in (*plan.products, *plan.sinks))
        elements = self.depth * (self.rows + self.columns + 2 * pad)
        if plan.sinks:
            elements += self.columns * (self.rows + pad)
            elements += self.depth * (max(map(self.width, plan.sinks)) + pad)
        merged = self.threads * sum(len(combiner.types) for combiner in plan.reductions)
        return (elements + merged) * size


LAYOUTS = (Layout(16, 16, 16), Layout(8, 8, 16), Layout(8, 8, 8), Layout(8, 8, 4))
"""The layouts to choose from, largest first."""


def choose_layout(host: Host, plan: Plan) -> Layout:
    """The largest layout that fits a block, and of which there are enough blocks to fill the device."""
    fitting = [each for each in LAYOUTS if each.shared_bytes(plan) <= host.device.shared_bytes]
    if not fitting:
        raise NoMatch("too little shared memory")
    for layout in fitting:
        if plan.batches * -(-plan.rows // layout.rows) >= host.device.processors and plan.rows > layout.rows // 2:
            return layout
    return fitting[min(1, len(fitting) - 1)]


def lower_streamed(host: Host, plan: Plan) -> None:
    """Build the kernel."""
    if any(sink.size(sink.columns) > _WIDEST for sink in plan.sinks):
        raise NoMatch("the sums do not fit into registers")
    layout = choose_layout(host, plan)
    split = choose_split(host, plan, layout.rows, layout.columns)
    with host.kernel("streamed", (layout.threads,)) as kernel:
        FmaStreamed(kernel, plan, layout, split).build()
    if split is not None:
        lower_merge(host, plan, match_online(plan), split)


class ScoreTiles(SharedTiles):
    """The tile of a product of the scores, or of a sink, whose shared memory is given."""

    def share(self) -> list[mlir.Value]:
        return []


class FmaStreamed(Streamed):
    """The kernel, with shared tiles of the factors and the weights."""

    lanes = VECTOR

    def __init__(self, kernel: Kernel, plan: Plan, layout: Layout, split: Split | None = None) -> None:
        self.own = layout
        self._arrays: dict[tuple[str, mlir.Type], mlir.Value] = {}
        super().__init__(kernel, plan, layout, split)

    def own_rows(self) -> list[Form]:
        """The rows of the thread within the block's."""
        return [self.slot * VECTOR + lane for lane in range(VECTOR)]

    def own_columns(self) -> list[Form]:
        """The columns of the thread within a tile: groups of adjacent ones, as many as it loads at once."""
        return [self.member * VECTOR + lane for lane in range(VECTOR)]

    def array(self, name: str, shape: Sequence[int], type_: mlir.Type) -> mlir.Value:
        """A shared array, one for all products with elements of a type."""
        if (name, type_) not in self._arrays:
            self._arrays[name, type_] = self.kernel.shared(shape, type_)
        return self._arrays[name, type_]

    def score_tiles(self, product: Product) -> ScoreTiles:
        """The tile of a product of the scores."""
        layout = self.own
        tile = Tile(layout.rows, layout.columns, layout.depth, VECTOR, VECTOR)
        found = ScoreTiles(self.kernel, self.elements, product, tile)
        found.shared = [
            self.array(name, [layout.depth, extent + VECTOR], found.type)
            for name, extent in (("left", layout.rows), ("right", layout.columns))
        ]
        found.batch = self.batch
        return found

    def sink_tiles(self, sink: Product) -> ScoreTiles:
        """The tile of a sink: its weights, a tile of the scores, and some rows of the other factor."""
        layout = self.own
        width = layout.width(sink)
        widest = max(map(layout.width, self.plan.sinks))
        tile = Tile(layout.rows, width, layout.depth, VECTOR, width // layout.across)
        found = ScoreTiles(self.kernel, self.elements, sink, tile, layout.columns)
        found.shared = [
            self.array("weights", [layout.columns, layout.rows + VECTOR], found.type),
            self.array("values", [layout.depth, widest + VECTOR], found.type),
        ]
        found.batch, found.in_grid = self.batch, self.in_grid
        found.origin = (self.first_row, Form())
        return found

    def sink_columns(self, sink: Product) -> list[Form]:
        """The columns of a sink whose sums the thread has, in groups of adjacent ones."""
        return self.sinks[sink.op].each(1)

    def zeros(self, sink: Product) -> Values:
        """The sums of a sink before the first tile, row by row."""
        return self.sinks[sink.op].zeros()

    def multiply_scores(self, product: Product, start: Form, columns: Sequence[Form]) -> None:
        """Compute the thread's elements of a product, and register them as known."""
        kernel, tiles = self.kernel, self.scores[product.op]
        tiles.origin = (self.first_row, start)
        depth = self.own.depth

        def step(k: Form, sums: Values) -> Values:
            kernel.lanes = VECTOR
            for side in (0, 1):
                tiles.fetch(side, k * depth)
            kernel.lanes = 0
            kernel.barrier()
            sums = kernel.loop((0, depth, 1), tiles.multiply, sums)
            kernel.barrier()
            return sums

        with product.op.location:
            sums = kernel.loop((0, -(-tiles.depth // depth), 1), step, tiles.zeros())
        for i, row in enumerate(self.rows):
            for j, column in enumerate(columns):
                indices = product.result_indices(self.batch, row, column)
                self.elements.give(product.result, indices, sums[i * VECTOR + j])

    def add_to_sink(
        self, sink: Product, start: Form, columns: Sequence[Form], valid: Sequence[mlir.Value | None], sums: Values
    ) -> Values:
        """Add the products of the weights of a tile and the other factor to the sums of a sink."""
        self.write_weights(sink, columns, valid)
        return self.multiply_weights(self.sinks[sink.op], start, sums)

    def write_weights(self, sink: Product, columns: Sequence[Form], valid: Sequence[mlir.Value | None]) -> None:
        """Store the thread's weights into shared memory, 0 beyond the last column."""
        kernel, tiles = self.kernel, self.sinks[sink.op]
        for j, (column, is_valid) in enumerate(zip(columns, valid, strict=True)):
            values = []
            for row in self.rows:
                value = sink.factor(self.elements, 0, sink.point(self.batch, row, Form(), column))
                if is_valid is not None:
                    value = emit.same_type("arith.select", is_valid, value, kernel.constant(0, value.type))
                values.append(value)
            tiles.write_vector(values, tiles.shared[0], self.member * VECTOR + j, self.slot * VECTOR)

    def multiply_weights(self, tiles: SharedTiles, start: Form, sums: Values) -> Values:
        """Add the products of the shared weights and a tile of the other factor."""
        kernel, depth = self.kernel, self.own.depth
        weights, others = tiles.shared

        def step(part: Form, sums: Values) -> Values:
            kernel.lanes = VECTOR
            tiles.fetch(1, start + part * depth)
            kernel.lanes = 0
            kernel.barrier()

            def multiply(k: Form, sums: Values) -> Values:
                left = tiles.read_vector(weights, part * depth + k, self.slot * VECTOR)
                right = [v for first in tiles.quads(1) for v in tiles.read_vector(others, k, first)]
                return [
                    tiles.add_product(a, b, sums[i * len(right) + j])
                    for i, a in enumerate(left)
                    for j, b in enumerate(right)
                ]

            sums = kernel.loop((0, depth, 1), multiply, sums)
            kernel.barrier()
            return sums

        return kernel.loop((0, self.own.columns // depth, 1), step, sums)

    def store_sink(self, tiles: SharedTiles, sums: Values, stores: Sequence[Store]) -> None:
        """Store the results that are computed from the sums of a sink, four columns of a row at a time."""
        kernel, product = self.kernel, tiles.product
        kernel.lanes = VECTOR
        columns = tiles.each(1)
        for i, (offset, row) in enumerate(zip(self.row_offsets, self.rows, strict=True)):
            for group in range(0, tiles.tile.wide, VECTOR):
                together = tiles.stores_together()
                four = columns[group : group + VECTOR]
                for lanes in [range(VECTOR)] if together else [[lane] for lane in range(VECTOR)]:
                    at = [i * tiles.tile.wide + group + lane for lane in lanes]
                    points = [product.result_indices(self.batch, row, four[lane]) for lane in lanes]
                    guards = [
                        self.in_grid, kernel.below(self.first_row + offset, self.plan.rows),
                        kernel.below(four[lanes[-1]], tiles.sizes[1]),
                    ]  # fmt: skip
                    kernel.guarded(guards, partial(tiles.store, points, [sums[n] for n in at], stores))
        kernel.lanes = 0
