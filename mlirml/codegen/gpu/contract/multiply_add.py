"""f32 products in full precision with asynchronously copied tiles, in registers of each thread.

    for step in the depth, DEPTH at a time, its panels in shared memory (`pipelined.py`):
        for k' in DEPTH, for each row i and column j of the thread:
            sums[i, j] += panel_a[i, k'] * panel_b[k', j]

A panel in shared memory has the layout of its factor in memory. If rows of the panel are along the depth, a thread
reads four elements along k at once; its rows or columns then are apart, as adjacent ones belong to adjacent threads,
which read other banks. Else it reads four adjacent rows or columns at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirml.codegen.gpu.contract.panels import is_direct
from mlirml.codegen.gpu.contract.pipelined import ROW_BYTES, Pipelined
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import VECTOR, Store, Tile, choose_tile, lower_in_parts
from mlirml.codegen.gpu.index import Form, split
from mlirml.codegen.gpu.kernel import Host, extract
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_DEPTH = ROW_BYTES // 4


def check_multiply_add(host: Host, product: Product) -> None:
    """Raise NoMatch if the device has no asynchronous copies, or the factors are not f32."""
    if not host.device.tensor_cores:
        raise NoMatch("no asynchronous copies")
    types = [product.combiner.types[0], *(product.op.operands[n].type.element_type for n in (0, 1))]
    if not all(isinstance(type_, mlir.F32Type) for type_ in types):
        raise NoMatch("not f32")
    if not any(is_plain(product, side) and is_direct(host, product, side, VECTOR) for side in (0, 1)):
        raise NoMatch("neither factor can be copied as it is")


def is_plain(product: Product, side: int) -> bool:
    """True if a factor is multiplied without a computation on it."""
    return not product.sides[side].ops


def lower_multiply_add(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """Build the kernel."""
    tile = choose_tile(product, stores)
    lower_in_parts(host, MultiplyAdd, product, Tile(tile.rows, tile.columns, _DEPTH, tile.high, tile.wide), stores)


class MultiplyAdd(Pipelined):
    """The kernel; `high` and `wide` of its tile are a thread's."""

    def is_plain(self, side: int) -> bool:
        return is_plain(self.product, side)

    def multiply_slot(self, slot: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        # A loop: unrolled it needs more registers, and more compile time.
        return self.kernel.loop(
            (0, _DEPTH // VECTOR, 1), lambda four, inner: self.multiply_four(slot, four, inner), sums
        )

    def multiply_four(self, slot: Form, four: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        """Add the products at four indices along k."""
        sums = list(sums)
        right = [column for part in self.parts(1, slot, four) for column in part]
        first = 0
        # The left factor is loaded in parts, which need few registers at a time.
        for rows in self.parts(0, slot, four):
            for lane in range(VECTOR):
                for i, row in enumerate(rows, first):
                    for j, column in enumerate(right, i * self.tile.wide):
                        sums[j] = self.add_product(row[lane], column[lane], sums[j])
            first += len(rows)
        return sums

    def parts(self, side: int, slot: Form, four: Form) -> Iterator[list[list[mlir.Value]]]:
        """For each row or column of the thread, some at a time, its elements at four indices along k."""
        panel = self.panels[side]
        if panel.along:
            for row in self.lines(side):
                yield [self.four(panel.memory, panel.offset(slot, row, four))]
            return
        for first in self.quads(side):
            chunk, _ = split(first, VECTOR)
            rows = [self.four(panel.memory, panel.offset(slot, four * VECTOR + k, chunk)) for k in range(VECTOR)]
            yield [[row[lane] for row in rows] for lane in range(VECTOR)]

    def four(self, memory: mlir.Value, offset: Form) -> list[mlir.Value]:
        """A chunk of a panel."""
        vector = self.kernel.load_vector(memory, offset, VECTOR)
        return [extract(vector, lane) for lane in range(VECTOR)]

    def lines(self, side: int) -> list[Form]:
        """The rows, or the columns, of a thread's tile within the block's."""
        if not self.panels[side].along:
            return [first + lane for first in self.quads(side) for lane in range(VECTOR)]
        extent, own = ((self.tile.rows, self.tile.high), (self.tile.columns, self.tile.wide))[side]
        return [self.thread_position[side] + number * (extent // own) for number in range(own)]

    def each(self, side: int) -> list[Form]:
        return [self.origin[side] + line for line in self.lines(side)]

    def stores_together(self) -> bool:
        return super().stores_together() and not self.panels[1].along
