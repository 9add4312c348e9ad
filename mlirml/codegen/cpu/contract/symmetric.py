"""The kernel of a matrix times its own transpose: only tiles on and below the diagonal are computed.

for outer: for pc:              blocks of k
  pack                          all rows, in panels of nr
  for jc:                       blocks of panels, which stay in the L2 cache
    for r >= jc:                panels of rows
      for s:                    tiles of mr rows in panel r
        for t in jc, t <= r:    panels of columns
            tile = panel[r][k][mr from s] * panel[t][k][nr]
            write the tile; where t < r, after the last block of k, write its transpose above the diagonal

The matrix is packed once: the rows of a tile are part of a panel that is as wide as the tile. Tiles of panel r on the
diagonal make a whole square, so that no element is written by two tiles.
"""

from __future__ import annotations

from mlirml.codegen.cpu.contract.kernel import Job, Kernel, Offsets, bare
from mlirml.codegen.cpu.contract.pack import exchanged
from mlirml.codegen.cpu.contract.panels import PanelKernel
from mlirml.codegen.cpu.contract.plan import K_BLOCK
from mlirml.codegen.cpu.contract.shared import product_function, symbol
from mlirml.codegen.cpu.contract.tile import Work
from mlirml.codegen.cpu.contract.write import TileWriter
from mlirml.codegen.cpu.emitter import Emitter, Index, Value, View
from mlirml.core.dataclass import replace


class SymmetricKernel(PanelKernel):
    """Emits one kernel; panels are counted along both sides of the output."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.mirror: MirrorWriter | None = None

    def _arrange(self) -> None:
        """All panels are packed before the first is multiplied."""
        self.size_b = self.columns.count * self.panel_width * self.panel_k
        slots = self.schedule.chunks if self.schedule.parallel == "outer" else 1
        self.frame.buffers.pop()
        self.room_b = self.frame.buffer(slots * self.size_b)

    def build(self, name: str) -> Kernel:
        """Emit the function."""
        self.multiply = self._share(self._product_function())
        self.writer = TileWriter(self.frame, name, again=self.splits_k, keep=self.splits_k)
        self.mirror = MirrorWriter(self.frame, name, again=False)
        self.frame.scratch(self.writer.size)
        with self.frame.outer_loops(self.problem.outer) as (offsets, slot):
            self._product(offsets, slot)
        return self.frame.finish(name)

    def _product_function(self) -> tuple[str, str]:
        """The function that multiplies rows of one panel with another: name and text."""
        schedule = self.schedule
        stride = -(-schedule.nr // self._write_lanes) * self._write_lanes
        tile = self.problem.compute, schedule.mr, schedule.nr, schedule.lanes, stride
        return product_function(*tile, a_step=self.panel_width)

    def _product(self, offsets: Offsets, slot: Index) -> None:
        """Compute one symmetric product."""
        e, axis, step, count = self.e, self.problem.k[0], self.schedule.kc, self.columns.count
        with e.loop(0, axis.size, step, "pc") as k:
            left = e.minimum(step, axis.size - k) if axis.size % step else min(axis.size, step)
            here = offsets.step(axis, k)
            work = Work(here, ((left, axis),), slot, slot, k, Index(), Index(), Index.of(count))
            self._pack_all(work)
            with e.loop(0, count, self.block_columns, "jc") as first:
                end = e.minimum(first + self.block_columns, count)
                self._panels(work, first, end)

    def _pack_all(self, work: Work) -> None:
        """Pack every panel, with several threads if they are large."""
        if self.schedule.parallel != "columns":
            self._pack_b(work)
            return
        with self.frame.parallel_body(self.e.parallel(work.high, self.pack_grain)) as panel:
            self._pack_b(replace(work, low=panel, high=panel + 1))

    def _panels(self, work: Work, first: Index, end: Index) -> None:
        """Compute the tiles of panels of columns `first` to `end`."""
        e, count = self.e, self.columns.count
        if self.schedule.parallel != "columns":
            with e.loop(first, count, 1, "r") as row:
                self._row(work, row, first, end)
            return
        # Rows further down have more tiles: one from the top and one from the bottom have the same work together.
        pairs = Index(((e.let(f"arith.ceildivui {e.at(count - first)}, {e.at(2)} : index"), 1),))
        with self.frame.parallel_body(e.parallel(pairs, self.schedule.grain)) as pair:
            upper, lower = first + pair, count - 1 - pair
            with e.loop(0, e.minimum(2, lower - upper + 1), 1, "which") as which:
                self._row(work, upper + e.product(which, lower - upper), first, end)

    def _row(self, work: Work, row: Index, first: Index, end: Index) -> None:
        """Compute the tiles of a panel of rows, in panels of columns `first` to `end`."""
        e, width, height = self.e, self.columns.width, self.rows.width
        rows = e.minimum(width, self.columns.size - row * width) if self.columns.rest else Index.of(width)
        with (
            e.loop(0, rows, height, "s") as at,
            e.loop(first, e.minimum(end, row + 1), 1, "t") as column,
        ):
            self._one_tile(work, (row, at), column, e.minimum(height, rows - at) if self.rows.rest else height)

    def _one_tile(self, work: Work, row: tuple[Index, Index], column: Index, rows: Value) -> None:
        """Compute a tile from row `at` of panel `panel` on, and its transpose."""
        e, (panel, at), room = self.e, row, self.room_b
        assert room is not None and self.writer is not None and self.mirror is not None
        memory, width = bare(e, room.name, room.type, room.element), self.columns.width
        positions = self._b_at(work, panel) + at, self._b_at(work, column)
        with e.loop(0, work.k_size, K_BLOCK, "pk") as k:
            again = e.let(f"arith.cmpi ne, {e.at(k)}, {e.at(0)} : index", "again")
            a, b = ((memory, offset + k * self.panel_width) for offset in positions)
            size = Index.of(work.k_size)
            self._call_product(a, b, e.minimum(K_BLOCK, size - k), [again], ["i1"])
        m, n = self.problem.m, self.problem.n
        top, left = panel * width + at, column * width
        columns = e.minimum(width, self.columns.size - left) if self.columns.rest else width
        self.writer.write(work.offsets.step(m, top).step(n, left), rows, columns, work.number)
        below = e.let(f"arith.cmpi slt, {e.at(column)}, {e.at(panel)} : index", "below")
        if self.splits_k:
            end = work.number + self.schedule.kc
            last = e.let(f"arith.cmpi sge, {e.at(end)}, {e.at(self.problem.k_size)} : index", "last")
            below = e.let(f"arith.andi {below}, {last} : i1")
        with e.region(f"scf.if {below} {{"):
            self.mirror.write(work.offsets.step(m, left).step(n, top), width, rows, Index())


class MirrorWriter(TileWriter):
    """The function that writes the transposes of tiles, all of whose columns are valid."""

    @property
    def verb(self) -> str:
        """The verb in the name of the function."""
        return "mirror"

    def _write_rows(self, e: Emitter, views: dict[str, View]) -> None:
        """Write squares of as many columns of a tile as it has rows, each a few rows of the output."""
        problem, height = self.job.problem, self.job.schedule.mr
        self.lanes = height
        columns = symbol("%columns")
        tile = View("%tile", problem.compute, self.tile)
        valid = columns if problem.n.size % height else None
        with e.loop(0, self.job.schedule.nr, height, "i") as i:
            square = [e.load(tile, i + row * self.stride, height) for row in range(height)]
            for row, total in enumerate(exchanged(e, square, height, problem.compute)):
                self._finish(e, views, total, i + row, Index(), valid)
