"""The kernel of a convolution whose vector lanes are filters: pixels are broadcast, without gathers.

pad x                       if it has padding
pack w                      [group][block][channel * taps][width], width filters interleaved
for plane, block, group:       plane, group, block where that reads less from beyond the second-level cache
    for tile of the group: sums[tile] = bias
    for chunk of channels:
        for tile of the group:
            acc = 0
            for channel of the chunk, tap: acc[pixel][vector] += broadcast(x[pixel]) * w[vector]
            sums[tile] += acc
    for tile of the group: out[filter][pixel] = transpose(sums[tile])

A group of tiles shares the weights of a chunk of channels, which stay in the first-level cache, and its sums are in
memory between chunks. If all channels are one chunk, a group is a row of tiles, and each tile is completed in
registers. The error of sums of chunks grows with the square root of the number of chunks, not with that of all terms
(Higham, "The accuracy of floating point summation", 1993).

Loops over channels and taps are not unrolled: LLVM would keep broadcasts alive across taps and spill. Planes and rows
of taps that only meet padding with zeros are skipped if all weights of the block are finite: 0 * infinity is not 0.
So are the pixels of a tile at the border of a row, each at the taps where it meets padding: there the taps along the
row are unrolled, and the loop over channels is inside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from mlirml.codegen.cpu.contract.kernel import add, fused_multiply_add
from mlirml.codegen.cpu.contract.pack import transpose
from mlirml.codegen.cpu.conv.borders import Border, borders_of
from mlirml.codegen.cpu.conv.epilogue import Epilogue
from mlirml.codegen.cpu.conv.frame import Argument, Frame, Kernel, Offsets, Padded, clamped, pad_plane
from mlirml.codegen.cpu.conv.plan import Plan, column_tiles, filter_iterations, plane_tiles
from mlirml.codegen.cpu.conv.problem import Axis, Problem, Slide
from mlirml.codegen.cpu.emitter import Emitter, Index, Value, View, vector
from mlirml.core.dataclass import dataclass

LEAST_SKIPPED = 0.02
"""The least part of the products that skipping those with padding must save."""


@dataclass(frozen=True)
class Source:
    """The source of pixels: a view, and its strides of channels and of the three spatial dimensions."""

    view: View
    channel: int
    strides: tuple[int, int, int]


class Position(NamedTuple):
    """The first row and column of a tile, and its number in a row of tiles."""

    row: Index
    column: Index
    number: Index


Bounds = tuple[tuple[Value, Value], ...]
"""The first and the end of the channels, and of the taps of the three spatial dimensions."""


class FilterKernel:
    """Emits one kernel."""

    def __init__(
        self, problem: Problem, plan: Plan, arguments: dict[str, Argument], filler: str, epilogue: Epilogue | None
    ) -> None:
        self.frame = Frame(problem, arguments, epilogue)
        self.e = self.frame.e
        self.problem, self.plan, self.filler = problem, plan, filler
        self.groups = [axis for axis in problem.planes if axis.w]
        self.blocks = -(-problem.filters.size // plan.width)
        self.depth = problem.channels.size * problem.taps  # of the sum
        self.panel = (self.depth + plan.lanes) * plan.width  # packing writes whole groups of the sum
        self.packed = self.frame.buffer(math.prod(a.size for a in self.groups) * self.blocks * self.panel)
        self.types = [vector(lanes, problem.element) for _, lanes in plan.parts]
        self.skips = is_zero(filler) and skipped(problem, plan) > LEAST_SKIPPED
        self.borders = borders_of(problem.slides[2], plan.columns, plan.rows * plan.vectors) if is_zero(filler) else []
        blocks = math.prod(a.size for a in self.groups) * self.blocks
        checks = problem.element[0] == "f" and (self.skips or self.borders)
        self.finite = self.frame.buffer(blocks) if checks else None

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        self._pack()
        source = self._source()
        problem, plan = self.problem, self.plan
        depth, height, width = problem.slides
        rows, blocks = [depth.count, -(-plane_tiles(problem, plan) // plan.tiles)], [self.blocks]
        whole = (0, problem.channels.size)
        if plan.chunk and not plan.grain:
            sums = self._sums()
        sizes = [*(a.size for a in problem.planes), *(rows + blocks if plan.rows_first else blocks + rows)]
        with self.frame.maybe_parallel(filter_iterations(problem, plan), plan.grain) as item:
            *outer, a, b, c = self.e.digits(item, sizes)
            if plan.chunk and plan.grain:
                sums = self._sums()
            block, plane, part = (c, a, b) if plan.rows_first else (a, b, c)
            offsets, group, number = Offsets(), Index(), Index()
            for axis, digit in zip(problem.planes, outer, strict=True):
                offsets = offsets.step(axis, digit)
                number = number * axis.size + digit
                if axis.w:
                    group = group * axis.size + digit
            weights = (group * self.blocks + block) * self.panel
            first = block * plan.width
            base = self._plane(source, number, offsets.x) + plane * (depth.stride * source.strides[0])
            out = offsets.out + first * problem.filters.out + plane * depth.out
            bias = group * problem.filters.size + first
            finite = self._finite(group * self.blocks + block)
            count = Index.of(plan.tiles)
            if plane_tiles(problem, plan) % plan.tiles:
                count = self.e.minimum(plan.tiles, part * -plan.tiles + plane_tiles(problem, plan))
            initial = self._start(bias, first)

            def total(t: Index, channels: tuple[Index | int, Index | int], before: list[str]) -> list[str]:
                tile = self._position(part, t)
                start = base + tile.row * (height.stride * source.strides[1])
                start += tile.column * (width.stride * source.strides[2])
                bounds = self._bounds(finite, plane, tile.row)
                return self._tile(tile.number, finite, source, start, weights, before, (channels, *bounds))

            def finish(t: Index, totals: list[str]) -> None:
                tile = self._position(part, t)
                self._store(totals, out + tile.row * height.out + tile.column * width.out, first, bias)

            if not plan.chunk:
                with self.e.loop(0, count, 1, "t") as t:
                    finish(t, total(t, whole, initial))
            else:
                with self.e.loop(0, count, 1, "t") as t:
                    self._put(sums, t, initial)
                with self.e.loop(0, problem.channels.size, plan.chunk, "c") as c:
                    channels = c, self.e.minimum(c + plan.chunk, problem.channels.size)
                    if problem.channels.size % plan.chunk == 0:
                        channels = c, c + plan.chunk
                    with self.e.loop(0, count, 1, "t") as t:
                        found = total(t, channels, self._zeros())
                        terms = zip(self._get(sums, t), found, self.types * plan.pixels, strict=True)
                        self._put(sums, t, [add(self.e, *each) for each in terms])
                with self.e.loop(0, count, 1, "t") as t:
                    finish(t, self._get(sums, t))
        return self.frame.finish(name)

    def _position(self, part: Index, tile: Index) -> Position:
        """The position of a tile of a group."""
        _, height, width = self.problem.slides
        plan, columns = self.plan, column_tiles(self.problem, self.plan)
        row, column = part, tile
        if plan.tiles != columns:
            row, column = self.e.digits(part * plan.tiles + tile, [-(-height.count // plan.rows), columns])
        first = clamped(self.e, row, plan.rows, height.count)
        return Position(first, clamped(self.e, column, plan.columns, width.count), column)

    def _sums(self) -> View:
        """Memory for the sums of a group of tiles, on the stack."""
        e, element = self.e, self.problem.element
        type_ = f"memref<{self.plan.tiles * self.plan.pixels * self.plan.vectors * self.plan.lanes}x{element}>"
        return View(e.let(f"memref.alloca() {{alignment = 64 : i64}} : {type_}", "sums"), element, type_)

    def _get(self, sums: View, tile: Index) -> list[str]:
        """The sums of a tile of a group."""
        plan = self.plan
        base = tile * (plan.pixels * plan.vectors * plan.lanes)
        return [self.e.load(sums, base + at, lanes) for at, lanes in self._slots()]

    def _put(self, sums: View, tile: Index, totals: list[str]) -> None:
        """Store the sums of a tile of a group."""
        plan = self.plan
        base = tile * (plan.pixels * plan.vectors * plan.lanes)
        for total, (at, lanes) in zip(totals, self._slots(), strict=True):
            self.e.store(total, sums, base + at, lanes)

    def _slots(self) -> list[tuple[int, int]]:
        """The offset and the lanes of each accumulator of a tile in memory."""
        plan = self.plan
        return [
            (pixel * plan.vectors * plan.lanes + first, lanes)
            for pixel in range(plan.pixels)
            for first, lanes in plan.parts
        ]

    def _source(self) -> Source:
        """The input, or a padded copy of it."""
        p, slides = self.problem, self.problem.slides
        view = self.frame.views["x"]
        if not p.is_padded:
            first, second, third = (slide.x for slide in slides)
            return Source(view, p.channels.x, (first, second, third))
        padded = Padded(slides)
        planes = [*p.planes, p.channels]
        count = math.prod(axis.size for axis in planes)
        room = self.frame.buffer(count * padded.size + 64)
        each = padded.size * 0.4
        with self.frame.maybe_parallel(count, max(1, math.ceil(20_000 / each)) if self.plan.grain else 0) as item:
            offsets = Offsets()
            for axis, digit in zip(planes, self.e.digits(item, [a.size for a in planes]), strict=True):
                offsets = offsets.step(axis, digit)
            pad_plane(self.e, slides, view, offsets.x, room, item * padded.size, self.filler, self.plan.lanes)
        return Source(room, padded.size, padded.strides)

    def _plane(self, source: Source, number: Index, x: Index) -> Index:
        """The offset of the pixels of a plane."""
        return number * (self.problem.channels.size * source.channel) if self.problem.is_padded else x

    def _pack(self) -> None:
        """Pack weights as panels of `width` filters; missing filters are zeros."""
        p, plan, e = self.problem, self.plan, self.e
        sizes = [*(a.size for a in self.groups), self.blocks]
        each = self.panel * 0.6
        count = math.prod(sizes)
        parallel = self.plan.grain and count > 1 and count * each > 60_000
        with self.frame.maybe_parallel(count, max(1, math.ceil(20_000 / each)) if parallel else 0) as item:
            *outer, block = e.digits(item, sizes)
            base = Index()
            for axis, digit in zip(self.groups, outer, strict=True):
                base += digit * axis.w
            base += block * (plan.width * p.filters.w)
            for first, lanes in plan.parts:
                left = Index.of(p.filters.size) - block * plan.width - first
                self._pack_vector(base + first * p.filters.w, item * self.panel + first, lanes, left)
            if self.finite is not None:
                e.store_scalar(self._remainder(item * self.panel), self.finite, item)

    def _remainder(self, room: Index) -> str:
        """The sum of all weights of a panel times zero: zero if they are finite, else NaN."""
        e, plan, element = self.e, self.plan, self.problem.element
        zeros = [e.zeros(lanes, element) for _, lanes in plan.parts]

        def step(k: Index, totals: list[str]) -> list[str]:
            weights = self._weights(room + k * plan.width)
            every = zip(weights, zeros, totals, self.types, strict=True)
            return [fused_multiply_add(e, weight, zero, total, kind) for weight, zero, total, kind in every]

        totals = e.carry((0, self.depth, 1), zeros, self.types, step)
        parts = zip(totals, self.types, strict=True)
        total, *others = [e.let(f"vector.reduction <add>, {each} : {kind} into {element}") for each, kind in parts]
        for other in others:
            total = e.let(f"arith.addf {total}, {other} : {element}")
        return total

    def _weights(self, at: Index) -> list[str]:
        """The weights of one tap of one channel for all filters of a tile."""
        return [self.e.load(self.packed, at + first, lanes) for first, lanes in self.plan.parts]

    def _finite(self, panel: Index) -> str:
        """True if all weights of a panel are finite; no value where that does not matter."""
        if self.finite is None:
            return ""
        e, element = self.e, self.problem.element
        zero = e.let(f"arith.constant 0.0 : {element}", "zero")
        return e.let(f"arith.cmpf oeq, {e.load_scalar(self.finite, panel)}, {zero} : {element}", "finite")

    def _bounds(self, finite: str, plane: Index, row: Index) -> list[tuple[Index, Index]]:
        """The taps to compute in each spatial dimension: those that meet elements for a tile of rows from `row` on."""
        depth, height, width = self.problem.slides
        every = [(Index(), Index.of(slide.kernel)) for slide in (depth, height, width)]
        if not self.skips:
            return every
        met = [(depth, *met_taps(self.e, depth, plane, 1)), (height, *met_taps(self.e, height, row, self.plan.rows))]
        if not finite:
            return [(low, high) for _, low, high in met] + every[2:]
        e = self.e

        def chosen(met: Index, all_: int) -> Index:
            if not met.terms:
                return met
            return Index(((e.let(f"arith.select {finite}, {e.at(met)}, {e.constant(all_)} : index", "i"), 1),))

        return [(chosen(low, 0), chosen(high, slide.kernel)) for slide, low, high in met] + every[2:]

    def _pack_vector(self, base: Index, room: Index, lanes: int, left: Index) -> None:
        """Pack `lanes` filters from `base` on, of which `left` exist."""
        p, plan, e = self.problem, self.plan, self.e
        view, group = self.frame.views["w"], plan.lanes
        rows = [base + lane * p.filters.w for lane in range(lanes)]
        if p.filters.size % plan.width:  # reload the last filter: results for it are not stored
            rows = [base + e.minimum(lane, left - 1) * p.filters.w for lane in range(lanes)]
        if self._is_dense():
            with e.loop(0, self.depth, group, "k") as k:
                limit = None if self.depth % group == 0 else Index.of(self.depth) - k
                square = [e.load(view, row + k, group, limit) for row in rows]
                for step, column in enumerate(transpose(e, square, lanes, group, p.element)):
                    e.store(column, self.packed, room + (k + step) * plan.width, lanes)
            return
        strides = [p.channels, *(Axis(s.kernel, 0, s.w, 0) for s in p.slides)]
        with (
            e.loop(0, strides[0].size) as c,
            e.loop(0, strides[1].size) as d,
            e.loop(0, strides[2].size) as h,
            e.loop(0, strides[3].size) as w,
        ):
            at = c * strides[0].w + d * strides[1].w + h * strides[2].w + w * strides[3].w
            k = ((c * strides[1].size + d) * strides[2].size + h) * strides[3].size + w
            for lane, row in enumerate(rows):
                e.store_scalar(e.load_scalar(view, row + at), self.packed, room + k * plan.width + lane)

    def _is_dense(self) -> bool:
        """True if the channels and taps of a filter are contiguous."""
        stride = 1
        for slide in reversed(self.problem.slides):
            if slide.kernel > 1 and slide.w != stride:
                return False
            stride *= slide.kernel
        return self.problem.channels.size == 1 or self.problem.channels.w == stride

    def _zeros(self) -> list[str]:
        """Accumulators of zeros, pixel by pixel."""
        return [self.e.zeros(lanes, self.problem.element) for _, lanes in self.plan.parts] * self.plan.pixels

    def _start(self, bias: Index, first: Index) -> list[str]:
        """The initial sums, pixel by pixel."""
        plan, e = self.plan, self.e
        if "bias" not in self.frame.views:
            return self._zeros()
        values = []
        for start, lanes in plan.parts:
            whole = self.problem.filters.size % plan.width == 0
            left = None if whole else Index.of(self.problem.filters.size) - first - start
            values.append(e.load(self.frame.views["bias"], bias + start, lanes, left))
        return values * plan.pixels

    def _tile(
        self,
        number: Index,
        finite: str,
        source: Source,
        start: Index,
        weights: Index,
        initial: list[str],
        bounds: Bounds,
    ) -> list[str]:
        """The sums of tile `number` of a row: without the products with padding where it is a border."""
        e, types = self.e, self.types * self.plan.pixels
        tiles = column_tiles(self.problem, self.plan)

        def summed(borders: list[Border]) -> list[str]:
            if not borders:
                return self._sum(source, start, weights, initial, bounds)
            border, *others = borders
            condition = self._is_of(border, number, finite, tiles)
            if not condition:
                return self._border_sum(border, source, start, weights, initial, bounds)
            return e.either(
                condition,
                types,
                lambda: self._border_sum(border, source, start, weights, initial, bounds),
                lambda: summed(others),
            )

        return summed(self.borders)

    def _is_of(self, border: Border, number: Index, finite: str, tiles: int) -> str:
        """True if a tile is one of a border and its weights are finite; no value if that is certain."""
        e = self.e
        if len(border.tiles) == tiles:
            return finite
        same = [e.let(f"arith.cmpi eq, {e.at(number)}, {e.constant(tile)} : index") for tile in border.tiles]
        found = functools.reduce(lambda one, other: e.let(f"arith.ori {one}, {other} : i1"), same)
        return e.let(f"arith.andi {found}, {finite} : i1") if finite else found

    def _sum(self, source: Source, start: Index, weights: Index, initial: list[str], bounds: Bounds) -> list[str]:
        """The accumulators, summed over the channels and the taps of each dimension within bounds."""
        p, e = self.problem, self.e
        sizes = [p.channels.size, *(slide.kernel for slide in p.slides)]
        strides = [slide.dilation * stride for slide, stride in zip(p.slides, source.strides, strict=True)]
        loops = [
            (low, high, size, stride)
            for (low, high), size, stride in zip(bounds, sizes, [source.channel, *strides], strict=True)
        ]
        pixels = list(range(self.plan.pixels))

        def nest(level: int, x: Index, k: Index, totals: list[str]) -> list[str]:
            if level == len(loops):
                return self._tap(source, x, weights + k * self.plan.width, pixels, totals)
            low, high, size, stride = loops[level]
            return e.carry(
                (low, high, 1),
                totals,
                self.types * self.plan.pixels,
                lambda i, inner: nest(level + 1, x + i * stride, k * size + i, inner),
            )

        return nest(0, start, Index(), initial)

    def _border_sum(
        self,
        border: Border,
        source: Source,
        start: Index,
        weights: Index,
        initial: list[str],
        bounds: Bounds,
    ) -> list[str]:
        """The accumulators of a border, each summed over the taps where it meets elements."""
        p, plan, e = self.problem, self.plan, self.e
        depth, height, width = p.slides
        every = self.types * plan.pixels
        face, row, column = source.strides
        channels, planes, rows, _ = bounds

        def row_of_taps(d: Index, h: Index, totals: list[str]) -> list[str]:
            for w, met in enumerate(border.met):
                if not met:
                    continue
                pixels = [r * plan.columns + i for r in range(plan.rows) for i in met]
                kept = [i * plan.vectors + v for i in pixels for v in range(plan.vectors)]
                x = start + d * (depth.dilation * face) + h * (height.dilation * row) + w * width.dilation * column
                k = (d * height.kernel + h) * width.kernel + w

                def channel(
                    c: Index, inner: list[str], x: Index = x, k: Index = k, pixels: list[int] = pixels
                ) -> list[str]:
                    at = weights + (c * p.taps + k) * plan.width
                    return self._tap(source, x + c * source.channel, at, pixels, inner)

                found = e.carry((*channels, 1), [totals[i] for i in kept], [every[i] for i in kept], channel)
                totals = list(totals)
                for i, value in zip(kept, found, strict=True):
                    totals[i] = value
            return totals

        return e.carry(
            (*planes, 1),
            initial,
            every,
            lambda d, outer: e.carry((*rows, 1), outer, every, lambda h, inner: row_of_taps(d, h, inner)),
        )

    def _tap(self, source: Source, x: Index, weights: Index, pixels: list[int], totals: Sequence[str]) -> list[str]:
        """The accumulators of some pixels of a tile at `x`, after one tap of one channel."""
        p, e = self.problem, self.e
        factors, offsets = self._weights(weights), self._pixels(source)
        results = []
        for position, number in enumerate(pixels):
            pixel = e.load_scalar(source.view, x + offsets[number])
            for v, (factor, kind) in enumerate(zip(factors, self.types, strict=True)):
                spread = e.let(f"vector.broadcast {pixel} : {p.element} to {kind}")
                total = totals[position * self.plan.vectors + v]
                results.append(fused_multiply_add(e, spread, factor, total, kind))
        return results

    def _pixels(self, source: Source) -> list[int]:
        """The offsets of the pixels of a tile."""
        _, height, width = self.problem.slides
        _, row, column = source.strides
        return [
            r * height.stride * row + c * width.stride * column
            for r in range(self.plan.rows)
            for c in range(self.plan.columns)
        ]

    def _store(self, totals: list[str], out: Index, first: Index, counted: Index) -> None:
        """Store rows of pixels for each filter; `first` is the first of the tile in its group, `counted` in all."""
        p, plan, e = self.problem, self.plan, self.e
        view, whole = self.frame.views["out"], p.filters.size % plan.width == 0
        for number, (start, lanes) in enumerate(plan.parts):
            rows = [totals[pixel * plan.vectors + number] for pixel in range(plan.pixels)]
            if lanes < plan.lanes:  # the vectors to store are of pixels
                wide = [lane % lanes for lane in range(plan.lanes)]
                rows = [e.shuffle(row, row, wide, lanes, p.element) for row in rows]
            columns = transpose(e, rows, plan.lanes, plan.lanes, p.element)
            for filter_, values in enumerate(columns[:lanes], start):
                at = out + filter_ * p.filters.out
                valid = plan.pixels if whole else self._valid(Index.of(p.filters.size) - first - filter_)
                known = counted + filter_
                if self.frame.epilogue is not None and not whole:
                    known = counted - first + e.minimum(first + filter_, p.filters.size - 1)
                values = self.frame.finished(values, known, at, plan.lanes, valid)
                e.store(values, view, at, plan.lanes, valid)

    def _valid(self, left: Index) -> Index:
        """The pixels of a filter, none if it does not exist."""
        e = self.e
        exists = e.let(f"arith.cmpi sgt, {e.at(left)}, {e.constant(0)} : index")
        name = e.let(f"arith.select {exists}, {e.constant(self.plan.pixels)}, {e.constant(0)} : index", "i")
        return Index(((name, 1),))


def is_zero(filler: str) -> bool:
    """True for the text of a constant that is zero; infinities are written in hexadecimal."""
    try:
        return float(filler) == 0
    except ValueError:
        return False


def skipped(problem: Problem, plan: Plan) -> float:
    """The part of the products in planes and rows of taps that meet padding only."""
    depth, height, _ = problem.slides
    return 1 - met_part(depth, 1) * met_part(height, plan.rows)


def met_part(slide: Slide, tile: int) -> float:
    """The part of the taps of a dimension that meet an element, for positions in tiles that overlap at the end."""
    starts = [min(first, slide.count - tile) for first in range(0, slide.count, tile)]
    met = 0
    for start in starts:
        low = max(0, -(-(slide.low - (start + tile - 1) * slide.stride) // slide.dilation))
        high = min(slide.kernel, -(-(slide.low + slide.size - start * slide.stride) // slide.dilation))
        met += max(0, high - low)
    return met / (len(starts) * slide.kernel)


def met_taps(e: Emitter, slide: Slide, start: Index, tile: int) -> tuple[Index, Index]:
    """The first tap that meets an element from one of `tile` positions from `start` on, and the end of these taps."""
    if not slide.low and not slide.high:
        return Index(), Index.of(slide.kernel)
    last = start * slide.stride + (tile - 1) * slide.stride
    low = ceiling(e, e.maximum(last * -1 + slide.low, 0), slide.dilation)
    past = start * -slide.stride + (slide.low + slide.size)
    high = e.minimum(ceiling(e, e.maximum(past, 0), slide.dilation), slide.kernel)
    return low, high


def ceiling(e: Emitter, index: Index, by: int) -> Index:
    """A linear form that is not negative divided by a number, rounded up."""
    if by == 1:
        return index
    return Index(((e.let(f"arith.divui {e.at(index + (by - 1))}, {e.constant(by)} : index", "i"), 1),))
