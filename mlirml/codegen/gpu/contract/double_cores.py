"""Products of f64 on tensor cores, 8x8 results at a time by a subgroup of 32 threads.

    for step in the depth, DEPTH at a time, its panels in shared memory (`pipelined.py`):
        for k' in steps of 4, for each 8x8 fragment of the subgroup's tile:
            sums = nvgpu.mma.sync(8 rows of panel a, 8 columns of panel b, sums)

Thread 4g + t of a subgroup has element t of row g of the left factor, and of column g of the right one; and of the sums
columns 2t and 2t + 1 of row g (PTX ISA, "Matrix fragments for mma.m8n8k4 with .f64 floating point type"). The products
are added as by fused multiply-adds in f64, in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.codegen.gpu.contract.fragments import element
from mlirml.codegen.gpu.contract.multiply_add import is_plain
from mlirml.codegen.gpu.contract.panels import is_direct
from mlirml.codegen.gpu.contract.pipelined import ROW_BYTES, Pipelined
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import Store, Tile, lower_in_parts
from mlirml.codegen.gpu.index import Form, cut_up, split
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_SUBGROUP, _SIDE, _DEPTH = 32, 8, 4
_LANES = 2
"""The f64 in a chunk of a panel, and the adjacent sums of a thread."""
MIDDLE, LARGE = (Tile(64, 64, ROW_BYTES // 8, 32, 32), Tile(128, 128, ROW_BYTES // 8, 64, 32))
"""Tiles of a block, and of a subgroup."""
_FILLS = 96
"""Large tiles are used if there are at least this number of them."""


def check_double_cores(host: Host, product: Product) -> None:
    """Raise NoMatch if the device has no tensor cores, or the factors are not f64 that can be copied."""
    if not host.device.tensor_cores or host.device.subgroup != _SUBGROUP:
        raise NoMatch("no tensor cores")
    types = [product.combiner.types[0], *(product.op.operands[n].type.element_type for n in (0, 1))]
    if not all(isinstance(type_, mlir.F64Type) for type_ in types):
        raise NoMatch("not f64")
    if not any(is_plain(product, side) and is_direct(host, product, side, _LANES) for side in (0, 1)):
        raise NoMatch("neither factor can be copied as it is")


def lower_double_contract(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """Build the kernel."""
    rows, columns = product.size(product.rows), product.size(product.columns)
    blocks = -(-rows // LARGE.rows) * -(-columns // LARGE.columns) * product.size(product.batch)
    lower_in_parts(host, DoubleContract, product, LARGE if blocks >= _FILLS else MIDDLE, stores)


class DoubleContract(Pipelined):
    """The kernel; `high` and `wide` of its tile are a subgroup's."""

    def __init__(
        self, kernel: Kernel, product: Product, tile: Tile, parts: int = 1, partial: mlir.Value | None = None
    ) -> None:
        super().__init__(kernel, product, tile, parts, partial)
        down, across = tile.rows // tile.high, tile.columns // tile.wide
        self.above, self.beside, self.group, self.member = cut_up(self.thread, [down, across, _SIDE, _DEPTH])

    @classmethod
    def threads_of(cls, tile: Tile) -> int:
        return (tile.rows // tile.high) * (tile.columns // tile.wide) * _SUBGROUP

    def is_plain(self, side: int) -> bool:
        return is_plain(self.product, side)

    def zeros(self) -> list[mlir.Value]:
        pieces = (self.tile.high // _SIDE) * (self.tile.wide // _SIDE)
        return [self.kernel.constant(0, self.type)] * (_LANES * pieces)

    def multiply_slot(self, slot: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        for depth in range(0, self.tile.depth, _DEPTH):
            sums = self.multiply_step(slot, depth, sums)
        return sums

    def multiply_step(self, slot: Form, depth: int, sums: list[mlir.Value]) -> list[mlir.Value]:
        """One step along k of all fragments of the subgroup."""
        tile = self.tile
        left = [self.fragment(0, slot, self.above * tile.high + first, depth) for first in range(0, tile.high, _SIDE)]
        right = [self.fragment(1, slot, self.beside * tile.wide + first, depth) for first in range(0, tile.wide, _SIDE)]
        shape = mlir.ArrayAttr.get([emit.i64(n) for n in (_SIDE, _SIDE, _DEPTH)])
        type_ = mlir.VectorType.get([1, _LANES], self.type)
        found: list[mlir.Value] = []
        for a in left:
            for b in right:
                before = emit.value("vector.from_elements", sums[len(found) : len(found) + _LANES], type_)
                after = emit.value("nvgpu.mma.sync", [a, b, before], type_, mmaShape=shape)
                found += [element(after, 0, lane) for lane in range(_LANES)]
        return found

    def fragment(self, side: int, slot: Form, across: Form, depth: int) -> mlir.Value:
        """The element of this thread of 8 rows, or 8 columns, at one step along k."""
        panel = self.panels[side]
        x, k = across + self.group, self.member + depth
        row, inner = (x, k) if panel.along else (k, x)
        chunk, within = split(inner, panel.width)
        value = self.kernel.read(panel.memory, panel.offset(slot, row, chunk, within))
        return emit.value("vector.from_elements", [value], mlir.VectorType.get([1, 1], self.type))

    def finish(self, sums: list[mlir.Value], stores: Sequence[Store]) -> None:
        """Store the results: two adjacent elements in a row of each fragment."""
        tile, kernel = self.tile, self.kernel
        pieces = tile.wide // _SIDE
        kernel.lanes = _LANES
        for number in range(len(sums) // _LANES):
            row = self.origin[0] + self.above * tile.high + number // pieces * _SIDE + self.group
            first = self.origin[1] + self.beside * tile.wide + number % pieces * _SIDE + self.member * _LANES
            for lanes in ([0, 1],) if self.sizes[1] % _LANES == 0 else ([0], [1]):
                columns = [first + lane for lane in lanes]
                guards = [self.in_grid, kernel.below(row, self.sizes[0]), kernel.below(columns[-1], self.sizes[1])]
                points = [self.product.result_indices(self.batch, row, column) for column in columns]
                values = [sums[_LANES * number + lane] for lane in lanes]
                kernel.guarded(guards, partial(self.store, points, values, stores))
