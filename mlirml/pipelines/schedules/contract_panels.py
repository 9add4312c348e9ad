"""The kernel of a big contraction: both operands packed in panels, and whole register tiles only.

for outer: for pc:          blocks of k
    pack a                  all of it, in panels of mr rows
    for t:                  columns
        pack b              one panel of nr columns, into a room that stays in cache
        for u:              register tiles
            tile = a[k][mr] * b[k][nr]
            write the tile

That is the order where a is not too big; else that of `contract_tile.py`, by blocks of rows. The product of two panels,
packing and writing are functions, which other kernels share (`contract_shared.py`) and which need no code of their own
for the edges: there the packed panels are filled up, and writing stops short.
"""

from __future__ import annotations

from dataclasses import replace

from mlirml.pipelines.schedules.contract import Axis, Cast
from mlirml.pipelines.schedules.contract_kernel import Job, Kernel, bare
from mlirml.pipelines.schedules.contract_plan import K_BLOCK
from mlirml.pipelines.schedules.contract_shared import Computed, pack_function, product_function
from mlirml.pipelines.schedules.contract_tile import PACK_BYTES, Grid, TileKernel, Work
from mlirml.pipelines.schedules.emitter import Index, Value, View

PackForm = tuple[str, str, tuple[Cast, ...], int, int, int, bool, int, int, Computed | None]
"""The arguments of `pack_function`."""


