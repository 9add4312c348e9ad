"""The kernel of a pooling whose window is combined along columns first, then along rows.

for plane:
    pad the plane           if it has padding
    for output row:
        for vector of the input row: line = combine over the rows of the window of x
        for vector of the output row:
            acc = combine over the columns of the window of line
            out = acc

A window of `h` rows and `w` columns takes `h + w` operations for each output in place of `h * w`. The input is read in
contiguous vectors; with a stride, only elements of the line are shuffled, once for all rows of the window.
"""

from __future__ import annotations

from mlirml.codegen.cpu.conv.frame import Kernel, Offsets, clamped
from mlirml.codegen.cpu.conv.pixels import PixelKernel, Source
from mlirml.codegen.cpu.conv.plan import MOST_TAPS
from mlirml.codegen.cpu.emitter import Index

_VECTORS = 4
"""Vectors of a line that are combined side by side: each is a separate chain of additions."""
_UNROLLED_ROWS = 16
"""Windows with more rows become loops."""


class SeparableKernel(PixelKernel):
    """Emits one kernel; its plan has tiles of one row."""

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        self.lines = self.frame.buffer(self._chunks() * self._line_room())
        return super().build(name)

    @property
    def length(self) -> int:
        """The number of elements of a line."""
        width = self.problem.slides[2]
        return (width.count - 1) * width.stride + (width.kernel - 1) * width.dilation + 1

    def _line_room(self) -> int:
        return -(-self.length // 16) * 16

    def _compute_filter(self, source: Source, offsets: Offsets, number: Index, chunk: Index) -> None:
        depth, height, width = self.problem.slides
        line = Source(self.lines, chunk * self._line_room(), 0, (0, 0, 1))
        with self.e.loop(0, depth.count, 1, "d") as d, self.e.loop(0, height.count, 1, "h") as h:
            start = source.base + d * (depth.stride * source.strides[0]) + h * (height.stride * source.strides[1])
            self._combine_rows(source, start, line)
            out = offsets.out + d * depth.out + h * height.out
            with self.e.loop(0, -(-width.count // self.plan.columns), 1, "t") as t:
                column = clamped(self.e, t, self.plan.columns, width.count)
                totals = self._combine_columns(line, line.base + column * width.stride, self._start(number))
                self._finish_tile(totals, out + column, number)

    def _combine_rows(self, source: Source, start: Index, line: Source) -> None:
        """Store the window's rows from `start` on, combined, as the line."""
        lanes = self.plan.lanes
        vectors = max(1, min(_VECTORS, self.length // lanes))
        with self.e.loop(0, -(-self.length // (lanes * vectors)), 1, "v") as tile:
            column = clamped(self.e, tile, lanes * vectors, self.length)
            totals = self._rows_of(source, start + column, vectors)
            for v, total in enumerate(totals):
                self.e.store(total, line.view, line.base + column + v * lanes, lanes)

    def _rows_of(self, source: Source, at: Index, vectors: int) -> list[str]:
        """Vectors at `at`, combined over the rows of the window."""
        depth, height, _ = self.problem.slides
        count = depth.kernel * height.kernel

        d_step, h_step = depth.dilation * source.strides[0], height.dilation * source.strides[1]

        def row(number: Index | int) -> list[str]:
            if isinstance(number, int):
                there = at + (number // height.kernel * d_step + number % height.kernel * h_step)
            elif depth.kernel == 1:
                there = at + number * h_step
            else:
                d, h = self.e.digits(number, [depth.kernel, height.kernel])
                there = at + d * d_step + h * h_step
            return [self.e.load(source.view, there + v * self.plan.lanes, self.plan.lanes) for v in range(vectors)]

        def add(number: Index | int, totals: list[str]) -> list[str]:
            return [self._combine(x, "", total) for x, total in zip(row(number), totals, strict=True)]

        totals = row(0)
        if count > _UNROLLED_ROWS:
            return self.e.carry((1, count, 1), totals, [self.type] * vectors, add)
        for number in range(1, count):
            totals = add(number, totals)
        return totals

    def _combine_columns(self, line: Source, at: Index, start: list[str]) -> list[str]:
        """The accumulators of a tile, combined with the columns of the window of a line."""
        width, across = self.problem.slides[2], self._across(line)

        def add(tap: Index | int, totals: list[str]) -> list[str]:
            there = at + tap * width.dilation
            return [self._combine(self._load(line, there + v * across), "", total) for v, total in enumerate(totals)]

        if width.kernel > MOST_TAPS:
            return self.e.carry((0, width.kernel, 1), start, [self.type] * len(start), add)
        for tap in range(width.kernel):
            start = add(tap, start)
        return start
