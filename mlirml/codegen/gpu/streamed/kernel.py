"""The kernel of streamed scores: a block of threads has some rows, and iterates over tiles of the columns.

    for each pass:
        for tile in the tiles of the columns:
            scores = the products of the rows and the tile, in registers
            state = the reductions of the pass, each thread with its own columns
            shared weights = what the sinks multiply, computed of the scores
            sums += shared weights @ the tile of the other factor
        the states of the threads of a row are merged, and known from here on
    the results, computed from the sums and from what was reduced

The threads that share a row have some of its columns each. Of a matrix of scores nothing is stored; what several
kernels need of it is computed in each of them. How threads multiply is said in `fma.py` and `mma.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from mlirml.codegen.gpu.combiners import Combiner, Values
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import SharedTiles
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.groups import merge_group
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import Kernel
from mlirml.codegen.gpu.reads import read_indices
from mlirml.codegen.gpu.streamed.masks import bands_of, window
from mlirml.codegen.gpu.streamed.online import Online, factor_of, known_maximum, widened
from mlirml.codegen.gpu.streamed.plan import Pass, Plan, Store, reduced_results, row_indices
from mlirml.codegen.gpu.streamed.split import Split, find_online, store_part
from mlirml.ir import emit
from mlirml.ir.bindings import mlir


class Blocks(Protocol):
    """The rows of a block, the columns of a tile, and the threads: `down` groups of `across`, which share rows."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def down(self) -> int: ...

    @property
    def across(self) -> int: ...


