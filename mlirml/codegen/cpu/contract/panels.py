"""The kernel of a large contraction: both operands packed in panels, and whole register tiles only.

for outer: for pc:          blocks of k
  for ic:                   blocks of rows, which stay in the L2 cache
    pack a                  in panels of mr rows
    pack b                  the first panel of nr columns, into a buffer that stays in cache
    for t:                  columns
        for u:              register tiles
            tile = a[k][mr] * b[k][nr], while rows of panel t + 1 of b are copied into a second buffer
            write the tile

A panel that must be transposed, or that too few or too many tiles use, is packed just before its use. That is the order
of loops if a is not too large; else that of `tile.py`, by blocks of rows, whose tiles prefetch the next panel of b. The
product of two panels, packing and writing are functions, which other kernels share (`shared.py`) and which need no
separate code for edges: there the packed panels are padded, and stores are masked.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu.contract.kernel import Job, Kernel, bare
from mlirml.codegen.cpu.contract.plan import BITS, K_BLOCK, MASK_REGISTER_BITS
from mlirml.codegen.cpu.contract.shared import GROUP, Copy, product_function
from mlirml.codegen.cpu.contract.tile import PACK_BYTES, TileKernel, Work
from mlirml.codegen.cpu.contract.write import LINE
from mlirml.codegen.cpu.emitter import Index, Value
from mlirml.core.dataclass import dataclass, replace

_TURNS = (384, 192, 128, 96, 64, 48, 32, 16, 12, 8)
"""The possible numbers of iterations of k between copies of two rows of b.

