"""The kernel of matrix products of dynamic sizes: `c[i, j] += a[i, l] * b[l, j]` for any strides but that of c's rows.

Columns of c are computed in panels of a few vectors, the last one with masks, rows in tiles as high as the registers
allow, and the rest of them in lower ones. A block of `DEPTH` rows of b is read in place, or copied to a buffer where
the elements of a row are not adjacent: in squares of vectors, which are transposed in registers, where those of a
column are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirml.codegen.cpu.elementwise.transpose import exchange
from mlirml.core.dataclass import dataclass

DEPTH = 256
VECTORS = 2
ROWS, COLUMNS, NEITHER = "rows", "columns", "neither"
"""The elements of b that are adjacent in memory: those of a row, of a column, or none."""
_NAMES = {ROWS: "", COLUMNS: "turned_", NEITHER: "packed_"}

_SHORT = " {llvm.loop_annotation = #llvm.loop_annotation<vectorize = <width = 1 : i32>>}"
"""The annotation of a loop whose steps in memory are no vectors."""


@dataclass(frozen=True)
class SizedKernel:
    """The form of a kernel: element type, lanes of a vector, heights of tiles, and what is adjacent in b."""

    element: str
    lanes: int
    heights: tuple[int, ...]
    adjacent: str = ROWS
    fused: bool = True

    @property
    def packs(self) -> bool:
        """True if b is copied."""
        return self.adjacent != ROWS

    @property
    def is_float(self) -> bool:
        """True for a product of floats; integers wrap around."""
        return self.element.startswith("f")

    @property
    def zero(self) -> str:
        """The text of a zero."""
        return "0.0" if self.is_float else "0"

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"contract_sized_{_NAMES[self.adjacent]}{self.element}"

    @property
    def columns(self) -> int:
        """The columns of a panel."""
        return self.lanes * VECTORS

    def text(self) -> str:
        """The function: pointers, offsets and strides of a, b and c, then the sizes m, n and k."""
        return Writer(self).text()


PARAMETERS = ("ao", "am", "ak", "bo", "bk", "bn", "co", "cm", "m", "n", "k")


class Writer:
    """Writes the text of a kernel."""

    def __init__(self, kernel: SizedKernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.count = 0
        self.vector = f"vector<{kernel.lanes}x{kernel.element}>"
        self.memory = f"memref<?x?x{kernel.element}, strided<[?, ?], offset: ?>>"
        self.rows = f"memref<?x?x{kernel.element}, strided<[?, 1], offset: ?>>"
        self.panel = f"memref<{DEPTH}x{kernel.columns}x{kernel.element}>"

    def let(self, text: str) -> str:
        """Add an operation with a result."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def index(self, number: int) -> str:
        return self.let(f"arith.constant {number} : index")

    def add(self, a: str, number: int) -> str:
        return self.let(f"arith.addi {a}, {self.index(number)} : index") if number else a

    def whole(self, first: str, size: str, step: int) -> str:
        """The end of the whole steps from `first` on."""
        span = self.let(f"arith.subi {size}, {first} : index")
        rest = self.let(f"arith.remui {span}, {self.index(step)} : index")
        return self.let(f"arith.subi {size}, {rest} : index")

    def view(self, name: str, sizes: tuple[str, str], strides: tuple[str, str], type_: str) -> str:
        return self.let(
            f"memref.reinterpret_cast %{name}0 to offset: [%{name}o], sizes: [%{sizes[0]}, %{sizes[1]}], "
            f"strides: [{strides[0]}, {strides[1]}] : memref<{self.kernel.element}> to {type_}"
        )

    def loop(self, first: str, last: str, step: str, annotation: str = "") -> Iterator[str]:
        """A loop whose body is written by the body of a `for` statement."""
        self.count += 1
        name = f"%i{self.count}"
        self.lines.append(f"scf.for {name} = {first} to {last} step {step} {{")
        yield name
        self.lines.append(f"}}{annotation}")

    def text(self) -> str:
        kernel = self.kernel
        self.zero, self.one = self.index(0), self.index(1)
        self.a = self.view("a", ("m", "k"), ("%am", "%ak"), self.memory)
        self.b_type = self.memory if kernel.packs else self.rows
        self.b = self.view("b", ("k", "n"), ("%bk", "%bn" if kernel.packs else "1"), self.b_type)
        self.c = self.view("c", ("m", "n"), ("%cm", "1"), self.rows)
        if kernel.adjacent == COLUMNS:
            self.turned = self.view("b", ("n", "k"), ("%bn", "1"), self.rows)
        if kernel.packs:
            self.buffer = self.let(f"memref.alloca() {{alignment = 64 : i64}} : {self.panel}")
        for k0 in self.loop(self.zero, "%k", self.index(DEPTH)):
            k1 = self.let(f"arith.minsi {self.add(k0, DEPTH)}, %k : index")
            for j in self.loop(self.zero, "%n", self.index(kernel.columns)):
                self.panel_of(j, k0, k1)
        parameters = [f"%{x}0: memref<{kernel.element}>" for x in "abc"] + [f"%{name}: index" for name in PARAMETERS]
        head = f"func.func private @{kernel.name}({', '.join(parameters)}) {{"
        return "\n".join([head, *self.lines, "return", "}"])

    def panel_of(self, j: str, k0: str, k1: str) -> None:
        """A panel of columns from `j` on, with masks if it is narrower than the others."""
        kernel = self.kernel
        left = self.let(f"arith.subi %n, {j} : index")
        is_narrow = self.let(f"arith.cmpi slt, {left}, {self.index(kernel.columns)} : index")
        if kernel.packs:
            self.pack(j, k0, k1, left)
        self.lines.append(f"scf.if {is_narrow} {{")
        masks = []
        for v in range(VECTORS):
            rest = self.let(f"arith.subi {left}, {self.index(v * kernel.lanes)} : index")
            masks.append(self.let(f"vector.create_mask {rest} : vector<{kernel.lanes}xi1>"))
        self.tiles(j, k0, k1, masks)
        self.lines.append("} else {")
        self.tiles(j, k0, k1, [])
        self.lines.append("}")

    def tiles(self, j: str, k0: str, k1: str, masks: list[str]) -> None:
        """All rows of a panel."""
        first = self.zero
        for height in self.kernel.heights:
            last = self.whole(first, "%m", height)
            for i in self.loop(first, last, self.index(height)):
                self.tile(i, j, k0, k1, height, masks)
            first = last

    def pack(self, j: str, k0: str, k1: str, left: str) -> None:
        """Copy a block of a panel of b, with `left` columns up to the end, to the buffer: others give no results."""
        kernel = self.kernel
        depth = self.let(f"arith.subi {k1}, {k0} : index")
        columns = self.let(f"arith.minsi {left}, {self.index(kernel.columns)} : index")
        if kernel.adjacent == NEITHER:
            self.pack_elements(j, k0, (self.zero, columns), (self.zero, depth))
            return
        lanes = self.index(kernel.lanes)
        last_column, last_row = (self.whole(self.zero, size, kernel.lanes) for size in (columns, depth))
        for column in self.loop(self.zero, last_column, lanes):
            for row in self.loop(self.zero, last_row, lanes):
                self.pack_square(j, k0, column, row)
            end = self.let(f"arith.addi {column}, {lanes} : index")
            self.pack_elements(j, k0, (column, end), (last_row, depth))
        self.pack_elements(j, k0, (last_column, columns), (self.zero, depth))

    def pack_elements(self, j: str, k0: str, columns: tuple[str, str], rows: tuple[str, str]) -> None:
        """Copy these columns and rows of a block one element after another."""
        for column in self.loop(*columns, self.one):
            at = self.let(f"arith.addi {j}, {column} : index")
            for row in self.loop(*rows, self.one, _SHORT):
                depth_at = self.let(f"arith.addi {k0}, {row} : index")
                x = self.let(f"memref.load {self.b}[{depth_at}, {at}] : {self.b_type}")
                self.lines.append(f"memref.store {x}, {self.buffer}[{row}, {column}] : {self.panel}")

    def pack_square(self, j: str, k0: str, column: str, row: str) -> None:
        """Copy as many columns and rows as a vector has lanes."""
        at, depth_at = (self.let(f"arith.addi {x}, {y} : index") for x, y in ((j, column), (k0, row)))
        steps = range(self.kernel.lanes)
        vectors = [
            self.let(f"vector.load {self.turned}[{self.add(at, n)}, {depth_at}] : {self.rows}, {self.vector}")
            for n in steps
        ]
        for n, vector in zip(steps, exchange(vectors, self.kernel.lanes, self.shuffle)):
            target = f"{self.buffer}[{self.add(row, n)}, {column}]"
            self.lines.append(f"vector.store {vector}, {target} : {self.panel}, {self.vector}")

    def shuffle(self, a: str, b: str, lanes: Sequence[int]) -> str:
        return self.let(f"vector.shuffle {a}, {b} {list(lanes)} : {self.vector}, {self.vector}")

    def tile(self, i: str, j: str, k0: str, k1: str, height: int, masks: list[str]) -> None:
        """`height` rows of a panel, in registers while the loop over the block of b runs."""
        lanes, vector = self.kernel.lanes, self.vector
        rows = [self.add(i, r) for r in range(height)]
        columns = [self.add(j, v * lanes) for v in range(VECTORS)]
        zeros = self.let(f"arith.constant dense<{self.kernel.zero}> : {vector}") if masks else ""
        places = [(row, v) for row in rows for v in range(VECTORS)]
        sums = []
        for row, v in places:
            at = f"{self.c}[{row}, {columns[v]}]"
            if masks:
                types = f"{self.rows}, vector<{lanes}xi1>, {vector} into {vector}"
                sums.append(self.let(f"vector.maskedload {at}, {masks[v]}, {zeros} : {types}"))
            else:
                sums.append(self.let(f"vector.load {at} : {self.rows}, {vector}"))
        self.count += 1
        loop, at_depth = f"%t{self.count}", f"%l{self.count}"
        carried = [f"%s{self.count}_{n}" for n in range(len(sums))]
        pairs = ", ".join(f"{name} = {start}" for name, start in zip(carried, sums))
        types = ", ".join([vector] * len(sums))
        self.lines.append(
            f"{loop}:{len(sums)} = scf.for {at_depth} = {k0} to {k1} step {self.one} iter_args({pairs}) -> ({types}) {{"
        )
        values = [self.b_vector(at_depth, k0, v, columns, masks, zeros) for v in range(VECTORS)]
        results = []
        for r, row in enumerate(rows):
            element = self.let(f"memref.load {self.a}[{row}, {at_depth}] : {self.memory}")
            factor = self.let(f"vector.broadcast {element} : {self.kernel.element} to {vector}")
            for v in range(VECTORS):
                results.append(self.multiply_add(factor, values[v], carried[r * VECTORS + v]))
        self.lines.append(f"scf.yield {', '.join(results)} : {types}")
        self.lines.append("}")
        for number, (row, v) in enumerate(places):
            at, value = f"{self.c}[{row}, {columns[v]}]", f"{loop}#{number}"
            if masks:
                self.lines.append(
                    f"vector.maskedstore {at}, {masks[v]}, {value} : {self.rows}, vector<{lanes}xi1>, {vector}"
                )
            else:
                self.lines.append(f"vector.store {value}, {at} : {self.rows}, {vector}")

    def b_vector(self, at_depth: str, k0: str, v: int, columns: list[str], masks: list[str], zeros: str) -> str:
        """A vector of a row of b."""
        lanes, vector = self.kernel.lanes, self.vector
        if self.kernel.packs:
            row = self.let(f"arith.subi {at_depth}, {k0} : index")
            return self.let(f"vector.load {self.buffer}[{row}, {self.index(v * lanes)}] : {self.panel}, {vector}")
        if masks:
            types = f"{self.rows}, vector<{lanes}xi1>, {vector} into {vector}"
            return self.let(f"vector.maskedload {self.b}[{at_depth}, {columns[v]}], {masks[v]}, {zeros} : {types}")
        return self.let(f"vector.load {self.b}[{at_depth}, {columns[v]}] : {self.rows}, {vector}")

    def multiply_add(self, a: str, b: str, total: str) -> str:
        if not self.kernel.is_float:
            product = self.let(f"arith.muli {a}, {b} : {self.vector}")
            return self.let(f"arith.addi {total}, {product} : {self.vector}")
        if self.kernel.fused:
            return self.let(f"vector.fma {a}, {b}, {total} : {self.vector}")
        product = self.let(f"arith.mulf {a}, {b} : {self.vector}")
        return self.let(f"arith.addf {total}, {product} : {self.vector}")
