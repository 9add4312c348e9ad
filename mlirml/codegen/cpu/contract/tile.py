"""The register-tile kernel of a contraction: blocks of k, columns and rows around an outer product in registers.

for outer: for jc, pc:      blocks of columns and of k
    pack b                  panels of nr columns
    for outer_m, ic:        blocks of rows
        pack a              panels of mr rows
        for t, u:           register tiles
            for k: acc[mr][nr] += a[k][mr] * b[k][nr]
            out += acc
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlirml.codegen.cpu.contract.kernel import (
    Frame,
    Job,
    Kernel,
    Offsets,
    add,
    bare,
    convert,
    narrow,
    outer_product,
    widen,
)
from mlirml.codegen.cpu.contract.pack import KAxis, Panel, Room, pack_panel
from mlirml.codegen.cpu.contract.plan import K_BLOCK, Piece, padded, pieces
from mlirml.codegen.cpu.contract.problem import Axis, Cast
from mlirml.codegen.cpu.contract.shared import Computed, pack_function
from mlirml.codegen.cpu.contract.write import TileWriter
from mlirml.codegen.cpu.emitter import Index, Value, View, vector
from mlirml.core.dataclass import dataclass, replace

PACK_BYTES = 256 << 10  # what one thread packs in about 30 us
PackForm = tuple[str, str, tuple[Cast, ...], int, int, int, bool, int, int, Computed | None]
"""The arguments of `pack_function`."""


@dataclass(frozen=True)
class Grid:
    """`size` split into tiles of `width`: `full` whole ones, and one of width `rest` if that is not zero."""

    size: int
    width: int

    @property
    def rest(self) -> int:
        return self.size % self.width

    @property
    def full(self) -> int:
        return self.size // self.width

    @property
    def count(self) -> int:
        return -(-self.size // self.width)


@dataclass(frozen=True)
class Source:
    """An input of the register tile: element [k][i] at `base + k * k_stride + i * stride`, converted by `casts`."""

    view: View
    base: Index
    k_stride: int
    stride: int
    casts: tuple[Cast, ...] = ()


@dataclass(frozen=True)
class Work:
    """A part of one matrix product: a block of k and some panels of columns.

    `offsets` has the offsets of the block. Panels `low` to `high` are counted from panel `first`, the first one in the
    packed b. `slot_a` and `slot_b` number the private buffers, `number` is zero for the first block of k only.
    """

    offsets: Offsets
    k_axes: tuple[tuple[Value, Axis], ...]
    slot_a: Index
    slot_b: Index
    number: Index
    first: Index
    low: Index
    high: Index

    @property
    def k_size(self) -> Value:
        sizes = [size for size, _ in self.k_axes]
        return sizes[0] if len(sizes) == 1 else math.prod(size for size in sizes if isinstance(size, int))


class TileKernel:
    """Emits one kernel. Tiles of rows are counted by `u`, panels of columns by `t`."""

    def __init__(self, job: Job) -> None:
        self.frame = Frame(job)
        self.e = self.frame.e
        self.problem, self.schedule = problem, schedule = job.problem, job.schedule
        self.rows = Grid(problem.m.size, schedule.mr)
        self.columns = Grid(problem.n.size, schedule.nr)
        self.panel_width = padded(schedule.nr, schedule.lanes)
        self.block_rows = max(1, min(schedule.mc // schedule.mr, self.rows.count))
        self.blocks = -(-self.rows.count // self.block_rows)
        self.block_columns = max(1, min(schedule.nc // schedule.nr, self.columns.count))
        one = len(problem.k) == 1
        k = min(schedule.kc, problem.k_size) if one else problem.k_size
        k = -(-k // 2) if schedule.packs_words else k
        # Transposed squares write whole groups of k; inner loops that are not a multiple of a group write past the
        # last.
        self.panel_k = -(-k // schedule.lanes) * schedule.lanes + (0 if one else schedule.lanes)
        # The last vector of a panel may reach past its end, into the next one, which another thread has packed.
        spare = schedule.lanes if padded(schedule.mr, schedule.lanes) > schedule.mr else 0
        self.panel_a = self.rows.width * self.panel_k + spare
        self.size_a = self.block_rows * self.panel_a + schedule.lanes
        self.size_b = self.block_columns * self.panel_width * self.panel_k
        slots = schedule.chunks if schedule.parallel == "outer" else 1
        self.pack_grain = max(1, PACK_BYTES // (self.panel_width * self.panel_k * 4))
        blocks = schedule.chunks if schedule.parallel in ("outer", "rows") else 1
        self.room_a = self.frame.buffer(blocks * self.size_a) if "a" in schedule.pack else None
        self.room_b = self.frame.buffer(slots * self.size_b) if "b" in schedule.pack else None

        self.writer: TileWriter | None = None

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        if self.frame.job.writes_tiles:
            self.writer = TileWriter(self.frame, name, again=self.splits_k)
            self.frame.scratch(self.writer.size)
        with self.frame.outer_loops(self.problem.outer) as (offsets, slot):
            self._product(offsets, slot)
        return self.frame.finish(name)

    @property
    def splits_k(self) -> bool:
        """True if the output is written several times, for blocks of k."""
        return len(self.problem.k) == 1 and self.schedule.kc < self.problem.k_size

    def _product(self, offsets: Offsets, slot: Index) -> None:
        """Compute the products of all iterations of `outer_m`."""
        axes = self.problem.k
        with self.e.loop(0, self.columns.count, self.block_columns, "jc") as first:
            high = self.e.minimum(self.block_columns, self.columns.count - first)
            work = Work(offsets, tuple((axis.size, axis) for axis in axes), slot, slot, Index(), first, Index(), high)
            if len(axes) > 1:
                self._block(work)
                return
            size, step = axes[0].size, self.schedule.kc
            with self.e.loop(0, size, step, "pc") as k:
                left = self.e.minimum(step, size - k) if size % step else min(size, step)
                self._block(replace(work, offsets=offsets.step(axes[0], k), k_axes=((left, axes[0]),), number=k))

    def _block(self, work: Work) -> None:
        """Compute all rows of the output, in a block of columns, for one block of k."""
        if self.schedule.parallel == "columns":
            self._pack_a(work, Index(), Index.of(self.rows.count))
            with self.frame.parallel_body(self.e.parallel(work.high, self.schedule.grain)) as panel:
                part = replace(work, low=panel, high=panel + 1)
                self._pack_b(part)
                self._multiply(part, Index(), Index.of(self.rows.count))
        elif self.schedule.parallel == "rows":
            self._split_rows(work)
        else:
            self._pack_b(work)
            with (
                self.frame.nest(self.problem.outer_m, work.offsets) as offsets,
                self.e.loop(0, self.blocks, 1, "ic") as block,
            ):
                self._row_block(replace(work, offsets=offsets), block)

    def _split_rows(self, work: Work) -> None:
        if self.room_b:
            with self.frame.parallel_body(self.e.parallel(work.high, self.pack_grain)) as panel:
                self._pack_b(replace(work, low=panel, high=panel + 1))
        if self.schedule.group > 1 and not self.problem.outer_m and self.blocks <= self.schedule.chunks:
            self._split_groups(work)
            return
        axes = (*self.problem.outer_m, Axis(self.blocks))
        with self.frame.parallel_body(self.frame.chunks(math.prod(axis.size for axis in axes))) as (chunk, index):
            *outer, block = self.e.digits(index, [axis.size for axis in axes])
            offsets = work.offsets
            for axis, digit in zip(axes[:-1], outer, strict=True):
                offsets = offsets.step(axis, digit)
            self._row_block(replace(work, offsets=offsets, slot_a=chunk), block)

    def _split_groups(self, work: Work) -> None:
        """Blocks of rows in groups: `group` of those that one thread runs in turn are packed at a time."""
        e, group = self.e, self.schedule.group
        with self.frame.parallel_body(e.parallel(self.blocks, self.schedule.grain, long=True)) as block:
            start, end = e.span(block, self.blocks)
            position = e.let(f"arith.remui {e.at(block - start)}, {e.at(group)} : index", "position")
            is_first = e.let(f"arith.cmpi eq, {position}, {e.at(0)} : index", "first")
            with e.region(f"scf.if {is_first} {{"):
                # A thread's buffer is that of its first blocks, so that it stays in cache.
                self._row_block(replace(work, slot_a=start), block, e.minimum(group, end - block))

    def _row_block(self, work: Work, block: Index, count: Value = 1) -> None:
        """`count` blocks of rows."""
        first = block * self.block_rows
        tiles = self.e.minimum(Index.of(count) * self.block_rows, self.rows.count - first)
        self._pack_a(work, first, tiles)
        self._multiply(work, first, tiles)

    def _k_axes(self, work: Work, operand: str) -> tuple[KAxis, ...]:
        return tuple(KAxis(size, getattr(axis, operand)) for size, axis in work.k_axes)

    def _pack_a(self, work: Work, first: Index, tiles: Index) -> None:
        """Pack `tiles` tiles of rows from tile `first` on."""
        if not self.room_a:
            return
        axis, axes = self.problem.m, self._k_axes(work, "a")
        base = work.slot_a * self.size_a
        for low, high, width in self._cut(Index(), tiles, self.rows, first):
            with self.e.loop(low, high, 1, "u") as u:
                row = (first + u) * self.rows.width
                panel = Panel(self.frame.a, work.offsets.a + row * axis.a, axis.a, width, self.problem.a.casts)
                room = Room(self.room_a, base + u * self.panel_a, self.rows.width)
                pack_panel(self.e, panel, axes, room, self.schedule.lanes)

    def _pack_b(self, work: Work) -> None:
        """Pack the panels of `work`."""
        if not self.room_b:
            return
        axis, axes = self.problem.n, self._k_axes(work, "b")
        base = work.slot_b * self.size_b
        if len(axes) == 1 and axis.b != 1 and axes[0].stride == 1:  # transposing a panel takes much code
            with self.e.loop(work.low, work.high, 1, "t") as t:
                room_at = base + t * (self.panel_width * self.panel_k)
                self._pack("b", work, self.columns, work.first + t, (self.room_b, room_at, self.panel_width))
            return
        for low, high, width in self._cut(work.low, work.high, self.columns, work.first):
            with self.e.loop(low, high, 1, "t") as t:
                column = (work.first + t) * self.columns.width
                panel = Panel(self.frame.b, work.offsets.b + column * axis.b, axis.b, width, self.problem.b.casts)
                room = Room(self.room_b, base + t * (self.panel_width * self.panel_k), self.panel_width)
                pack_panel(self.e, panel, axes, room, self.schedule.lanes, self.schedule.prefetch)

    def _pack(self, letter: str, work: Work, grid: Grid, tile: Index, room: tuple[View, Index, int]) -> None:
        """Pack one panel of an operand."""
        e, problem = self.e, self.problem
        axis = problem.m if letter == "a" else problem.n
        casts: tuple[Cast, ...] = getattr(problem, letter).casts
        row_step, k_step = getattr(axis, letter), getattr(problem.k[0], letter)
        view, at, stride = room
        ahead = self.schedule.prefetch if letter == "b" else 0
        way, whole = "scalars", True
        if row_step == 1 or axis.size == 1:
            way, whole = "rows", grid.rest == 0
        elif k_step == 1:
            lanes = self.schedule.lanes
            step = lanes * (2 if self.schedule.packs_words else 1)
            way, whole = "squares", problem.k_size % step == 0 and self.schedule.kc % step == 0
        element = self.frame.named[letter].element
        shape = grid.width, stride, self.schedule.lanes
        computed, more = self._computed(letter, work, axis, tile * grid.width)
        function = self._pack_function(
            letter, (way, element, casts, *shape, whole, ahead, self.schedule.pairs, computed)
        )
        operand, start = self.frame.base(letter)
        offset = (work.offsets.a if letter == "a" else work.offsets.b) + start + tile * (grid.width * row_step)
        rows = e.minimum(grid.width, grid.size - tile * grid.width) if grid.rest else Index.of(grid.width)
        numbers: list[Value] = [offset, row_step, k_step, rows, work.k_size]
        names = [operand, *map(e.at, numbers), bare(e, view.name, view.type, view.element), e.at(at)]
        types = [f"memref<{element}>", *["index"] * 5, f"memref<{view.element}>", "index"]
        for memory, type_, first in more:
            names += [memory, e.at(first)]
            types += [f"memref<{type_}>", "index"]
        self.frame.call(self._share(function), names, types)

    def _pack_function(self, letter: str, form: PackForm) -> tuple[str, str]:
        """The function that packs a panel of an operand: name and text."""
        return pack_function(*form)

    def _computed(
        self, letter: str, work: Work, axis: Axis, row: Index
    ) -> tuple[Computed | None, list[tuple[str, str, Index]]]:
        """The prologue of an operand, and its inputs: memory, element type, and the offset of row `row`."""
        prologue = self.frame.job.prologue(letter)
        if prologue is None:
            return None, []
        k, steps, more = self.problem.k[0], [], []
        for number, element in prologue.inputs:
            memory, start = self.frame.base(f"x{number}")
            steps.append((element, axis.more[number], k.more[number]))
            more.append((memory, element, work.offsets.more[number] + start + row * axis.more[number]))
        return Computed(prologue.body, tuple(steps)), more

    def _share(self, function: tuple[str, str]) -> str:
        name, text = function
        self.frame.functions[name] = text
        return name

    def _cut(self, low: Index, high: Index, grid: Grid, first: Index) -> Iterator[tuple[Index, Index, int]]:
        """Tiles `low` to `high`, counted from tile `first`, as runs (low, high, width) of equal width."""
        full = grid.full - first
        middle = self.e.minimum(high, full) if grid.rest else high
        for start, end, width in ((low, middle, grid.width), (middle, high, grid.rest)):
            length = end - start
            if width and (length.terms or length.constant > 0):
                yield start, end, width

    def _multiply(self, work: Work, first: Index, tiles: Index) -> None:
        """Compute every register tile of `tiles` tiles of rows from tile `first` on, and of the panels of `work`."""
        for low, high, width in self._cut(work.low, work.high, self.columns, work.first):
            with self.e.loop(low, high, 1, "t") as t:
                for start, end, rows in self._cut(Index(), tiles, self.rows, first):
                    with self.e.loop(start, end, 1, "u") as u:
                        self._tile(work, first, u, t, rows, pieces(width, self.schedule.lanes))

    def _tile(self, work: Work, first: Index, u: Index, t: Index, rows: int, parts: tuple[Piece, ...]) -> None:
        """out += a * b on one register tile."""
        row, column = (first + u) * self.rows.width, (work.first + t) * self.columns.width
        offsets = work.offsets.step(self.problem.m, row).step(self.problem.n, column)
        a = Source(self.frame.a, offsets.a, self.problem.k[-1].a, self.problem.m.a, self.problem.a.casts)
        b = Source(self.frame.b, offsets.b, self.problem.k[-1].b, 1, self.problem.b.casts)
        if self.room_a:
            panel = work.slot_a * self.size_a + u * self.panel_a
            a = Source(self.room_a, panel, self.rows.width, 1)
        if self.room_b:
            panel = work.slot_b * self.size_b + t * (self.panel_width * self.panel_k)
            b = Source(self.room_b, panel, self.panel_width, 1)
        if self.writer is not None:
            self._fill_tile(self.writer, a, b, work.k_size, rows, parts)
            self.writer.write(offsets, rows, sum(part.valid for part in parts), work.number)
            return
        totals = self._inner_product(a, b, work.k_size, rows, parts)
        m, n = self.problem.m, self.problem.n
        targets = [(offsets.c + i * m.c + part.offset * n.c, part) for i in range(rows) for part in parts]
        self._write_tile(totals, targets, work.number)

    def _fill_tile(
        self, writer: TileWriter, a: Source, b: Source, size: Value, rows: int, parts: tuple[Piece, ...]
    ) -> None:
        """Compute the product on the frame's tile; long sums are split into blocks for accuracy."""
        e, tile = self.e, self.frame.tile
        assert tile is not None
        positions = [(i * writer.stride + part.offset, part.lanes) for i in range(rows) for part in parts]
        if len(self.problem.k) > 1 or not isinstance(size, int) or size <= K_BLOCK:
            for (at, lanes), total in zip(positions, self._inner_product(a, b, size, rows, parts), strict=True):
                e.store(total, tile, at, lanes)
            return
        for at, lanes in positions:
            e.store(e.zeros(lanes, tile.element), tile, at, lanes)
        with e.loop(0, size, K_BLOCK, "pk") as k:
            here = replace(a, base=a.base + k * a.k_stride), replace(b, base=b.base + k * b.k_stride)
            totals = self._inner_product(*here, e.minimum(K_BLOCK, size - k), rows, parts)
            for (at, lanes), total in zip(positions, totals, strict=True):
                old = e.load(tile, at, lanes)
                e.store(add(e, old, total, vector(lanes, tile.element)), tile, at, lanes)

    def _inner_product(self, a: Source, b: Source, size: Value, rows: int, parts: tuple[Piece, ...]) -> list[str]:
        """The loop over k: accumulators [rows][parts] in registers, `unroll` sets of them."""
        e, compute = self.e, self.problem.compute
        sets = self.schedule.unroll if isinstance(size, int) else 1
        types = [vector(part.lanes, compute) for part in parts] * rows
        count = len(types)
        zeros = {part.lanes: e.zeros(part.lanes, compute) for part in parts}
        initial = [zeros[part.lanes] for part in parts] * rows

        def steps(k: Index, totals: list[str], depth: int = sets) -> list[str]:
            after = list(totals)
            for s in range(depth):
                one = slice(s * count, (s + 1) * count)
                after[one] = self._outer_product(a, b, k + s, rows, parts, totals[one])
            return after

        tail = size % sets if isinstance(size, int) else 0
        totals = e.carry((0, size - tail, sets), initial * sets, types * sets, steps)
        totals = steps(Index.of(size - tail), totals, tail)
        sums = totals[:count]
        for start in range(count, count * sets, count):
            sums = [add(e, x, y, type_) for x, y, type_ in zip(sums, totals[start : start + count], types, strict=True)]
        return sums

    def _outer_product(
        self, a: Source, b: Source, k: Index, rows: int, parts: tuple[Piece, ...], totals: list[str]
    ) -> list[str]:
        """`totals` plus the product of one column of a and one row of b."""
        e, columns = self.e, []
        for part in parts:
            if self.schedule.prefetch and not self.room_b:
                e.prefetch(b.view, b.base + (k + self.schedule.prefetch) * b.k_stride + part.offset)
            value = e.load(b.view, b.base + k * b.k_stride + part.offset, part.lanes, part.valid)
            columns.append((part.lanes, convert(e, value, b.casts, part.lanes)))
        indices = (a.base + k * a.k_stride + i * a.stride for i in range(rows))
        scalars = (convert(e, e.load_scalar(a.view, index), a.casts, None) for index in indices)
        return outer_product(e, scalars, columns, self.problem.compute, totals)

    def _write_tile(self, totals: list[str], targets: list[tuple[Index, Piece]], number: Index) -> None:
        """Add to the output; the first block of k overwrites it unless the kernel accumulates."""
        e = self.e
        if self.frame.accumulate or not number.terms:
            for total, (at, part) in zip(totals, targets, strict=True):
                self._write(total, at, part, self.frame.accumulate)
            return
        first = e.let(f"arith.cmpi eq, {e.at(number)}, {e.at(0)} : index", "first")
        with e.region(f"scf.if {first} {{", "} else {"):
            for total, (at, part) in zip(totals, targets, strict=True):
                self._write(total, at, part, add_old=False)
        with e.region("", "}"):
            for total, (at, part) in zip(totals, targets, strict=True):
                self._write(total, at, part, add_old=True)

    def _write(self, total: str, at: Index, part: Piece, add_old: bool) -> None:
        """Add to, or overwrite, part of a row of the output."""
        e, compute, out = self.e, self.problem.compute, self.frame.c
        strided = self.problem.n.c != 1 and part.valid > 1
        valid = None if part.valid == part.lanes else part.valid
        if add_old:
            old = self._gather(at, part) if strided else e.load(out, at, part.lanes, valid)
            total = add(e, widen(e, old, self.problem.c, compute, part.lanes), total, vector(part.lanes, compute))
        total = narrow(e, total, self.problem.c, compute, part.lanes)
        if strided:
            self._scatter(total, at, part)
        else:
            e.store(total, out, at, part.lanes, valid)

    def _lane_places(self, part: Piece) -> str:
        steps = ", ".join(str(lane * self.problem.n.c) for lane in range(part.lanes))
        return self.e.let(f"arith.constant dense<[{steps}]> : {vector(part.lanes, 'index')}")

    def _gather(self, at: Index, part: Piece) -> str:
        out, e = self.frame.c, self.e
        type_, mask = vector(part.lanes, out.element), e.mask(part.lanes, part.valid)
        types = f"{out.type}, {vector(part.lanes, 'index')}, {vector(part.lanes, 'i1')}, {type_} into {type_}"
        zero = e.zeros(part.lanes, out.element)
        return e.let(f"vector.gather {out.name}[{e.at(at)}] [{self._lane_places(part)}], {mask}, {zero} : {types}")

    def _scatter(self, value: str, at: Index, part: Piece) -> None:
        out, e = self.frame.c, self.e
        type_, mask = vector(part.lanes, out.element), e.mask(part.lanes, part.valid)
        types = f"{out.type}, {vector(part.lanes, 'index')}, {vector(part.lanes, 'i1')}, {type_}"
        e.do(f"vector.scatter {out.name}[{e.at(at)}] [{self._lane_places(part)}], {mask}, {value} : {types}")