All are multiples of a group of iterations, and divide a block of them. Rows are copied as rarely as the tiles of a
panel allow: prefetches compete with the loads of tiles from the L2 cache, and the number of outstanding loads is
limited.
"""


class PanelKernel(TileKernel):
    """Emits one kernel; it calls functions for everything that takes time."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.multiply = ""
        self.slot_b = self.size_b
        self.by_columns = self.copies = False
        self._arrange()

    def _arrange(self) -> None:
        """Choose the order of the loops, and the size of the packed part of b."""
        self.by_columns = self.schedule.parallel in ("none", "columns") and not self.problem.outer_m
        self.by_columns &= self.block_columns == self.columns.count
        self.copies = self.by_columns and self._can_copy()
        # Blocks of rows pack b repeatedly, which takes time unless it is copied.
        self.by_columns &= self.blocks == 1 or self.copies or self.schedule.parallel == "columns"
        if self.by_columns:
            self.size_b = self.panel_width * self.panel_k
            slots = self.schedule.chunks if self.schedule.parallel == "columns" else 1
            self.slot_b = 2 * self.size_b if self.copies else self.size_b
            self.frame.buffers.pop()
            self.room_b = self.frame.buffer(slots * self.slot_b)

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        self.multiply = self._share(self._product_function())
        return super().build(name)

    def _product_function(self) -> tuple[str, str]:
        """The function that multiplies two packed panels: name and text."""
        schedule = self.schedule
        stride = -(-schedule.nr // self._write_lanes) * self._write_lanes
        tile = self.problem.compute, schedule.mr, schedule.nr, schedule.lanes, stride
        copy = None
        if self.copies:
            whole = self._is_exact(self.turn), self.columns.rest == 0
            copy = Copy(self.frame.named["b"].element, self.problem.b.casts, *whole)
        return product_function(*tile, schedule.pairs, copy)

    def _can_copy(self) -> bool:
        """True if there are enough tiles in a panel of b to copy the next one while they multiply."""
        schedule, problem = self.schedule, self.problem
        if schedule.pairs != 1 or schedule.nr % schedule.lanes or problem.n.b != 1:
            return False
        enough = self.turn > 0 and problem.m.size <= costs().kernels.panels.next_rows and self.columns.count > 1
        return enough and self.frame.job.prologue("b") is None

    @property
    def k_sizes(self) -> list[int]:
        """The sizes of the blocks of k."""
        size, block = self.problem.k_size, min(self.schedule.kc, self.problem.k_size)
        return [block] + ([size % block] if size % block else [])

    @property
    def turn(self) -> int:
        """The number of iterations of k between copies of two rows of b, or zero with too few tiles for that."""
        fewest = self.rows.count - (self.blocks - 1) * self.block_rows
        fit = [turn for turn in _TURNS if all(fewest * (size // turn) >= size for size in self.k_sizes)]
        exact = [turn for turn in fit if self._is_exact(turn)]
        return max(exact or fit, default=0)

    def _is_exact(self, turn: int) -> bool:
        return all(size % turn == 0 for size in self.k_sizes)

    @property
    def _write_lanes(self) -> int:
        return min(self.schedule.lanes, 1 << (self.schedule.nr - 1).bit_length())

    def _block(self, work: Work) -> None:
        """Compute all rows of the output, in a block of columns, for one block of k."""
        if not self.by_columns:
            super()._block(work)
            return
        with self.e.loop(0, self.blocks, 1, "ic") as block:
            first = block * self.block_rows
            self._columns(work, first, self.e.minimum(self.block_rows, self.rows.count - first))

    def _columns(self, work: Work, first: Index, tiles: Index) -> None:
        """Compute all panels of columns, for `tiles` tiles of rows from tile `first` on."""
        count = self.columns.count
        self._pack_rows(work, first, tiles)
        if self.schedule.parallel == "columns":
            each = -(-count // min(self.schedule.chunks, count))
            grain = max(each, self.schedule.grain * each)
            # No tile is multiplied while a chunk packs its first panel.
            with self.frame.parallel_body(self.e.parallel(count, grain, long=self.copies)) as panel:
                start, end = self.e.span(panel, count)
                # A chunk has at least `each` panels: no two start in the same slot.
                slot = Index(((self.e.let(f"arith.divui {self.e.at(start)}, {self.e.at(each)} : index"), 1),))
                self._column(replace(work, slot_b=slot, low=panel, high=panel + 1), (first, tiles), (start, end))
        else:
            with self.e.loop(0, count, 1, "t") as panel:
                here = replace(work, low=panel, high=panel + 1)
                self._column(here, (first, tiles), (Index(), Index.of(count)))

    def _column(self, work: Work, rows: tuple[Index, Index], panels: tuple[Index, Index]) -> None:
        """Compute the tiles of a panel; one thread runs the panels between the bounds `panels` in order."""
        e = self.e
        if self.copies:
            is_first = e.let(f"arith.cmpi eq, {e.at(work.low)}, {e.at(panels[0])} : index", "first")
            with e.region(f"scf.if {is_first} {{"):
                self._pack_b(work)
        else:
            self._pack_b(work)
        self._multiply(work, *rows, panels[1])

    def _pack_rows(self, work: Work, first: Index, tiles: Index) -> None:
        """Pack tiles of rows of a, with several threads if they are large."""
        if self.schedule.parallel == "columns" and self.size_a * 4 >= 4 * PACK_BYTES:
            grain = max(1, PACK_BYTES // (self.panel_a * 4))
            with self.frame.parallel_body(self.e.parallel(tiles, grain)) as tile:
                self._pack_tile_of_rows(work, tile, first + tile)
        else:
            self._pack_a(work, first, tiles)

    def _pack_a(self, work: Work, first: Index, tiles: Index) -> None:
        """Pack `tiles` tiles of rows from tile `first` on."""
        with self.e.loop(0, tiles, 1, "u") as u:
            self._pack_tile_of_rows(work, u, first + u)

    def _pack_tile_of_rows(self, work: Work, u: Index, tile: Index) -> None:
        assert self.room_a is not None
        at = work.slot_a * self.size_a + u * self.panel_a
        self._pack("a", work, self.rows, tile, (self.room_a, at, self.rows.width))

    def _b_at(self, work: Work, t: Index) -> Index:
        """The offset of a packed panel of b."""
        if not self.by_columns:
            return work.slot_b * self.size_b + t * (self.panel_width * self.panel_k)
        base = work.slot_b * self.slot_b
        if self.copies:
            base += Index(((self.e.let(f"arith.remui {self.e.at(t)}, {self.e.at(2)} : index"), 1),)) * self.size_b
        return base

    def _pack_b(self, work: Work) -> None:
        """Pack the panels of `work`."""
        assert self.room_b is not None
        with self.e.loop(work.low, work.high, 1, "t") as t:
            room = self.room_b, self._b_at(work, t), self.panel_width
            self._pack("b", work, self.columns, work.first + t, room)

    def _steps(self, size: Value) -> Value:
        """The iterations of the innermost loop for `size` elements along k."""
        if not self.schedule.packs_words:
            return size
        if isinstance(size, int):
            return -(-size // 2)
        return Index(((self.e.let(f"arith.ceildivui {self.e.at(size)}, {self.e.at(2)} : index"), 1),))

    def _multiply(self, work: Work, first: Index, tiles: Index, end: Index | None = None) -> None:
        """Compute every register tile of `tiles` tiles of rows from tile `first` on, and of the panels of `work`.

        If b is copied meanwhile, `end` is the end of the panels.
        """
        e = self.e
        assert self.room_a is not None and self.room_b is not None and self.writer is not None
        a, b = (bare(e, room.name, room.type, room.element) for room in (self.room_a, self.room_b))
        with e.loop(work.low, work.high, 1, "t") as t, e.loop(0, tiles, 1, "u") as u:
            copies = self._copies(work, t, u, end) if self.copies and end is not None else None
            positions = (a, work.slot_a * self.size_a + u * self.panel_a), (b, self._b_at(work, t))
            row, column = (first + u) * self.rows.width, (work.first + t) * self.columns.width
            offsets = work.offsets.step(self.problem.m, row).step(self.problem.n, column)
            self.writer.prefetch(offsets)
            if not self.by_columns and self.schedule.lanes * BITS[self.problem.compute] < MASK_REGISTER_BITS:
                self._prefetch_panel(work, t, u)
            self._fill_tile_from(*positions, work, copies)
            rows = e.minimum(self.rows.width, self.rows.size - row) if self.rows.rest else self.rows.width
            width, size = self.columns.width, self.columns.size
            columns = e.minimum(width, size - column) if self.columns.rest else width
            self.writer.write(offsets, rows, columns, work.number)

    def _prefetch_panel(self, work: Work, t: Index, u: Index) -> None:
        """Ask for the part of packed panel `t` + 1 of b that falls to tile `u`: a group of tiles asks for all of it."""
        e, room = self.e, self.room_b
        assert room is not None
        line = LINE * 8 // BITS[room.element]
        each = -(-(self.panel_width * self.panel_k) // (line * self.block_rows * self.schedule.group)) * line
        first = self._b_at(work, t + 1) + u * each
        with e.loop(0, each, line, "line") as at:
            e.prefetch(room, first + at, locality=2)

    def _fill_tile_from(self, a: tuple[str, Index], b: tuple[str, Index], work: Work, copies: Copies | None) -> None:
        """Compute the product of two packed panels on the frame's tile; `a` and `b` are memory and offset of panels."""
        e, steps = self.e, self._steps(work.k_size)
        block = K_BLOCK // self.schedule.pairs
        with e.loop(0, steps, block, "pk") as k:
            again = e.let(f"arith.cmpi ne, {e.at(k)}, {e.at(0)} : index", "again")
            more, types = copies.passed(self._turns(k)) if copies else ([], [])
            positions = (a[0], a[1] + k * self.rows.width), (b[0], b[1] + k * self.panel_width)
            self._call_product(*positions, e.minimum(block, steps - k), [again, *more], ["i1", *types])

    def _call_product(
        self, a: tuple[str, Index], b: tuple[str, Index], steps: Value, more: Sequence[str], types: Sequence[str]
    ) -> None:
        """Call the product function with `more` arguments of these types."""
        e, tile, room = self.e, self.frame.tile, self.room_b
        assert tile is not None and room is not None
        types = [f"memref<{room.element}>", "index"] * 2 + ["index", tile.type, *types]
        names = [a[0], e.at(a[1]), b[0], e.at(b[1]), e.at(steps), tile.name, *more]
        self.frame.call(self.multiply, names, types)

    def _turns(self, k: Value) -> Index:
        """The number of rows that are copied in `k` iterations."""
        if isinstance(k, int):
            return Index.of(k // self.turn)
        return Index(((self.e.let(f"arith.divui {self.e.at(k)}, {self.e.at(self.turn)} : index"), 1),))

    def _copies(self, work: Work, t: Index, u: Index, end: Index) -> Copies:
        """The rows of the next panel that tile `u` of panel `t` copies: one for each turn of the tile.

        Tiles after those that have copied all rows copy the last ones redundantly, and those of the last panel that
        panel.
        """
        e = self.e
        each, slot = self._turns(work.k_size), work.slot_b * self.slot_b
        panel = e.minimum(work.first + t + 1, end - 1)
        return Copies(
            kernel=self,
            work=work,
            column=panel * self.columns.width,
            first=e.minimum(e.product(u, each), Index.of(work.k_size) - each),
            room_at=slot + self.size_b - (self._b_at(work, t) - slot),
        )


@dataclass(frozen=True)
class Copies:
    """The rows that a tile copies: from number `first` on, of the panel that starts at `column` of b, to `room_at`."""

    kernel: PanelKernel
    work: Work
    column: Index
    first: Index
    room_at: Index

    def passed(self, number: Index) -> tuple[list[str], list[str]]:
        """The arguments of a product function after `number` turns, and their types; see there."""
        kernel, work = self.kernel, self.work
        e, step = kernel.e, kernel.problem.k[0].b
        room = kernel.room_b
        assert room is not None
        memory, start = kernel.frame.base("b")
        element = kernel.frame.named["b"].element
        # The function increments offsets itself: here LLVM would hoist each into a register through all loops.
        numbers: list[Value] = [kernel.turn // GROUP, self.first + number]
        positions: list[Value] = [start + work.offsets.b + self.column, step, kernel.columns.size - self.column]
        names = [*map(e.at, numbers), memory, *map(e.at, positions)]
        names += [bare(e, room.name, room.type, room.element), e.at(self.room_at)]
        types = [
            "index",
            "index",
            f"memref<{element}>",
            *["index"] * len(positions),
            f"memref<{room.element}>",
            "index",
        ]
        return names, types
