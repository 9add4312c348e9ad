"""The kernel of a convolution or pooling whose vector lanes are pixels of a row: depthwise, or of few filters.

for plane:
    pad the plane           if it has padding
    for filter, row tile, column tile:
        for channel:
            for tap: acc[row] = combine(acc[row], x[row + tap] * w[tap])
        out = acc

The rows of a tile share loads. A tile of few rows has several vectors in each, so that additions are not latency bound.
With a stride, as many vectors as the stride are loaded and shuffled. If there is one row of one plane only, its tiles
are distributed over threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.codegen.cpu.contract.kernel import fused_multiply_add
from mlirml.codegen.cpu.conv.epilogue import Epilogue
from mlirml.codegen.cpu.conv.frame import Argument, Frame, Kernel, Offsets, Padded, clamped, pad_plane
from mlirml.codegen.cpu.conv.plan import MOST_TAPS, Plan, pixel_iterations, shares_columns
from mlirml.codegen.cpu.conv.problem import Problem
from mlirml.codegen.cpu.emitter import Index, View, vector
from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class Source:
    """The source of pixels: a view, the offset of the plane, and the strides of channels and spatial dimensions."""

    view: View
    base: Index
    channel: int
    strides: tuple[int, int, int]


class PixelKernel:
    """Emits one kernel. `initial` is the text of the initial accumulators, if there is no bias."""

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        arguments: dict[str, Argument],
        filler: str,
        epilogue: Epilogue | None,
        initial: str,
    ) -> None:
        self.frame = Frame(problem, arguments, epilogue)
        self.e = self.frame.e
        self.problem, self.plan, self.filler, self.initial = problem, plan, filler, initial
        self.type = vector(plan.lanes, problem.element)
        self.padded = Padded(problem.slides)
        self.room: View | None = None

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        p, plan, e = self.problem, self.plan, self.e
        iterations = pixel_iterations(p)
        if plan.grain and shares_columns(p):
            self._plane(Index(), Index())
            return self.frame.finish(name)
        chunks, each = self._chunks(), self._chunk_size()
        if p.is_padded:
            self.room = self.frame.buffer(chunks * self._room_size())
        with self.frame.maybe_parallel(chunks, 1 if plan.grain else 0) as chunk:
            low = chunk * each
            high = e.minimum(low + each, iterations) if iterations % each else low + each
            with e.loop(low, high) as item:
                self._plane(item, chunk)
        return self.frame.finish(name)

    def _chunk_size(self) -> int:
        """The number of iterations of a chunk."""
        iterations = pixel_iterations(self.problem)
        return -(-iterations // -(-iterations // self.plan.grain)) if self.plan.grain else iterations

    def _chunks(self) -> int:
        """The number of chunks, each with scratch memory of its own."""
        return -(-pixel_iterations(self.problem) // self._chunk_size())

    def _room_size(self) -> int:
        size = self.problem.channels.size * self.padded.size + 64
        return -(-size // 16) * 16

    def _plane(self, item: Index, chunk: Index) -> None:
        """Compute all filters of a padded plane, or one filter of one plane."""
        p = self.problem
        axes = [*p.planes] if p.is_padded else [*p.planes, p.filters]
        offsets, number = Offsets(), Index()
        for axis, digit in zip(axes, self.e.digits(item, [a.size for a in axes]), strict=True):
            offsets = offsets.step(axis, digit)
            if axis.w:
                number = number * axis.size + digit
        source = self._source(offsets.x, chunk)
        if not p.is_padded:
            self._compute_filter(source, offsets, number, chunk)
            return
        with self.e.loop(0, p.filters.size, 1, "f") as f:
            self._compute_filter(source, offsets.step(p.filters, f), number * p.filters.size + f, chunk)

    def _compute_filter(self, source: Source, offsets: Offsets, number: Index, chunk: Index) -> None:
        """Compute one filter of one plane in a chunk; `number` counts filters over all groups."""
        p = self.problem
        depth, height, width = p.slides
        single = p.channels.size == 1 and p.taps <= MOST_TAPS
        weights = self._weights(offsets.w) if single else []
        with (
            self.e.loop(0, depth.count, 1, "d") as d,
            self.e.loop(0, -(-height.count // self.plan.rows), 1, "h") as h,
        ):
            row = clamped(self.e, h, self.plan.rows, height.count)
            start = source.base + d * (depth.stride * source.strides[0]) + row * (height.stride * source.strides[1])
            out = offsets.out + d * depth.out + row * height.out
            tiles = -(-width.count // self.plan.columns)
            shared = self.plan.grain if shares_columns(p) else 0
            with self.e.parallel(tiles, shared) if shared else self.e.loop(0, tiles, 1, "t") as t:
                column = clamped(self.e, t, self.plan.columns, width.count)
                at = start + column * (width.stride * source.strides[2])
                totals = self._tile(source, at, offsets.w, weights, self._start(number))
                self._finish_tile(totals, out + column, number)

    def _finish_tile(self, totals: list[str], out: Index, number: Index) -> None:
        """Store the accumulators of a tile from `out` on, after the epilogue."""
        for (r, v), total in zip(self._accumulators(), totals, strict=True):
            there = out + r * self.problem.slides[1].out + v * self.plan.lanes
            total = self.frame.finished(total, number, there, self.plan.lanes, None)
            self.e.store(total, self.frame.views["out"], there, self.plan.lanes)

    def _source(self, x: Index, chunk: Index) -> Source:
        """The plane itself, or a padded copy of its channels."""
        p, view = self.problem, self.frame.views["x"]
        if self.room is None:
            first, second, third = (slide.x for slide in p.slides)
            return Source(view, x, p.channels.x, (first, second, third))
        base = chunk * self._room_size()
        with self.e.loop(0, p.channels.size, 1, "c") as c:
            at = base + c * self.padded.size
            pad_plane(self.e, p.slides, view, x + c * p.channels.x, self.room, at, self.filler, self.plan.lanes)
        return Source(self.room, base, self.padded.size, self.padded.strides)

    def _start(self, number: Index) -> list[str]:
        if "bias" in self.frame.views:
            value = self.e.load_scalar(self.frame.views["bias"], number)
            spread = self.e.let(f"vector.broadcast {value} : {self.problem.element} to {self.type}")
        else:
            spread = self.e.let(f"arith.constant dense<{self.initial}> : {self.type}", "init")
        return [spread] * (self.plan.rows * self.plan.vectors)

    def _accumulators(self) -> list[tuple[int, int]]:
        """The row, and the vector in it, of each accumulator of a tile."""
        return [(r, v) for r in range(self.plan.rows) for v in range(self.plan.vectors)]

    def _across(self, source: Source) -> int:
        """The distance from the first pixel of a vector to that of the next one."""
        return self.plan.lanes * self.problem.slides[2].stride * source.strides[2]

    def _weights(self, base: Index) -> list[str]:
        """All taps of one channel, each broadcast to a vector; none for poolings."""
        p = self.problem
        if not p.product:
            return []
        depth, height, width = p.slides
        values = []
        for d in range(depth.kernel):
            for h in range(height.kernel):
                values += [self._weight(base + d * depth.w + h * height.w + w * width.w) for w in range(width.kernel)]
        return values

    def _weight(self, at: Index) -> str:
        value = self.e.load_scalar(self.frame.views["w"], at)
        return self.e.let(f"vector.broadcast {value} : {self.problem.element} to {self.type}")

    def _tile(self, source: Source, at: Index, base: Index, weights: list[str], start: list[str]) -> list[str]:
        """The accumulators of a tile, row by row."""
        p, types = self.problem, [self.type] * (self.plan.rows * self.plan.vectors)
        if weights or (not p.product and p.taps <= MOST_TAPS):
            return self._taps(source, at, weights, start)
        if p.taps <= MOST_TAPS:
            return self.e.carry(
                (0, p.channels.size, 1),
                start,
                types,
                lambda c, totals: self._taps(
                    source, at + c * source.channel, self._weights(base + c * p.channels.w), totals
                ),
            )
        loops = [(p.channels.size, source.channel, p.channels.w)]
        loops += [(s.kernel, s.dilation * stride, s.w) for s, stride in zip(p.slides, source.strides)]

        def nest(level: int, x: Index, w: Index, totals: list[str]) -> list[str]:
            if level == len(loops):
                return self._one_tap(source, x, w, totals)
            size, x_stride, w_stride = loops[level]
            return self.e.carry(
                (0, size, 1),
                totals,
                types,
                lambda i, inner: nest(level + 1, x + i * x_stride, w + i * w_stride, inner),
            )

        return nest(0, at, base, start)

    def _one_tap(self, source: Source, x: Index, w: Index, totals: Sequence[str]) -> list[str]:
        weight = self._weight(w) if self.problem.product else ""
        step, across = self.problem.slides[1].stride * source.strides[1], self._across(source)
        return [
            self._combine(self._load(source, x + r * step + v * across), weight, total)
            for (r, v), total in zip(self._accumulators(), totals, strict=True)
        ]

    def _taps(self, source: Source, at: Index, weights: list[str], start: Sequence[str]) -> list[str]:
        """All taps of one channel, unrolled; each vector of the input is loaded once."""
        depth, height, width = self.problem.slides
        totals, vectors, across = list(start), self.plan.vectors, self._across(source)
        for d in range(depth.kernel):
            uses: dict[int, list[tuple[int, int]]] = {}
            for r in range(self.plan.rows):
                for h in range(height.kernel):
                    uses.setdefault(r * height.stride + h * height.dilation, []).append((r, h))
            for row in sorted(uses):
                for w in range(width.kernel):
                    offset = d * depth.dilation * source.strides[0] + row * source.strides[1]
                    there = at + (offset + w * width.dilation * source.strides[2])
                    for v in range(vectors):
                        loaded = self._load(source, there + v * across)
                        for r, h in uses[row]:
                            tap = (d * height.kernel + h) * width.kernel + w
                            number = r * vectors + v
                            totals[number] = self._combine(loaded, weights[tap] if weights else "", totals[number])
        return totals

    def _combine(self, loaded: str, weight: str, total: str) -> str:
        if self.problem.product:
            return fused_multiply_add(self.e, weight, loaded, total, self.type)
        # NumPy does not say which zero is the largest of both; to find the positive one takes as long as all else.
        flags = " fastmath<nsz>" if self.problem.combiner.endswith("imumf") else ""
        return self.e.let(f"arith.{self.problem.combiner} {total}, {loaded}{flags} : {self.type}")

    def _load(self, source: Source, at: Index) -> str:
        """Pixels a stride apart, from no memory but that between the first and the last."""
        lanes, stride, e = self.plan.lanes, self.problem.slides[2].stride, self.e
        if stride == 1 or lanes == 1:
            return e.load(source.view, at, lanes)
        last = (lanes - 1) * stride + 1 - lanes
        result = ""
        for number in range(math.ceil(((lanes - 1) * stride + 1) / lanes)):
            start = min(number * lanes, last)
            part = e.load(source.view, at + start, lanes)
            if not result:
                result = part
                chosen = [lane * stride if lane * stride < lanes else 0 for lane in range(lanes)]
                result = e.shuffle(part, part, chosen, lanes, self.problem.element)
                continue
            covered = range(number * lanes, (number + 1) * lanes)
            picks = [lanes + lane * stride - start if lane * stride in covered else lane for lane in range(lanes)]
            result = e.shuffle(result, part, picks, lanes, self.problem.element)
        return result
