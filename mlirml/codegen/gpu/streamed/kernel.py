"""The kernel of streamed scores: a block of threads has some rows, and iterates over tiles of the columns.

    for each pass:
        for tile in the tiles of the columns:
            scores = the products of the rows and the tile, in registers
            state = the reductions of the pass, each thread with its own columns
            shared weights = what the sinks multiply, computed of the scores
            sums += shared weights @ the tile of the other factor
        the states of the threads of a row are merged, and known from here on
    the results, computed from the sums and from what was reduced

A thread has four rows and four columns of the scores, and the same four rows of the sums. Of a matrix of scores nothing
is stored; what several kernels need of it is computed in each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.gpu.combiners import Combiner, Values
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import VECTOR, SharedTiles, Tile
from mlirml.codegen.gpu.elements import Elements, Indices, apply, out_map
from mlirml.codegen.gpu.groups import merge_group
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.codegen.gpu.reads import read_indices
from mlirml.codegen.gpu.streamed.masks import bands_of, window
from mlirml.codegen.gpu.streamed.online import EXPONENTIAL, Online, match_online
from mlirml.codegen.gpu.streamed.plan import Pass, Plan, Store, reduced_results
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
    with host.kernel("streamed", (layout.threads,)) as kernel:
        Streamed(kernel, plan, layout).build()


class ScoreTiles(SharedTiles):
    """The tile of a product of the scores, or of a sink, whose shared memory is given."""

    def share(self) -> list[mlir.Value]:
        return []


class Streamed:
    """The kernel: the rows of its block, and the shared memory of the tiles."""

    def __init__(self, kernel: Kernel, plan: Plan, layout: Layout) -> None:
        self.kernel = kernel
        self.plan = plan
        self.layout = layout
        self.elements = Elements(kernel)
        self.row_blocks = -(-plan.rows // layout.rows)
        blocks = plan.batches * self.row_blocks
        block = kernel.cover(blocks)
        self.in_grid = kernel.below(block, blocks)
        self.batch, number = cut_up(kernel.clamped(block, blocks), [plan.batches, self.row_blocks])
        self.first_row = number * layout.rows
        self.slot, self.member = cut_up(kernel.thread(), [layout.down, layout.across])
        self.row_offsets = [self.slot * VECTOR + lane for lane in range(VECTOR)]
        self.rows = [kernel.clamped(self.first_row + offset, plan.rows) for offset in self.row_offsets]
        self._arrays: dict[tuple[str, mlir.Type], mlir.Value] = {}
        self.scores = {product.op: self.score_tiles(product) for product in plan.products}
        self.sinks = {sink.op: self.sink_tiles(sink) for sink in plan.sinks}
        self.sums: dict[mlir.Operation, Values] = {}

    def array(self, name: str, shape: Sequence[int], type_: mlir.Type) -> mlir.Value:
        """A shared array, one for all products with elements of a type."""
        if (name, type_) not in self._arrays:
            self._arrays[name, type_] = self.kernel.shared(shape, type_)
        return self._arrays[name, type_]

    def score_tiles(self, product: Product) -> ScoreTiles:
        """The tile of a product of the scores."""
        layout = self.layout
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
        layout = self.layout
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

    def build(self) -> None:
        """Build the kernel."""
        online = self.online()
        if online is not None:
            self.run_online(online)
        for each in self.plan.passes if online is None else ():
            self.run(each)
        self.store_rows()
        for sink, stores in zip(self.plan.sinks, self.plan.sink_stores, strict=True):
            self.store_sink(self.sinks[sink.op], self.sums[sink.op], stores)

    def online(self) -> Online | None:
        """All passes as one, where threads shuffle: without, the maxima of each tile take many barriers."""
        try:
            return match_online(self.plan) if self.kernel.host.device.subgroup else None
        except NoMatch:
            return None

    def run(self, each: Pass) -> None:
        """One pass over the columns."""
        kernel, plan, layout = self.kernel, self.plan, self.layout
        states: list[Values] = []
        for combiner in each.reductions:
            for row in self.rows:
                with combiner.op.location:
                    states.append(combiner.start(self.elements, plan.point(self.batch, row, Form())))
        zeros = [self.sinks[sink.op].zeros() for sink in each.sinks]
        carried = [value for group in (*states, *zeros) for value in group]
        lengths = [len(group) for group in (*states, *zeros)]
        lower, upper = self.needed_tiles(each)

        def step(number: Form, values: Values) -> Values:
            groups = chunks(values, lengths)
            found = self.tile(each, number * layout.columns, groups[: len(states)], groups[len(states) :])
            return [value for group in found for value in group]

        steps = -(-plan.columns // layout.columns)
        groups = chunks(kernel.loop((lower, upper, 1), step, carried, steps), lengths)
        self.merge(each.reductions, groups[: len(states)])
        for sink, sums in zip(each.sinks, groups[len(states) :], strict=True):
            self.sums[sink.op] = sums

    def run_online(self, found: Online) -> None:
        """All passes in one over the columns: each merges the maxima of its tile, and scales the sums before it."""
        kernel, plan = self.kernel, self.plan
        first, second, third = plan.passes
        whole = Pass(
            (), (), tuple(p for p in plan.products if p in (*first.products, *second.products, *third.products))
        )
        counts = [1] * VECTOR + [len(found.forms)] * VECTOR
        tiles = self.sinks[found.sink.op]
        lowest = found.maximum.start(self.elements, plan.point(self.batch, self.rows[0], Form()))
        zeros = [kernel.constant(0, type_) for type_ in found.sums.types]
        carried = [*lowest * VECTOR, *zeros * VECTOR, *tiles.zeros()]
        lengths = [*counts, len(tiles.zeros())]
        lower, upper = self.needed_tiles(Pass((found.maximum, found.sums), (found.sink,), whole.products))
        steps = -(-plan.columns // self.layout.columns)

        def step(number: Form, values: Values) -> Values:
            groups = chunks(values, lengths)
            most, totals, sums = groups[:VECTOR], groups[VECTOR:-1], groups[-1]
            return self.tile_online(found, whole, number * self.layout.columns, [v for (v,) in most], totals, sums)

        groups = chunks(kernel.loop((lower, upper, 1), step, carried, steps), lengths)
        most, totals, sums = groups[:VECTOR], groups[VECTOR:-1], groups[-1]
        for row, state in zip(self.rows, most, strict=True):
            found.maximum.finish(self.elements, plan.point(self.batch, row, Form()), state)
        self.merge([found.sums], totals)
        self.elements.reduced.add(found.maximum.op)
        wide = len(sums) // VECTOR
        divisors = []
        for row in self.rows:
            indices = row_indices(plan, found.total, plan.point(self.batch, row, Form()))
            divisors.append(widened(self.elements.get(found.total, indices), tiles.type))
        self.sums[found.sink.op] = [emit.same_type("arith.divf", v, divisors[n // wide]) for n, v in enumerate(sums)]

    def tile_online(
        self, found: Online, whole: Pass, start: Form, most: Values, totals: list[Values], sums: Values
    ) -> Values:
        """The maxima, the sums and the sums of the sink after a tile of columns."""
        kernel, plan = self.kernel, self.plan
        columns, valid = self.begin_tile(whole, start)
        wide = len(sums) // VECTOR
        largest, after, scaled = [], [], []
        for i, row in enumerate(self.rows):
            point = plan.point(self.batch, row, Form())
            state = [most[i]]
            for column, is_valid in zip(columns, valid, strict=True):
                state = found.maximum.take(self.elements, plan.point(self.batch, row, column), state, is_valid)
            (now,) = merge_group(
                kernel, found.maximum, state, self.member, self.slot, self.layout.across, self.layout.down
            )
            known = emit.same_type("arith.select", is_lowest(now), kernel.constant(0, now.type), now)
            self.elements.give(found.most, row_indices(plan, found.most, point), known)
            ones = [kernel.constant(1, type_) for type_ in found.sums.types]
            for result, one in zip(reduced_results(found.sums), ones, strict=True):
                self.elements.give(result, row_indices(plan, result, point), one)
            own = [
                emit.same_type("arith.mulf", v, factor_of(form, most[i], now, known, v.type))
                for v, form in zip(totals[i], found.forms, strict=True)
            ]
            for column, is_valid in zip(columns, valid, strict=True):
                own = found.sums.take(self.elements, plan.point(self.batch, row, column), own, is_valid)
            largest.append(now)
            after += own
            by = factor_of(EXPONENTIAL, most[i], now, known, sums[0].type)
            scaled += [emit.same_type("arith.mulf", v, by) for v in sums[i * wide : (i + 1) * wide]]
        self.write_weights(found.sink, columns, valid)
        scaled = self.multiply_weights(self.sinks[found.sink.op], start, scaled)
        kernel.lanes = 0
        return [*largest, *after, *scaled]

    def needed_tiles(self, each: Pass) -> tuple[Form | int, Form | int]:
        """The first tile of columns that a pass needs for the rows of the block, and the one after the last."""
        plan, layout = self.plan, self.layout
        steps = -(-plan.columns // layout.columns)
        found = window(plan, bands_of(plan, each), self.first_row, layout.rows)
        if found is None:
            return 0, steps
        lower: Form | int = 0
        upper: Form | int = steps
        if found.low is not None:
            lower = self.tiles_before(found.start + found.low)
        if found.high is not None:
            upper = self.tiles_before(found.start + (layout.rows + found.high + layout.columns - 1))
        return lower, upper

    def tiles_before(self, column: Form) -> Form:
        """The number of whole tiles of columns before one that may be negative or beyond the last."""
        kernel = self.kernel
        steps = -(-self.plan.columns // self.layout.columns)
        positive = emit.same_type("arith.maxsi", kernel.at(column), kernel.constant(0))
        tiles = emit.same_type("arith.divui", positive, kernel.constant(self.layout.columns))
        return form(Digit(Base(emit.same_type("arith.minsi", tiles, kernel.constant(steps)), steps + 1)))

    def begin_tile(self, each: Pass, start: Form) -> tuple[list[Form], Values]:
        """Multiply the scores of a tile; the columns of the thread, and whether each is within the scores."""
        kernel, count = self.kernel, self.plan.columns
        numbers = [start + self.member * VECTOR + lane for lane in range(VECTOR)]
        valid = [kernel.below(number, count) for number in numbers]
        columns = [kernel.clamped(number, count) for number in numbers]
        for product in each.products:
            self.multiply_scores(product, start, columns)
        kernel.lanes = VECTOR
        return columns, valid

    def tile(self, each: Pass, start: Form, states: list[Values], sums: list[Values]) -> list[Values]:
        """The states of the reductions and the sums of the sinks after the tile of columns that starts at an index."""
        kernel, plan = self.kernel, self.plan
        columns, valid = self.begin_tile(each, start)
        for number, combiner in enumerate(each.reductions):
            for i, row in enumerate(self.rows):
                at = number * len(self.rows) + i
                with combiner.op.location:
                    for column, is_valid in zip(columns, valid, strict=True):
                        point = plan.point(self.batch, row, column)
                        states[at] = combiner.take(self.elements, point, states[at], is_valid)
        found = []
        for sink, before in zip(each.sinks, sums, strict=True):
            with sink.op.location:
                self.write_weights(sink, columns, valid)
                found.append(self.multiply_weights(self.sinks[sink.op], start, before))
        kernel.lanes = 0
        return [*states, *found]

    def multiply_scores(self, product: Product, start: Form, columns: Sequence[Form]) -> None:
        """Compute the thread's elements of a product, and register them as known."""
        kernel, tiles = self.kernel, self.scores[product.op]
        tiles.origin = (self.first_row, start)
        depth = self.layout.depth

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

    def multiply_weights(self, tiles: ScoreTiles, start: Form, sums: Values) -> Values:
        """Add the products of the shared weights and a tile of the other factor."""
        kernel, depth = self.kernel, self.layout.depth
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

        return kernel.loop((0, self.layout.columns // depth, 1), step, sums)

    def merge(self, combiners: Sequence[Combiner], states: Sequence[Values]) -> None:
        """Merge the states of the threads of each row, and register the results as known."""
        layout, count = self.layout, len(self.rows)
        for number, combiner in enumerate(combiners):
            with combiner.op.location:
                for i, row in enumerate(self.rows):
                    state = merge_group(
                        self.kernel, combiner, states[number * count + i], self.member, self.slot, layout.across,
                        layout.down,
                    )  # fmt: skip
                    combiner.finish(self.elements, self.plan.point(self.batch, row, Form()), state)
            self.elements.reduced.add(combiner.op)

    def store_rows(self) -> None:
        """Store the results with an element for each row: the first thread of the row."""
        kernel = self.kernel
        if not self.plan.row_stores:
            return
        first = kernel.below(self.member, 1)
        for offset, row in zip(self.row_offsets, self.rows, strict=True):
            guards = [self.in_grid, first, kernel.below(self.first_row + offset, self.plan.rows)]
            kernel.guarded(guards, partial(self.store_row, row))

    def store_row(self, row: Form) -> None:
        """Store the results of a row."""
        point = self.plan.point(self.batch, row, Form())
        for (value, out), target in self.plan.row_stores:
            indices = read_indices(value, target, row_indices(self.plan, target, point))
            assert indices is not None
            self.kernel.store(out, [(flat(indices, value.type.shape), self.elements.get(value, indices))])

    def store_sink(self, tiles: ScoreTiles, sums: Values, stores: Sequence[Store]) -> None:
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


def is_lowest(value: mlir.Value) -> mlir.Value:
    """True (i1) if a number is minus infinity."""
    return emit.compare("oeq", value, emit.number(value.type, -math.inf))


def factor_of(form: str, before: mlir.Value, now: mlir.Value, known: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """The factor of a sum of terms of a form when the maximum of its row grows, in the type of the sum."""
    if form == EXPONENTIAL:
        before, known = (widened(value, type_) for value in (before, known))
        return widened(emit.same_type("math.exp", emit.same_type("arith.subf", before, known)), type_)
    same = emit.compare("oeq", before, now)
    return emit.same_type("arith.select", same, emit.number(type_, 1), emit.number(type_, 0))


def widened(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """A float with another type, at least as wide."""
    return value if value.type.width >= type_.width else emit.value("arith.extf", [value], type_)


def chunks(values: Sequence[mlir.Value], lengths: Sequence[int]) -> list[Values]:
    """Values in groups of these lengths."""
    found, start = [], 0
    for length in lengths:
        found.append(list(values[start : start + length]))
        start += length
    return found


def row_indices(plan: Plan, target: mlir.Value, point: Indices) -> Indices:
    """The indices of a reduced result at a row."""
    op = next(combiner.op for combiner in plan.reductions if target in reduced_results(combiner))
    return apply(out_map(op, list(op.results).index(target)), point)
