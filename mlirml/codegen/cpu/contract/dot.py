"""The dot kernel of a contraction: vectors along k, for few rows of one operand and many of the other.

for outer: for blocks of `mr` rows of the many:
    for k: acc[mr][few] += many[mr][k..] * few[few][k..]
    out += the sums over the lanes of acc

If the few rows are long, k is split into blocks of `kc`, for which they are in the first-level cache; they are
interleaved by vectors, so that they are one stream. `nr` of them are multiplied with the `mr` rows at a time, so that
more of the many rows, each a stream from memory, are read at the same time. The accumulators are in a buffer between
the blocks. Each row is a stream through pages of its own, at whose ends hardware prefetchers stop: rows that come from
memory are prefetched to the second-level cache `prefetch` blocks of k ahead.

for outer: for blocks of `mr` rows of the many:
    for blocks of `kc` of k: for groups of `nr` of the few:
        for k: acc[mr][nr] += many[mr][k..] * few[nr][k..]
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from mlirml.codegen.cpu.contract.kernel import (
    Epilogue,
    Frame,
    Job,
    Kernel,
    Offsets,
    add,
    convert,
    evaluate,
    fused_multiply_add,
    narrow,
    widen,
)
from mlirml.codegen.cpu.contract.plan import round_up
from mlirml.codegen.cpu.contract.problem import Axis, Operand, Problem
from mlirml.codegen.cpu.emitter import Emitter, Index, View, vector
from mlirml.core.dataclass import dataclass, replace


@dataclass(frozen=True)
class Side:
    """One operand as rows along k: its name (a or b), its rows, and its stride along k."""

    letter: str
    axis: Axis
    operand: Operand
    k_stride: int

    @property
    def stride(self) -> int:
        """The distance between rows."""
        return self.axis.a if self.letter == "a" else self.axis.b


def sides(problem: Problem) -> tuple[Side, Side]:
    """The operands with few and with many rows, of a problem with a single loop over k."""
    k = problem.k[-1]
    a, b = Side("a", problem.m, problem.a, k.a), Side("b", problem.n, problem.b, k.b)
    return (a, b) if problem.m.size <= problem.n.size else (b, a)


@dataclass(frozen=True)
class Computed:
    """A prologue of rows, and for each of its inputs a view, the offset of the first row, the strides of rows and k."""

    body: Epilogue
    inputs: tuple[tuple[View, Index, int, int], ...]


@dataclass(frozen=True)
class Rows:
    """Rows along k in memory: the vector at [i][k] is at `base + i * stride + k * step`."""

    view: View
    base: Index
    stride: int
    operand: Operand
    computed: Computed | None = None
    step: int = 1


class DotKernel:
    """Emits one kernel. The side of many rows must be contiguous along k; the other one is packed if it is not."""

    def __init__(self, job: Job) -> None:
        self.frame = Frame(job)
        self.e = self.frame.e
        self.problem, self.schedule = problem, schedule = job.problem, job.schedule
        self.few, self.many = sides(problem)
        self.k_size = problem.k[-1].size
        slots = schedule.chunks if schedule.parallel == "outer" else 1
        self.is_blocked = schedule.kc > 1
        self.size = self.few.axis.size * (round_up(self.k_size, schedule.lanes) if self.is_blocked else self.k_size)
        packs = self.few.k_stride != 1 or self.is_blocked
        self.room = self.frame.buffer(slots * self.size) if packs else None
        if self.is_blocked:
            self.frame.scratch(schedule.mr * self.few.axis.size * schedule.lanes)

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        with self.frame.outer_loops((*self.problem.outer, *self.problem.outer_m)) as (offsets, slot):
            self._pack(offsets, slot)
            count, block = self.many.axis.size, self.schedule.mr
            full = count // block
            if self.schedule.parallel == "rows":
                with self.frame.parallel_body(self.e.parallel(full, self.schedule.grain)) as index:
                    self._block(offsets, slot, index * block, block)
            elif full:
                with self.e.loop(0, full, 1, "i") as index:
                    self._block(offsets, slot, index * block, block)
            if count % block:
                self._block(offsets, slot, Index.of(full * block), count % block)
        return self.frame.finish(name)

    def _source(self, side: Side, offsets: Offsets, row: Index) -> Rows:
        view, base = (self.frame.a, offsets.a) if side.letter == "a" else (self.frame.b, offsets.b)
        return Rows(view, base + row * side.stride, side.stride, side.operand)

    def _pack(self, offsets: Offsets, slot: Index) -> None:
        """Copy the few rows to a contiguous buffer."""
        if not self.room:
            return
        if self.is_blocked:
            self._pack_vectors(offsets, slot)
            return
        with self.e.loop(0, self.k_size, 1, "k") as k:
            for row in range(self.few.axis.size):
                self._copy(offsets, row, k, slot * self.size + row * self.k_size + k)

    def _pack_vectors(self, offsets: Offsets, slot: Index) -> None:
        """Copy the few rows vector by vector: those of all rows at the same k are adjacent."""
        few, lanes = self.few.axis.size, self.schedule.lanes
        whole = self.k_size // lanes * lanes
        with self.e.loop(0, whole, lanes, "k") as k, self.e.loop(0, lanes, 1, "l") as lane:
            for row in range(few):
                self._copy(offsets, row, k + lane, slot * self.size + k * few + row * lanes + lane)
        for k_last in range(whole, self.k_size):
            for row in range(few):
                self._copy(
                    offsets, row, Index.of(k_last), slot * self.size + whole * few + row * lanes + k_last - whole
                )

    def _copy(self, offsets: Offsets, row: int, k: Index, to: Index) -> None:
        """Copy an element of a few row to the buffer."""
        assert self.room is not None
        source = self._source(self.few, offsets, Index())
        at = source.base + row * source.stride + k * self.few.k_stride
        value = convert(self.e, self.e.load_scalar(source.view, at), source.operand.casts, None)
        self.e.store_scalar(value, self.room, to)

    def _block(self, offsets: Offsets, slot: Index, row: Index, rows: int) -> None:
        """Compute `rows` of the many rows from `row` on, with all of the few."""
        many = replace(self._source(self.many, offsets, row), computed=self._computed(offsets, row))
        few = self._source(self.few, offsets, Index())
        if self.room and self.is_blocked:
            lanes, count = self.schedule.lanes, self.few.axis.size
            few = Rows(self.room, slot * self.size, lanes, Operand(self.problem.compute), step=count)
        elif self.room:
            few = Rows(self.room, slot * self.size, self.k_size, Operand(self.problem.compute))
        totals = self._blocked_totals(many, few, rows) if self.is_blocked else self._totals(many, few, rows)
        offsets = offsets.step(self.many.axis, row)
        self._write(self._order(totals, rows), offsets, rows)

    def _computed(self, offsets: Offsets, row: Index) -> Computed | None:
        """The prologue of the many rows from `row` on."""
        prologue = self.frame.job.prologue(self.many.letter)
        if prologue is None:
            return None
        axis, k = self.many.axis, self.problem.k[-1]
        inputs = [
            (self.frame.views[f"x{n}"], offsets.more[n] + row * axis.more[n], axis.more[n], k.more[n])
            for n, _ in prologue.inputs
        ]
        return Computed(prologue.body, tuple(inputs))

    def _totals(self, many: Rows, few: Rows, rows: int) -> list[str]:
        """Accumulators [rows][few], one vector each."""
        e, lanes, sets = self.e, self.schedule.lanes, self.schedule.unroll
        type_, count = vector(lanes, self.problem.compute), rows * self.few.axis.size
        valid = self.k_size % lanes

        def step(k: Index, totals: Sequence[str], valid: int | None = None) -> list[str]:
            return self._step(many, few, rows, range(self.few.axis.size), k, totals, valid)

        def steps(k: Index, totals: list[str]) -> list[str]:
            parts = [step(k + s * lanes, totals[s * count : (s + 1) * count]) for s in range(sets)]
            return [value for part in parts for value in part]

        whole = self.k_size // (lanes * sets) * lanes * sets
        initial = [e.zeros(lanes, self.problem.compute)] * (count * sets)
        totals = e.carry((0, whole, lanes * sets), initial, [type_] * len(initial), steps)
        for s, k in enumerate(range(whole, self.k_size, lanes)):
            one = slice(s * count, (s + 1) * count)
            totals[one] = step(Index.of(k), totals[one], valid if k + lanes > self.k_size else None)
        return [functools.reduce(lambda x, y: add(e, x, y, type_), totals[n::count]) for n in range(count)]

    def _step(
        self, many: Rows, few: Rows, rows: int, group: range, k: Index, totals: Sequence[str], valid: int | None
    ) -> list[str]:
        """Accumulators [rows][group] with the products of the vectors at k added."""
        columns = [self._load(few, j, k, valid) for j in group]
        type_, after = vector(self.schedule.lanes, self.problem.compute), list[str]()
        for i in range(rows):
            value = self._load(many, i, k, valid)
            for column in columns:
                after.append(fused_multiply_add(self.e, value, column, totals[len(after)], type_))
        return after

    def _blocked_totals(self, many: Rows, few: Rows, rows: int) -> list[str]:
        """The accumulators [rows][few], by blocks of k and groups of the few rows."""
        e, lanes, block, count = self.e, self.schedule.lanes, self.schedule.kc, self.few.axis.size
        type_, tile = vector(lanes, self.problem.compute), self.frame.tile
        assert tile is not None
        groups = [range(j, min(j + self.schedule.nr, count)) for j in range(0, count, self.schedule.nr)]
        slots = {group: [(i * count + j) * lanes for i in range(rows) for j in group] for group in groups}
        whole, zeros = self.k_size // block * block, e.zeros(lanes, self.problem.compute)

        far = self.schedule.prefetch * block
        near = max(0, whole - far) // block * block

        def add_up(group: range, low: Index, high: Index, distance: int = 0) -> list[str]:
            totals = [e.load(tile, Index.of(at), lanes) for at in slots[group]]

            def step(k: Index, carried: list[str]) -> list[str]:
                for row in range(rows if distance and group == groups[0] else 0):
                    e.prefetch(many.view, many.base + row * many.stride + k + distance, locality=2)
                return self._step(many, few, rows, group, k, carried, None)

            return e.carry((low, high, lanes), totals, [type_] * len(totals), step)

        def add_blocks(first: int, end: int, distance: int) -> None:
            if first == end:
                return
            with e.loop(first, end, block, "k") as k:
                for group in groups:
                    for total, at in zip(add_up(group, k, k + block, distance), slots[group], strict=True):
                        e.store(total, tile, Index.of(at), lanes)

        for at in range(0, rows * count * lanes, lanes):
            e.store(zeros, tile, Index.of(at), lanes)
        if far:  # the last blocks prefetch the first ones of the next rows
            add_blocks(0, near, far)
            add_blocks(near, whole, rows * many.stride - near)
        else:
            add_blocks(0, whole, 0)
        found: dict[int, str] = {}
        last = self.k_size // lanes * lanes
        for group in groups:
            totals = add_up(group, Index.of(whole), Index.of(last))
            if last < self.k_size:
                totals = self._step(many, few, rows, group, Index.of(last), totals, self.k_size - last)
            found.update(zip(slots[group], totals, strict=True))
        return [found[at] for at in range(0, rows * count * lanes, lanes)]

    def _load(self, rows: Rows, row: int, k: Index, valid: int | None) -> str:
        lanes = self.schedule.lanes
        e = self.e
        value = e.load(rows.view, rows.base + row * rows.stride + k * rows.step, lanes, valid)
        if rows.computed is None:
            return convert(e, value, rows.operand.casts, lanes)
        inputs = []
        for view, base, row_step, k_step in rows.computed.inputs:
            at, type_ = base + row * row_step + k * k_step, vector(lanes, view.element)
            if k_step:
                inputs.append(e.load(view, at, lanes, valid))
            else:
                inputs.append(e.let(f"vector.broadcast {e.load_scalar(view, at)} : {view.element} to {type_}"))
        (value,) = evaluate(e, rows.computed.body, value, inputs, lanes)
        value = convert(e, value, rows.operand.casts, lanes)
        if valid is None:
            return value
        # The prologue may map the zeros of masked lanes to other values.
        type_ = vector(lanes, self.problem.compute)
        mask, zeros = e.mask(lanes, valid), e.zeros(lanes, self.problem.compute)
        return e.let(f"arith.select {mask}, {value}, {zeros} : vector<{lanes}xi1>, {type_}")

    @property
    def _runs_along_many(self) -> bool:
        return self.many.axis.c == 1 or self.few.axis.size == 1

    def _order(self, totals: list[str], rows: int) -> list[str]:
        """The accumulators in the order of their results in memory."""
        few = self.few.axis.size
        return [totals[i * few + j] for j in range(few) for i in range(rows)] if self._runs_along_many else totals

    def _write(self, totals: list[str], offsets: Offsets, rows: int) -> None:
        """Sum the lanes and add to, or overwrite, the output, with vectors where results are adjacent."""
        few, many = self.few.axis, self.many.axis
        if self._runs_along_many:
            runs = [(offsets.c + j * few.c, rows, many.c) for j in range(few.size)]
        elif many.c == few.size and few.c == 1:
            runs = [(offsets.c, rows * few.size, 1)]
        else:
            runs = [(offsets.c + i * many.c, few.size, few.c) for i in range(rows)]
        for position, (at, length, stride) in enumerate(runs):
            for start in range(0, length, self.schedule.lanes):
                first = position * length + start
                part = totals[first : min(first + self.schedule.lanes, (position + 1) * length)]
                self._write_run(
                    lane_sums(self.e, part, self.schedule.lanes, self.problem.compute),
                    at + start * stride,
                    len(part),
                    stride,
                )

    def _write_run(self, sums: str, at: Index, length: int, stride: int) -> None:
        e, out, lanes, compute = self.e, self.frame.c, self.schedule.lanes, self.problem.compute
        if stride == 1 and length > 1:
            if self.frame.accumulate:
                old = widen(e, e.load(out, at, lanes, length), self.problem.c, compute, lanes)
                sums = add(e, old, sums, vector(lanes, compute))
            e.store(narrow(e, sums, self.problem.c, compute, lanes), out, at, lanes, length)
            return
        for lane in range(length):
            value = e.let(f"vector.extract {sums}[{lane}] : {compute} from {vector(lanes, compute)}")
            if self.frame.accumulate:
                old = widen(e, e.load_scalar(out, at + lane * stride), self.problem.c, compute, None)
                value = add(e, old, value, compute)
            e.store_scalar(narrow(e, value, self.problem.c, compute, None), out, at + lane * stride)


def lane_sums(e: Emitter, values: Sequence[str], lanes: int, element: str) -> str:
    """A vector whose lane i is the sum of the lanes of values[i]; there are at most `lanes` values."""
    type_ = vector(lanes, element)
    count = 1 << (len(values) - 1).bit_length()
    level = [*values, *[e.zeros(lanes, element)] * (count - len(values))]
    distance = 1
    while distance < lanes:
        if len(level) > 1:
            # Adjacent values are merged: lane l has a partial sum of the value whose number has the bits of l so far.
            even = [lane + (lanes - distance if lane & distance else 0) for lane in range(lanes)]
            odd = [lane + (lanes if lane & distance else distance) for lane in range(lanes)]
            pairs = list(zip(level[::2], level[1::2], strict=True))
            level = [
                add(e, e.shuffle(x, y, even, lanes, element), e.shuffle(x, y, odd, lanes, element), type_)
                for x, y in pairs
            ]
        else:
            other = e.shuffle(level[0], level[0], [lane ^ distance for lane in range(lanes)], lanes, element)
            level = [add(e, level[0], other, type_)]
        distance *= 2
    return level[0]
