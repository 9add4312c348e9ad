"""The kernel of a convolution whose vector lanes are filters: pixels are broadcast, without gathers.

pad x                       if it has padding
pack w                      [group][block][channel * taps][width], width filters interleaved
for plane, block, row tile:
    for column tile:
        for channel, tap: acc[pixel][vector] += broadcast(x[pixel]) * w[vector]
        out[filter][pixel] = transpose(acc)

Loops over channels and taps are not unrolled: LLVM would keep broadcasts alive across taps and spill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.codegen.cpu.contract.kernel import fused_multiply_add
from mlirml.codegen.cpu.contract.pack import transpose
from mlirml.codegen.cpu.conv.epilogue import Epilogue
from mlirml.codegen.cpu.conv.frame import Argument, Frame, Kernel, Offsets, Padded, clamped, pad_plane
from mlirml.codegen.cpu.conv.plan import Plan, filter_iterations
from mlirml.codegen.cpu.conv.problem import Axis, Problem
from mlirml.codegen.cpu.emitter import Index, View, vector
from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class Source:
    """The source of pixels: a view, and its strides of channels and of the three spatial dimensions."""

    view: View
    channel: int
    strides: tuple[int, int, int]


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
        self.type = vector(plan.lanes, problem.element)

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        self._pack()
        source = self._source()
        problem, plan = self.problem, self.plan
        depth, height, width = problem.slides
        tiles = -(-height.count // plan.rows)
        sizes = [*(a.size for a in problem.planes), self.blocks, depth.count, tiles]
        with self.frame.maybe_parallel(filter_iterations(problem, plan), plan.grain) as item:
            *outer, block, plane, tile = self.e.digits(item, sizes)
            offsets, group, number = Offsets(), Index(), Index()
            for axis, digit in zip(problem.planes, outer, strict=True):
                offsets = offsets.step(axis, digit)
                number = number * axis.size + digit
                if axis.w:
                    group = group * axis.size + digit
            weights = (group * self.blocks + block) * self.panel
            first = block * plan.width
            row = clamped(self.e, tile, plan.rows, height.count)
            base = self._plane(source, number, offsets.x)
            base += plane * (depth.stride * source.strides[0]) + row * (height.stride * source.strides[1])
            out = offsets.out + first * problem.filters.out + plane * depth.out + row * height.out
            with self.e.loop(0, -(-width.count // plan.columns), 1, "t") as t:
                column = clamped(self.e, t, plan.columns, width.count)
                start = base + column * (width.stride * source.strides[2])
                bias = group * problem.filters.size + first
                totals = self._sum(source, start, weights, self._start(bias, first))
                self._store(totals, out + column * width.out, first, bias)
        return self.frame.finish(name)

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
            for number in range(plan.vectors):
                left = Index.of(p.filters.size) - block * plan.width - number * plan.lanes
                part = base + number * (plan.lanes * p.filters.w)
                self._pack_vector(part, item * self.panel + number * plan.lanes, left)

    def _pack_vector(self, base: Index, room: Index, left: Index) -> None:
        """Pack `lanes` filters from `base` on, of which `left` exist."""
        p, plan, e = self.problem, self.plan, self.e
        lanes, view = plan.lanes, self.frame.views["w"]
        rows = [base + lane * p.filters.w for lane in range(lanes)]
        if p.filters.size % plan.width:  # reload the last filter: results for it are not stored
            rows = [base + e.minimum(lane, left - 1) * p.filters.w for lane in range(lanes)]
        if self._is_dense():
            with e.loop(0, self.depth, lanes, "k") as k:
                limit = None if self.depth % lanes == 0 else Index.of(self.depth) - k
                square = [e.load(view, row + k, lanes, limit) for row in rows]
                for step, column in enumerate(transpose(e, square, lanes, lanes, p.element)):
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

    def _start(self, bias: Index, first: Index) -> list[str]:
        """The initial accumulators, pixel by pixel."""
        plan, e = self.plan, self.e
        if "bias" not in self.frame.views:
            return [e.zeros(plan.lanes, self.problem.element)] * (plan.pixels * plan.vectors)
        values = []
        for number in range(plan.vectors):
            whole = self.problem.filters.size % plan.width == 0
            left = None if whole else Index.of(self.problem.filters.size) - first - number * plan.lanes
            values.append(e.load(self.frame.views["bias"], bias + number * plan.lanes, plan.lanes, left))
        return values * plan.pixels

    def _sum(self, source: Source, start: Index, weights: Index, initial: list[str]) -> list[str]:
        """The accumulators, summed over channels and taps."""
        p, plan, e = self.problem, self.plan, self.e
        loops = [(p.channels.size, source.channel)]
        loops += [(s.kernel, s.dilation * stride) for s, stride in zip(p.slides, source.strides)]
        offsets = self._pixels(source)
        types = [self.type] * len(initial)

        def tap(x: Index, k: Index, totals: Sequence[str]) -> list[str]:
            factors = [
                e.load(self.packed, weights + k * plan.width + number * plan.lanes, plan.lanes)
                for number in range(plan.vectors)
            ]
            results = []
            for position, offset in enumerate(offsets):
                pixel = e.load_scalar(source.view, x + offset)
                spread = e.let(f"vector.broadcast {pixel} : {p.element} to {self.type}")
                for number, factor in enumerate(factors):
                    total = totals[position * plan.vectors + number]
                    results.append(fused_multiply_add(e, spread, factor, total, self.type))
            return results

        def nest(level: int, x: Index, k: Index, totals: list[str]) -> list[str]:
            if level == len(loops):
                return tap(x, k, totals)
            size, stride = loops[level]
            return e.carry(
                (0, size, 1),
                totals,
                types,
                lambda i, inner: nest(level + 1, x + i * stride, k * size + i, inner),
            )

        return nest(0, start, Index(), initial)

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
        for number in range(plan.vectors):
            rows = [totals[pixel * plan.vectors + number] for pixel in range(plan.pixels)]
            for lane, values in enumerate(transpose(e, rows, plan.lanes, plan.lanes, p.element)):
                filter_ = number * plan.lanes + lane
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