class PanelKernel(TileKernel):
    """Writes one kernel; it calls functions for all that takes time."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.multiply = self.name = ""
        self.by_columns = self.schedule.parallel in ("none", "columns") and self.blocks == 1
        self.by_columns &= not self.problem.outer_m and self.block_columns == self.columns.count
        if self.by_columns:
            self.size_b = self.panel_width * self.panel_k
            slots = self.schedule.chunks if self.schedule.parallel == "columns" else 1
            self.frame.buffers.pop()
            self.room_b = self.frame.buffer(slots * self.size_b)

    def build(self, name: str) -> Kernel:
        """The whole function."""
        self.name = name
        self.multiply = self._share(self._product_function())
        return super().build(name)

    def _product_function(self) -> tuple[str, str]:
        """What multiplies two packed panels: name and text."""
        schedule = self.schedule
        stride = -(-schedule.nr // self._write_lanes) * self._write_lanes
        tile = self.problem.compute, schedule.mr, schedule.nr, schedule.lanes, stride
        return product_function(*tile, schedule.pairs)

    @property
    def _write_lanes(self) -> int:
        return min(self.schedule.lanes, 1 << (self.schedule.nr - 1).bit_length())

    def _share(self, function: tuple[str, str]) -> str:
        name, text = function
        self.frame.functions[name] = text
        return name

    def _block(self, work: Work) -> None:
        """All rows of out, in a block of columns, for one block of k."""
        if not self.by_columns:
            super()._block(work)
            return
        count = self.columns.count
        self._pack_all_rows(work)
        if self.schedule.parallel == "columns":
            with self.frame.inside(self.frame.chunks(count)) as (chunk, panel):
                self._column(replace(work, slot_b=chunk, low=panel, high=panel + 1))
        else:
            with self.e.loop(0, count, 1, "t") as panel:
                self._column(replace(work, low=panel, high=panel + 1))

    def _column(self, work: Work) -> None:
        self._pack_b(work)
        self._multiply(work, Index(), Index.of(self.rows.count))

    def _pack_all_rows(self, work: Work) -> None:
        """Pack a; several threads do it where it is big."""
        rows = self.rows.count
        if self.schedule.parallel == "columns" and self.size_a * 4 >= 4 * PACK_BYTES:
            grain = max(1, PACK_BYTES // (self.panel_a * 4))
            with self.frame.inside(self.e.parallel(rows, grain)) as tile:
                self._pack_tile_of_rows(work, tile, tile)
        else:
            self._pack_a(work, Index(), Index.of(rows))

    def _pack_a(self, work: Work, first: Index, tiles: Index) -> None:
        """Pack `tiles` tiles of rows from tile `first` on."""
        with self.e.loop(0, tiles, 1, "u") as u:
            self._pack_tile_of_rows(work, u, first + u)

    def _pack_tile_of_rows(self, work: Work, u: Index, tile: Index) -> None:
        assert self.room_a is not None
        at = work.slot_a * self.size_a + u * self.panel_a
        self._pack("a", work, self.rows, tile, (self.room_a, at, self.rows.width))

    def _b_at(self, work: Work, t: Index) -> Index:
        """Where a packed panel of b is."""
        base = work.slot_b * self.size_b
        return base if self.by_columns else base + t * (self.panel_width * self.panel_k)

    def _pack_b(self, work: Work) -> None:
        """Pack the panels of `work`."""
        assert self.room_b is not None
        with self.e.loop(work.low, work.high, 1, "t") as t:
            room = self.room_b, self._b_at(work, t), self.panel_width
            self._pack("b", work, self.columns, work.first + t, room)

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
            step = lanes * (2 if self.schedule.words else 1)
            way, whole = "squares", problem.k_size % step == 0 and self.schedule.kc % step == 0
        element = self.frame.named[letter].element
        shape = grid.width, stride, self.schedule.lanes
        computed, more = self._computed(letter, work, axis, tile * grid.width)
        function = self._pack_function(
            letter, (way, element, casts, *shape, whole, ahead, self.schedule.pairs, computed)
        )
        operand, start = self.frame.base(letter)
        place = (work.place.a if letter == "a" else work.place.b) + start + tile * (grid.width * row_step)
        rows = e.minimum(grid.width, grid.size - tile * grid.width) if grid.rest else Index.of(grid.width)
        numbers: list[Value] = [place, row_step, k_step, rows, work.k_size]
        names = [operand, *map(e.at, numbers), bare(e, view.name, view.type, view.element), e.at(at)]
        types = [f"memref<{element}>", *["index"] * 5, f"memref<{view.element}>", "index"]
        for memory, kind, first in more:
            names += [memory, e.at(first)]
            types += [f"memref<{kind}>", "index"]
        self.frame.call(self._share(function), names, types)

    def _pack_function(self, letter: str, form: PackForm) -> tuple[str, str]:
        """What packs a panel of an operand: name and text."""
        return pack_function(*form)

    def _computed(
        self, letter: str, work: Work, axis: Axis, row: Index
    ) -> tuple[Computed | None, list[tuple[str, str, Index]]]:
        """What is packed in place of an operand, and its inputs: memory, element type, and where row `row` starts."""
        prologue = self.frame.job.prologue(letter)
        if prologue is None:
            return None, []
        k, steps, more = self.problem.k[0], [], []
        for number, element in prologue.inputs:
            memory, start = self.frame.base(f"x{number}")
            steps.append((element, axis.more[number], k.more[number]))
            more.append((memory, element, work.place.more[number] + start + row * axis.more[number]))
        return Computed(f"{self.name}_pack_{letter}", prologue.body, tuple(steps)), more

    def _steps(self, size: Value) -> Value:
        """Rounds of the innermost loop for `size` elements along k."""
        if not self.schedule.words:
            return size
        if isinstance(size, int):
            return -(-size // 2)
        return Index(((self.e.let(f"arith.ceildivui {self.e.at(size)}, {self.e.at(2)} : index"), 1),))

    def _multiply(self, work: Work, first: Index, tiles: Index) -> None:
        """Every register tile of `tiles` tiles of rows from tile `first` on, and of the panels of `work`."""
        e = self.e
        assert self.room_a is not None and self.room_b is not None and self.writer is not None
        a, b = (bare(e, room.name, room.type, room.element) for room in (self.room_a, self.room_b))
        with e.loop(work.low, work.high, 1, "t") as t, e.loop(0, tiles, 1, "u") as u:
            self._fill_tile_from((a, work.slot_a * self.size_a + u * self.panel_a), (b, self._b_at(work, t)), work)
            row, column = (first + u) * self.rows.width, (work.first + t) * self.columns.width
            place = work.place.step(self.problem.m, row).step(self.problem.n, column)
            rows = e.minimum(self.rows.width, self.rows.size - row) if self.rows.rest else self.rows.width
            width, size = self.columns.width, self.columns.size
            columns = e.minimum(width, size - column) if self.columns.rest else width
            self.writer.write(place, rows, columns, work.number)

    def _fill_tile_from(self, a: tuple[str, Index], b: tuple[str, Index], work: Work) -> None:
        """The product of two packed panels on the frame's tile: their memory, and where in it they start."""
        e, tile, steps = self.e, self.frame.tile, self._steps(work.k_size)
        assert self.writer is not None and tile is not None
        with e.loop(0, self.writer.size, self._write_lanes, "at") as at:
            e.store(e.zeros(self._write_lanes, self.problem.compute), tile, at, self._write_lanes)
        block = K_BLOCK // self.schedule.pairs
        with e.loop(0, steps, block, "pk") as k:
            places = a[1] + k * self.rows.width, b[1] + k * self.panel_width
            self._call_product((a[0], places[0]), (b[0], places[1]), e.minimum(block, steps - k))

    def _call_product(self, a: tuple[str, Index], b: tuple[str, Index], steps: Value) -> None:
        e, tile, room = self.e, self.frame.tile, self.room_a
        assert tile is not None and room is not None
        types = [f"memref<{room.element}>", "index"] * 2 + ["index", tile.type]
        self.frame.call(self.multiply, [a[0], e.at(a[1]), b[0], e.at(b[1]), e.at(steps), tile.name], types)
