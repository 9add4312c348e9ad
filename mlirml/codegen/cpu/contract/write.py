"""Writes register tiles to memory: the function for every tile that is stored on the stack, with its epilogue.

The tile is in memory row by row. The function adds the old output where required, rounds to the type of the output,
stores, and applies the elementwise consumer of the product, a vector along n at a time. One copy of the code serves
whole tiles and those at the edges, whose rows and columns are parameters; without epilogue it serves all contractions
of a module that have such tiles: the row stride of the output is a parameter, too.
"""

from __future__ import annotations

from mlirml.codegen.cpu.contract.kernel import (
    Frame,
    Job,
    Offsets,
    add,
    declared,
    evaluate,
    flat_view,
    narrow,
    passed,
    widen,
)
from mlirml.codegen.cpu.contract.plan import BITS, MASK_REGISTER_BITS, power_of_two, round_up
from mlirml.codegen.cpu.contract.shared import any_view, finish, named, symbol
from mlirml.codegen.cpu.emitter import Emitter, Index, Value, View, vector
from mlirml.core.dataclass import replace

LINE = 64
"""Bytes of a cache line."""
_LEAST_K = 128
"""Shorter sums take less time than prefetching the lines of their output."""


class TileWriter:
    """The function that writes tiles of `mr` rows from the stack, and calls of it.

    `again`: tiles are written several times, for blocks of k, and the output has the partial sums after the first.
    `keep`: the tile, too, must have the complete sums afterwards. An epilogue runs with the last block of k: the others
    are added to the output by `partial`, a writer without epilogue.
    """

    def __init__(self, frame: Frame, kernel: str, again: bool, keep: bool = False, job: Job | None = None) -> None:
        self.frame, self.job, self.again, self.keep = frame, job or frame.job, again, keep
        self.partial: TileWriter | None = None
        if again and self.job.epilogue is not None:
            self.partial = TileWriter(frame, kernel, again, job=replace(self.job, epilogue=None, drops_product=False))
            self.job, self.again = replace(self.job, accumulate=True), False
        schedule = self.job.schedule
        self.lanes = min(schedule.lanes, power_of_two(schedule.nr))
        self.stride = round_up(schedule.nr, self.lanes)
        self.size = schedule.mr * self.stride
        self.tile = f"memref<{self.size}x{self.job.problem.compute}>"
        self.element = self.job.problem.c.element
        columns = self.job.problem.n.size
        self.masked = columns % self.lanes != 0 or (schedule.nr < columns and schedule.nr % self.lanes != 0)
        self.shared = self.job.epilogue is None and self.job.problem.n.c == 1
        self.name = self._shared_name() if self.shared else f"{kernel}_{self.verb}"
        count = 3 + (len(self.job.epilogue.inputs + self.job.epilogue.outs) if self.job.epilogue else 0)
        self.named = {name: frame.named[name] for name in self.job.names[2:count] if name in frame.named}
        frame.functions[self.name] = self._shared_function() if self.shared else self._function()

    @property
    def verb(self) -> str:
        """The verb in the name of the function."""
        return "write"

    def _shared_name(self) -> str:
        """A name that distinguishes two such functions."""
        schedule, problem = self.job.schedule, self.job.problem
        type_ = self.element if problem.c.casts else ""
        name = f"contract_{self.verb}_{problem.compute}_{schedule.mr}x{self.stride}_{self.lanes}"
        name += f"_{type_}{named(problem.c.casts)}" if type_ else ""
        marks = {"add": self.job.accumulate, "again": self.again, "keep": self.keep, "masked": self.masked}
        return "_".join([name, *(mark for mark, there in marks.items() if there)])

    def write(self, offsets: Offsets, rows: Value, columns: Value, number: Index) -> None:
        """Write the frame's tile at `offsets`; `number` is zero for the first block of k."""
        e, tile = self.frame.e, self.frame.tile
        assert tile is not None
        if self.partial is not None:
            end = number + self.job.schedule.kc
            last = e.let(f"arith.cmpi sge, {e.at(end)}, {e.at(self.job.problem.k_size)} : index", "last")
            with e.region(f"scf.if {last} {{", ""):
                self._write(offsets, rows, columns, [])
            with e.region("} else {"):
                self.partial.write(offsets, rows, columns, number)
            return
        flag = [e.let(f"arith.cmpi ne, {e.at(number)}, {e.at(0)} : index", "again")] if self.again else []
        self._write(offsets, rows, columns, flag)

    def _write(self, offsets: Offsets, rows: Value, columns: Value, flag: list[str]) -> None:
        """Call the function; `flag` is true if the output has partial sums, where that depends on the block."""
        e, tile = self.frame.e, self.frame.tile
        assert tile is not None
        if self.shared:
            out, start = self.frame.base("c")
            step = e.at(self.job.problem.m.c)
            arguments = [tile.name, e.at(rows), e.at(columns), out, e.at(start + offsets.c), step, *flag]
            types = [self.tile, "index", "index", f"memref<{self.element}>", "index", "index"]
            self.frame.call(self.name, arguments, types + ["i1"] * len(flag))
            return
        names, types = passed(self.named)
        by_name = dict(zip(self.job.names[2:], (offsets.c, *offsets.more), strict=True))
        positions = [e.at(by_name[name]) for name in self.named]
        arguments = [tile.name, e.at(rows), e.at(columns), *positions, *names, *flag]
        types = [self.tile, "index", "index", *["index"] * len(positions), *types, *["i1"] * len(flag)]
        self.frame.call(self.name, arguments, types)

    def prefetch(self, offsets: Offsets) -> None:
        """Prefetch the lines of the output for the tile at `offsets`, while it is computed."""
        e, schedule = self.frame.e, self.job.schedule
        if "c" not in self.frame.named or schedule.kc < _LEAST_K or self.job.problem.n.c != 1:
            return
        out, start = self.frame.base("c")
        view, line = any_view(e, out, self.element), LINE * 8 // BITS.get(self.element, 16)
        first = start + offsets.c
        for row in range(schedule.mr):
            at = first + row * self.job.problem.m.c
            for number in (*range(0, schedule.nr, line), schedule.nr - 1):  # rows may start anywhere in a line
                e.prefetch(view, at + number)

    def _shared_function(self) -> str:
        e = Emitter()
        views = {"c": any_view(e, "%c", self.element)}
        self._write_rows(e, views)
        parameters = [f"%tile: {self.tile}", "%rows: index", "%columns: index", f"%c: memref<{self.element}>"]
        parameters += ["%c_at: index", "%c_step: index", *(["%again: i1"] if self.again else [])]
        return finish(e, self.name, parameters)[1]

    def _function(self) -> str:
        e = Emitter()
        views = {name: flat_view(e, name, argument) for name, argument in self.named.items()}
        self._write_rows(e, views)
        parameters = [f"%tile: {self.tile}", "%rows: index", "%columns: index"]
        parameters += [f"%{name}_at: index" for name in self.named] + declared(self.named)
        parameters += ["%again: i1"] if self.again else []
        head = (
            f"func.func private @{self.name}({', '.join(parameters)}) attributes {{mlirml.no_inline, mlirml.tile}} {{"
        )
        return "\n".join([head, *e.body(), "return", "}"])

    def _write_rows(self, e: Emitter, views: dict[str, View]) -> None:
        """Write all rows of a tile, a vector at a time; whole rows without masks if there are no mask registers."""
        rows, columns, nr = symbol("%rows"), symbol("%columns"), self.job.schedule.nr
        vector_bits = self.job.schedule.lanes * BITS[self.job.problem.compute]
        if nr % self.lanes or vector_bits >= MASK_REGISTER_BITS:
            self._any_rows(e, views, rows, columns)
            return
        whole = e.let(f"arith.cmpi eq, {e.at(columns)}, {e.at(nr)} : index", "whole")
        with e.region(f"scf.if {whole} {{", ""):
            self._whole_rows(e, views, rows)
        with e.region("} else {"):
            self._any_rows(e, views, rows, columns)

    def _any_rows(self, e: Emitter, views: dict[str, View], rows: Index, columns: Index) -> None:
        """Write rows of `columns` columns."""
        with e.loop(0, rows, 1, "i") as i, e.loop(0, columns, self.lanes, "j") as j:
            valid = columns - j if self.masked else None
            adds = self.job.accumulate or self.again
            self._finish(e, views, self._total(e, views, i, j, columns - j, valid, adds), i, j, valid)

    def _whole_rows(self, e: Emitter, views: dict[str, View], rows: Index) -> None:
        """Rows of all columns of a tile; those of the first block of k have code of their own, which reads no out."""

        def write(adds: bool) -> None:
            with e.loop(0, rows, 1, "i") as i:
                for j in map(Index.of, range(0, self.job.schedule.nr, self.lanes)):
                    self._finish(e, views, self._total(e, views, i, j, None, None, adds), i, j, None)

        if self.job.accumulate or not self.again:
            write(self.job.accumulate)
            return
        with e.region("scf.if %again {", ""):
            write(adds=True)
        with e.region("} else {"):
            write(adds=False)

    def _at(self, e: Emitter, name: str, i: Index, j: Index) -> Index:
        """The offset of row i, column j of the tile in an operand."""
        if self.shared:
            return symbol("%c_at") + e.product(i, symbol("%c_step")) + j
        m, n = (self._stride(name, axis) for axis in ("m", "n"))
        return Index(((f"%{name}_at", 1),)) + i * m + j * n

    def _stride(self, name: str, letter: str) -> int:
        axis = self.job.problem.m if letter == "m" else self.job.problem.n
        return axis.c if name == "c" else axis.more[int(name[1:])]

    def _total(
        self,
        e: Emitter,
        views: dict[str, View],
        i: Index,
        j: Index,
        left: Index | None,
        valid: Index | None,
        adds: bool,
    ) -> str:
        """A vector of sums, in the compute type: of the tile, plus the output if it `adds`.

        `left` is the number of columns from j on; None in whole rows.
        """
        problem, lanes = self.job.problem, self.lanes
        type_, tile = vector(lanes, problem.compute), View("%tile", problem.compute, self.tile)
        total = e.load(tile, i * self.stride + j, lanes)
        if adds:
            held = None if left is None else self._held(e, left, valid)
            old = e.load(views["c"], self._at(e, "c", i, j), lanes, held)
            total = add(e, widen(e, old, problem.c, problem.compute, lanes), total, type_)
        if self.keep:
            e.store(total, tile, i * self.stride + j, lanes)
        return total

    def _finish(self, e: Emitter, views: dict[str, View], total: str, i: Index, j: Index, valid: Index | None) -> None:
        """Store a vector of sums in the type of the output, if the sums are kept, and apply the epilogue to it."""
        problem, lanes = self.job.problem, self.lanes
        product = narrow(e, total, problem.c, problem.compute, lanes)
        if "c" in views and not self.job.drops_product:
            e.store(product, views["c"], self._at(e, "c", i, j), lanes, valid)
        if self.job.epilogue is not None:
            self._epilogue(e, views, product, i, j, valid)

    def _held(self, e: Emitter, left: Index, valid: Index | None) -> Index | None:
        """The number of lanes of the output to add: none for the first block of k."""
        if self.job.accumulate:
            return valid
        return Index(((e.let(f"arith.select %again, {e.at(left)}, {e.at(0)} : index", "held"), 1),))

    def _epilogue(
        self, e: Emitter, views: dict[str, View], product: str, i: Index, j: Index, valid: Index | None
    ) -> None:
        epilogue = self.job.epilogue
        assert epilogue is not None
        inputs = [
            self._load(e, f"x{number}", views[f"x{number}"], element, i, j, valid)
            for number, element in enumerate(epilogue.inputs)
        ]
        for number, value in enumerate(evaluate(e, epilogue, product, inputs, self.lanes)):
            out = f"x{len(epilogue.inputs) + number}"
            e.store(value, views[out], self._at(e, out, i, j), self.lanes, valid)

    def _load(self, e: Emitter, name: str, view: View, element: str, i: Index, j: Index, valid: Index | None) -> str:
        """A vector of an input, or one element of it in all lanes."""
        if self.job.problem.n.size == 1 or self._stride(name, "n") == 1:
            return e.load(view, self._at(e, name, i, j), self.lanes, valid)
        scalar = e.load_scalar(view, self._at(e, name, i, j))
        return e.let(f"vector.broadcast {scalar} : {element} to {vector(self.lanes, element)}")


def fits(stride: int, columns: int, is_out: bool) -> bool:
    """True if an operand of an epilogue can be read, or written, a vector along n at a time."""
    return columns == 1 or stride == 1 or (stride == 0 and not is_out)
