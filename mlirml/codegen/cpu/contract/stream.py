"""The stream kernel of a contraction: few rows of out stay in cache while b is read once, `kc` of its rows at a time.

for outer: for blocks of `nc` columns of those of a thread:
    out = 0                                          unless out accumulates
    for k in steps of kc: for j: out[m][j..] += a[m][k] * b[k][j..] + ... + a[m][k + kc - 1] * b[k + kc - 1][j..]
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.codegen.cpu.contract.kernel import Frame, Job, Kernel, Offsets, convert, fused_multiply_add
from mlirml.codegen.cpu.contract.plan import pieces
from mlirml.codegen.cpu.emitter import Index, vector


class StreamKernel:
    """Emits one kernel. b and out must be contiguous along n, and out must have the compute type."""

    def __init__(self, job: Job) -> None:
        self.frame = Frame(job)
        self.e = self.frame.e
        self.problem, self.schedule = job.problem, job.schedule

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        with self.frame.outer_loops((*self.problem.outer, *self.problem.outer_m)) as (offsets, _):
            if self.schedule.parallel == "columns":
                self._split(offsets)
            else:
                self._blocks(offsets, Index(), Index.of(self.problem.n.size))
        return self.frame.finish(name)

    def _split(self, offsets: Offsets) -> None:
        """Compute all columns: each thread those of its chunk at once, so that one thread reads whole rows."""
        e, step, size = self.e, self.schedule.nr, self.problem.n.size
        count = -(-size // step)
        with self.frame.parallel_body(e.parallel(count, self.schedule.grain, long=True)) as group:
            start, end = e.span(group, count)
            with e.region(f"scf.if {e.let(f'arith.cmpi eq, {e.at(group)}, {e.at(start)} : index', 'first')} {{"):
                self._blocks(offsets, start * step, e.minimum(end * step, size))

    def _blocks(self, offsets: Offsets, start: Index, end: Index) -> None:
        """Compute the columns from `start` to `end`."""
        with self.e.loop(start, end, self.schedule.nc, "jc") as first:
            self._columns(offsets, first, end)

    def _columns(self, offsets: Offsets, first: Index, end: Index) -> None:
        """Compute a block of columns, from `first` on, of those before `end`."""
        size, step = self.problem.n.size, self.schedule.nr
        count = self.e.minimum(self.schedule.nc, end - first)
        offsets = offsets.step(self.problem.n, first)
        whole = size // step * step
        middle = self.e.minimum(count, whole - first) if size % step else count
        spans = [(Index(), middle, step)] + ([(middle, count, size % step)] if size % step else [])
        if not self.frame.accumulate:
            for low, high, width in spans:
                with self.e.loop(low, high, step, "j") as j:
                    self._clear(offsets, j, width)
        axis = self.problem.k[-1]
        full = axis.size // self.schedule.kc * self.schedule.kc
        if full:
            with self.e.loop(0, full, self.schedule.kc, "k") as k:
                self._rows(offsets, k, self.schedule.kc, spans)
        if axis.size > full:
            self._rows(offsets, Index.of(full), axis.size - full, spans)

    def _clear(self, offsets: Offsets, j: Index, width: int) -> None:
        for row in range(self.problem.m.size):
            for part in pieces(width, self.schedule.lanes):
                zero = self.e.zeros(part.lanes, self.problem.compute)
                at = offsets.c + row * self.problem.m.c + j + part.offset
                self.e.store(zero, self.frame.c, at, part.lanes, part.valid)

    def _rows(self, offsets: Offsets, k: Index, depth: int, spans: Sequence[tuple[Index, Index, int]]) -> None:
        """Add `depth` rows of b, from row `k` on."""
        e, axis, rows = self.e, self.problem.k[-1], self.problem.m
        factors = [
            [
                convert(
                    e,
                    e.load_scalar(self.frame.a, offsets.a + row * rows.a + (k + i) * axis.a),
                    self.problem.a.casts,
                    None,
                )
                for i in range(depth)
            ]
            for row in range(rows.size)
        ]
        for low, high, width in spans:
            with e.loop(low, high, self.schedule.nr, "j") as j:
                self._add(offsets, k, j, width, factors)

    def _add(self, offsets: Offsets, k: Index, j: Index, width: int, factors: list[list[str]]) -> None:
        e, compute, axis = self.e, self.problem.compute, self.problem.k[-1]
        for part in pieces(width, self.schedule.lanes):
            type_ = vector(part.lanes, compute)
            column = j + part.offset
            totals = [
                e.load(self.frame.c, offsets.c + row * self.problem.m.c + column, part.lanes, part.valid)
                for row in range(self.problem.m.size)
            ]
            for i in range(len(factors[0])):
                value = e.load(self.frame.b, offsets.b + (k + i) * axis.b + column, part.lanes, part.valid)
                value = convert(e, value, self.problem.b.casts, part.lanes)
                for row, total in enumerate(totals):
                    spread = e.let(f"vector.broadcast {factors[row][i]} : {compute} to {type_}")
                    totals[row] = fused_multiply_add(e, spread, value, total, type_)
            for row, total in enumerate(totals):
                e.store(total, self.frame.c, offsets.c + row * self.problem.m.c + column, part.lanes, part.valid)