class Streamed:
    """The kernel, but for the products: the rows of its block, the passes, and the stores."""

    lanes: int
    """The adjacent columns of a thread."""

    def __init__(self, kernel: Kernel, plan: Plan, layout: Blocks, split: Split | None = None) -> None:
        self.kernel = kernel
        self.plan = plan
        self.layout = layout
        self.split = split
        self.elements = Elements(kernel)
        self.row_blocks = -(-plan.rows // layout.rows)
        counts = [1 if split is None else split.parts, plan.batches, self.row_blocks]
        block = kernel.cover(math.prod(counts))
        self.in_grid = kernel.below(block, math.prod(counts))
        self.part, self.batch, number = cut_up(kernel.clamped(block, math.prod(counts)), counts)
        self.first_row = number * layout.rows
        self.slot, self.member = cut_up(kernel.thread(), [layout.down, layout.across])
        self.row_offsets = self.own_rows()
        self.rows = [kernel.clamped(self.first_row + offset, plan.rows) for offset in self.row_offsets]
        self.scores = {product.op: self.score_tiles(product) for product in plan.products}
        self.sinks = {sink.op: self.sink_tiles(sink) for sink in plan.sinks}
        self.sums: dict[mlir.Operation, Values] = {}

    def own_rows(self) -> list[Form]:
        """The rows of the thread within the block's."""
        raise NotImplementedError

    def own_columns(self) -> list[Form]:
        """The columns of the thread within a tile: groups of adjacent ones, as many as it loads at once."""
        raise NotImplementedError

    def sink_columns(self, sink: Product) -> list[Form]:
        """The columns of a sink whose sums the thread has, in groups of adjacent ones."""
        raise NotImplementedError

    def score_tiles(self, product: Product) -> SharedTiles:
        """The tile of a product of the scores."""
        raise NotImplementedError

    def sink_tiles(self, sink: Product) -> SharedTiles:
        """The tile of a sink: its weights, a tile of the scores, and some rows of the other factor."""
        raise NotImplementedError

    def zeros(self, sink: Product) -> Values:
        """The sums of a sink before the first tile, row by row."""
        raise NotImplementedError

    def multiply_scores(self, product: Product, start: Form, columns: Sequence[Form]) -> None:
        """Compute the thread's elements of a product, and register them as known."""
        raise NotImplementedError

    def add_to_sink(
        self, sink: Product, start: Form, columns: Sequence[Form], valid: Sequence[mlir.Value | None], sums: Values
    ) -> Values:
        """Add the products of the weights of a tile and the other factor to the sums of a sink."""
        raise NotImplementedError

    def store_sink(self, tiles: SharedTiles, sums: Values, stores: Sequence[Store]) -> None:
        """Store the results that are computed from the sums of a sink."""
        raise NotImplementedError

    def build(self) -> None:
        """Build the kernel."""
        online = find_online(self.kernel.host, self.plan)
        if online is not None:
            self.run_online(online)
        for each in self.plan.passes if online is None else ():
            self.run(each)
        if self.split is not None:
            return  # another kernel has the results
        self.store_rows()
        for sink, stores in zip(self.plan.sinks, self.plan.sink_stores, strict=True):
            self.store_sink(self.sinks[sink.op], self.sums[sink.op], stores)

    def run(self, each: Pass) -> None:
        """One pass over the columns."""
        plan, layout = self.plan, self.layout
        states: list[Values] = []
        for combiner in each.reductions:
            for row in self.rows:
                with combiner.op.location:
                    states.append(combiner.start(self.elements, plan.point(self.batch, row, Form())))
        zeros = [self.zeros(sink) for sink in each.sinks]
        carried = [value for group in (*states, *zeros) for value in group]
        lengths = [len(group) for group in (*states, *zeros)]
        lower, upper = self.needed_tiles(each)

        def step(number: Form, values: Values) -> Values:
            groups = chunks(values, lengths)
            found = self.tile(each, number * layout.columns, groups[: len(states)], groups[len(states) :])
            return [value for group in found for value in group]

        groups = chunks(self.each_tile(each, (lower, upper), step, carried), lengths)
        self.merge(each.reductions, groups[: len(states)])
        for sink, sums in zip(each.sinks, groups[len(states) :], strict=True):
            self.sums[sink.op] = sums

    def each_tile(
        self,
        each: Pass,
        bounds: tuple[Form | int, Form | int],
        step: Callable[[Form, Values], Values],
        carried: Values,
    ) -> Values:
        """A loop over the tiles of the columns that a pass needs."""
        steps = -(-self.plan.columns // self.layout.columns)
        return self.kernel.loop((*bounds, 1), step, carried, steps)

    def unscaled(self, sink: Product, sums: Values) -> Values:
        """The sums of a sink, of which `add_to_sink` may have made a multiple."""
        return sums

    def run_online(self, found: Online) -> None:
        """All passes in one over the columns: each merges the maxima of its tile, and scales the sums before it."""
        kernel, plan = self.kernel, self.plan
        first, second, third = plan.passes
        whole = Pass(
            (), (), tuple(p for p in plan.products if p in (*first.products, *second.products, *third.products))
        )
        count = len(self.rows)
        counts = [1] * count + [len(found.forms)] * count
        begun = self.zeros(found.sink)
        lowest = found.maximum.start(self.elements, plan.point(self.batch, self.rows[0], Form()))
        zeros = [kernel.constant(0, type_) for type_ in found.sums.types]
        carried = [*lowest * count, *zeros * count, *begun]
        lengths = [*counts, len(begun)]
        needed = Pass((found.maximum, found.sums), (found.sink,), whole.products)

        def step(number: Form, values: Values) -> Values:
            groups = chunks(values, lengths)
            most, totals, sums = groups[:count], groups[count:-1], groups[-1]
            return self.tile_online(found, whole, number * self.layout.columns, [v for (v,) in most], totals, sums)

        groups = chunks(self.each_tile(needed, self.tiles_of_part(needed), step, carried), lengths)
        most, totals, sums = groups[:count], groups[count:-1], groups[-1]
        sums = self.unscaled(found.sink, sums)
        if self.split is not None:
            totals = [self.merged(found.sums, total) for total in totals]
            store_part(self, self.split, found, [v for (v,) in most], totals, sums)
            return
        for row, state in zip(self.rows, most, strict=True):
            found.maximum.finish(self.elements, plan.point(self.batch, row, Form()), state)
        self.merge([found.sums], totals)
        self.elements.reduced.add(found.maximum.op)
        wide = len(sums) // count
        divisors = []
        for row in self.rows:
            indices = row_indices(plan, found.total, plan.point(self.batch, row, Form()))
            divisors.append(widened(self.elements.get(found.total, indices), sums[0].type))
        self.sums[found.sink.op] = [emit.same_type("arith.divf", v, divisors[n // wide]) for n, v in enumerate(sums)]

    def tile_online(
        self, found: Online, whole: Pass, start: Form, most: Values, totals: list[Values], sums: Values
    ) -> Values:
        """The maxima, the sums and the sums of the sink after a tile of columns."""
        kernel, plan = self.kernel, self.plan
        columns, valid = self.begin_tile(whole, start)
        wide = len(sums) // len(self.rows)
        largest, after, scaled = [], [], []
        for i, row in enumerate(self.rows):
            point = plan.point(self.batch, row, Form())
            state = [most[i]]
            for column, is_valid in zip(columns, valid, strict=True):
                state = found.maximum.take(self.elements, plan.point(self.batch, row, column), state, is_valid)
            (now,) = self.merged(found.maximum, state)
            known = known_maximum(now)
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
            by = factor_of(found.form_of_sink, most[i], now, known, sums[0].type)
            scaled += [emit.same_type("arith.mulf", v, by) for v in sums[i * wide : (i + 1) * wide]]
        scaled = self.add_to_sink(found.sink, start, columns, valid, scaled)
        kernel.lanes = 0
        return [*largest, *after, *scaled]

    def tiles_of_part(self, each: Pass) -> tuple[Form | int, Form | int]:
        """The tiles of columns that a pass needs of the part of the block."""
        lower, upper = self.needed_tiles(each)
        if self.split is None:
            return lower, upper
        steps = -(-self.plan.columns // self.layout.columns)
        first = self.part * self.split.tiles
        return self.bound("maxsi", lower, first, steps), self.bound("minsi", upper, first + self.split.tiles, steps)

    def bound(self, name: str, a: Form | int, b: Form, steps: int) -> Form:
        """The larger or the smaller one of two numbers of tiles."""
        chosen = emit.same_type(f"arith.{name}", self.kernel.at(a), self.kernel.at(b))
        return form(Digit(Base(chosen, steps + 1)))

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
        numbers = [start + column for column in self.own_columns()]
        valid = [kernel.below(number, count) for number in numbers]
        columns = [kernel.clamped(number, count) for number in numbers]
        for product in each.products:
            self.multiply_scores(product, start, columns)
        kernel.lanes = self.lanes
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
                found.append(self.add_to_sink(sink, start, columns, valid, before))
        kernel.lanes = 0
        return [*states, *found]

    def merge(self, combiners: Sequence[Combiner], states: Sequence[Values]) -> None:
        """Merge the states of the threads of each row, and register the results as known."""
        count = len(self.rows)
        for number, combiner in enumerate(combiners):
            with combiner.op.location:
                for i, row in enumerate(self.rows):
                    state = self.merged(combiner, states[number * count + i])
                    combiner.finish(self.elements, self.plan.point(self.batch, row, Form()), state)
            self.elements.reduced.add(combiner.op)

    def merged(self, combiner: Combiner, state: Values) -> Values:
        """The state of a row, of those of its threads."""
        layout = self.layout
        return merge_group(self.kernel, combiner, state, self.member, self.slot, layout.across, layout.down)

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


def chunks(values: Sequence[mlir.Value], lengths: Sequence[int]) -> list[Values]:
    """Values in groups of these lengths."""
    found, start = [], 0
    for length in lengths:
        found.append(list(values[start : start + length]))
        start += length
    return found
