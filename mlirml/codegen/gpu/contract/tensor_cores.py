"""Products on tensor cores, 16x8 results at a time by a subgroup of 32 threads, summed in f32.

    for step in the depth, DEPTH at a time, its panels in shared memory (`pipelined.py`):
        for k' in steps of 16 (8 of tf32), for each 16x8 fragment of the subgroup's tile:
            sums = nvgpu.mma.sync(rows of panel a, columns of panel b, sums)

The factors are f16 or bf16, or f32 that is rounded to tf32; `fragments.py` says which thread has what of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.gpu.contract.fragments import COLUMNS, ROWS, SUMS, halves, joined, multiply
from mlirml.codegen.gpu.contract.pipelined import ROW_BYTES, Pipelined
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import Store, Tile, lower_in_parts
from mlirml.codegen.gpu.index import Form, cut_up
from mlirml.codegen.gpu.kernel import Host, Kernel, extract
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_SUBGROUP = 32
MIDDLE, LARGE = Tile(64, 64, 32, 32, 32), Tile(128, 128, 32, 64, 64)
"""Tiles of a block, and of a subgroup, for elements of 16 bits; those of 32 bits have half the depth."""
_FILLS = 96
"""Large tiles are used if there are at least this number of them: a large GPU has 108 processors for them."""


def check_tensor_cores(host: Host, product: Product) -> None:
    """Raise NoMatch if the device has no tensor cores, or they do not support the factors."""
    if not host.device.tensor_cores or host.device.subgroup != _SUBGROUP:
        raise NoMatch("no tensor cores")
    operands = [product.op.operands[side.operand].type.element_type for side in product.sides]
    if not isinstance(product.combiner.types[0], mlir.F32Type):
        raise NoMatch("the sum is not f32")
    ops = [[op.name for op in side.ops] for side in product.sides]
    if all(isinstance(type_, mlir.F32Type) for type_ in operands) and ops == [[], []] and host.choices.tf32:
        return
    if operands[0] != operands[1] or not isinstance(operands[0], (mlir.F16Type, mlir.BF16Type)):
        raise NoMatch("the factors are no small floats")
    if ops != [["arith.extf"], ["arith.extf"]]:
        raise NoMatch("the factors are computed")


def lower_tensor_contract(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """Build the kernel."""
    rows, columns = product.size(product.rows), product.size(product.columns)
    blocks = -(-rows // LARGE.rows) * -(-columns // LARGE.columns) * product.size(product.batch)
    tile = LARGE if blocks >= _FILLS else MIDDLE
    depth = ROW_BYTES // element_bytes(product.op.operands[0].type.element_type)
    tile = Tile(tile.rows, tile.columns, depth, tile.high, tile.wide)
    lower_in_parts(host, TensorContract, product, tile, stores)


class TensorContract(Pipelined):
    """The kernel; `high` and `wide` of its tile are a subgroup's."""

    def __init__(
        self, kernel: Kernel, product: Product, tile: Tile, parts: int = 1, partial: mlir.Value | None = None
    ) -> None:
        super().__init__(kernel, product, tile, parts, partial)
        across = tile.columns // tile.wide
        down = tile.rows // tile.high
        self.above, self.beside, self.group, self.member = cut_up(self.thread, [down, across, 8, 4])
        _, self.lane_high, self.lane_low, self.lane_row = cut_up(self.thread, [down * across, 2, 2, 8])

    @classmethod
    def threads_of(cls, tile: Tile) -> int:
        return (tile.rows // tile.high) * (tile.columns // tile.wide) * _SUBGROUP

    def factor(self, side: int, point: Sequence[Form]) -> mlir.Value:
        return self.product.raw(self.elements, side, point)

    def zeros(self) -> list[mlir.Value]:
        pieces = (self.tile.high // ROWS) * (self.tile.wide // COLUMNS)
        return [self.kernel.constant(0, self.type)] * (4 * pieces)

    def multiply_slot(self, slot: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        for depth in range(0, self.tile.depth, 2 * self.vector):
            sums = self.multiply_step(slot, depth, sums)
        return sums

    def multiply_step(self, slot: Form, depth: int, sums: list[mlir.Value]) -> list[mlir.Value]:
        """One step along k of all fragments of the subgroup."""
        tile = self.tile
        left = [self.fragment(0, slot, self.above * tile.high + first, depth) for first in range(0, tile.high, ROWS)]
        right = [
            half
            for first in range(0, tile.wide, 2 * COLUMNS)
            for half in halves(self.kernel, self.fragment(1, slot, self.beside * tile.wide + first, depth))
        ]
        found: list[mlir.Value] = []
        for a in (joined(self.kernel, registers) for registers in left):
            for b in right:
                before = sums[len(found) : len(found) + SUMS]
                found += multiply(self.kernel, a, b, before, depth=2 * self.vector, tf32=self.vector == 4)
        return found

    def fragment(self, side: int, slot: Form, across: Form, depth: int) -> list[mlir.Value]:
        """Four registers of a factor: 16 rows, or 16 columns, at one step along k."""
        panel = self.panels[side]
        if self.vector == 8:
            order = (self.lane_low, self.lane_high) if side == 0 else (self.lane_high, self.lane_low)
            return panel.fragment(slot, across, depth, order, self.lane_row)
        if panel.along:
            order = (self.lane_low, self.lane_high) if side == 0 else (self.lane_high, self.lane_low)
            registers = panel.fragment(slot, across, depth, order, self.lane_row)
        else:
            steps = [(n % 2, n // 2) if side == 0 else (n // 2, n % 2) for n in range(4)]
            registers = panel.scattered(slot, across + self.group, self.member + depth, steps)
        return [self.rounded(register) for register in registers]

    def rounded(self, register: mlir.Value) -> mlir.Value:
        """An f32 rounded to the 10 bits of tf32, which the processor would truncate."""
        kernel = self.kernel
        integer = mlir.IntegerType.get_signless(32)
        value = extract(register, 0)
        bits = emit.value("arith.bitcast", [value], integer)
        half = kernel.constant(1 << 12, integer)
        more = emit.value("arith.bitcast", [emit.same_type("arith.addi", bits, half)], self.type)
        # Adding to a NaN could turn it into a number.
        chosen = emit.same_type("arith.select", emit.compare("uno", value, value), value, more)
        return emit.value("vector.from_elements", [chosen], register.type)

    def finish(self, sums: list[mlir.Value], stores: Sequence[Store]) -> None:
        """Store the results: two adjacent elements in two rows of each fragment."""
        tile, kernel = self.tile, self.kernel
        pieces = tile.wide // COLUMNS
        kernel.lanes = 2
        for number in range(len(sums) // 4):
            first_row = self.origin[0] + self.above * tile.high + number // pieces * ROWS + self.group
            first = self.origin[1] + self.beside * tile.wide + number % pieces * COLUMNS + self.member * 2
            for half in range(2):
                row = first_row + 8 * half
                values = sums[4 * number + 2 * half : 4 * number + 2 * half + 2]
                together = self.sizes[1] % 2 == 0
                for part in ([0, 1],) if together else ([0], [1]):
                    columns = [first + lane for lane in part]
                    guards = [
                        self.in_grid, kernel.below(row, self.sizes[0]), kernel.below(columns[-1], self.sizes[1])
                    ]  # fmt: skip
                    points = [self.product.result_indices(self.batch, row, column) for column in columns]
                    kernel.guarded(guards, partial(self.store, points, [values[lane] for lane in part], stores))
