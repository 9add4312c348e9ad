"""Products of f16 and bf16 matrices on tensor cores: 16x8x16 at a time by a subgroup of 32 threads, summed in f32.

    shared_a[m, k'] = a[m0 + m, k + k'];  shared_b[n, k'] = b[k + k', n0 + n];  barrier
    for k' in steps of 16, for each 16x8 piece of the subgroup's tile:
        sums = nvgpu.mma.sync(rows of shared_a, columns of shared_b, sums)
    barrier

Thread 4g + t of a subgroup holds, of the left factor, rows g and g + 8 at columns 2t, 2t + 1, 2t + 8 and 2t + 9; of the
right one column g at the same places along k; and of the sums rows g and g + 8 at columns 2t and 2t + 1 (PTX ISA,
"Matrix fragments for mma.m16n8k16").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.dialects import emit
from mlirml.ir import mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.schedules.gpu.contract import Contract, Store, Tile
from mlirml.pipelines.schedules.gpu.index import Form, cut_up
from mlirml.pipelines.schedules.gpu.kernel import Host, Kernel
from mlirml.pipelines.schedules.gpu.product import Product

_SUBGROUP = 32
_ROWS, _COLUMNS, _DEPTH = 16, 8, 16
_PAD = 8
MIDDLE, LARGE = Tile(64, 64, 32, 32, 32), Tile(128, 128, 32, 64, 32)
"""Tiles of a block, and of a subgroup."""


def check_tensor_cores(host: Host, product: Product) -> None:
    """Raise NoMatch where the device or the factors are not made for them."""
    if not host.facts.tensor_cores or host.facts.subgroup != _SUBGROUP:
        raise NoMatch("no tensor cores")
    operands = [product.op.operands[side.operand].type.element_type for side in product.sides]
    if operands[0] != operands[1] or not isinstance(operands[0], (mlir.F16Type, mlir.BF16Type)):
        raise NoMatch("the factors are no small floats")
    if not isinstance(product.combiner.kinds[0], mlir.F32Type):
        raise NoMatch("the sum is not f32")
    if any([op.name for op in side.ops] != ["arith.extf"] for side in product.sides):
        raise NoMatch("the factors are computed")


def lower_tensor_contract(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """Build the kernel."""
    host.op.context.get_dialect_descriptor("nvgpu")  # loads it
    rows, columns = product.size(product.rows), product.size(product.columns)
    blocks = -(-rows // LARGE.rows) * -(-columns // LARGE.columns) * product.size(product.batch)
    tile = LARGE if blocks >= 32 else MIDDLE
    subgroups = (tile.rows // tile.high) * (tile.columns // tile.wide)
    with host.kernel("contract", (subgroups * _SUBGROUP,)) as kernel:
        TensorContract(kernel, product, tile).build(stores)


class TensorContract(Contract):
    """The kernel; `high` and `wide` of its tile are a subgroup's."""

    vector = 8

    def __init__(self, kernel: Kernel, product: Product, tile: Tile) -> None:
        super().__init__(kernel, product, tile)
        across = tile.columns // tile.wide
        down = tile.rows // tile.high
        self.above, self.beside, self.group, self.member = cut_up(self.thread, [down, across, 8, 4])

    def share(self) -> list[mlir.Value]:
        tile = self.tile
        kind = self.product.op.operands[0].type.element_type
        return [self.kernel.shared([extent, tile.depth + _PAD], kind) for extent in (tile.rows, tile.columns)]

    @property
    def threads(self) -> int:
        return (self.tile.rows // self.tile.high) * (self.tile.columns // self.tile.wide) * _SUBGROUP

    def factor(self, side: int, point: Sequence[Form]) -> mlir.Value:
        return self.product.raw(self.elements, side, point)

    def write(
        self, side: int, places: Sequence[tuple[Form, Form]], values: Sequence[mlir.Value], along_depth: bool
    ) -> None:
        """Both tiles lie with k innermost."""
        if along_depth:
            self.write_vector(values, self.shared[side], places[0][1], places[0][0])
            return
        for (k, x), value in zip(places, values, strict=True):
            self.kernel.write(value, self.shared[side], x, k)

    def zeros(self) -> list[mlir.Value]:
        pieces = (self.tile.high // _ROWS) * (self.tile.wide // _COLUMNS)
        return [self.kernel.constant(0, self.kind)] * (4 * pieces)

    def steps(self) -> int:
        return _DEPTH

    def multiply(self, k: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        """One step along k of all pieces of the subgroup."""
        tile = self.tile
        left = [
            self.fragment(0, self.above * tile.high + first + self.group, k, 2) for first in range(0, tile.high, _ROWS)
        ]
        right = [
            self.fragment(1, self.beside * tile.wide + first + self.group, k, 1)
            for first in range(0, tile.wide, _COLUMNS)
        ]
        shape = mlir.ArrayAttr.get([emit.i64(n) for n in (_ROWS, _COLUMNS, _DEPTH)])
        kind = mlir.VectorType.get([2, 2], self.kind)
        found: list[mlir.Value] = []
        for a in left:
            for b in right:
                # The sums stay scalars around the loop: vectors of two dimensions have no form in branches.
                before = emit.value("vector.from_elements", sums[len(found) : len(found) + 4], kind)
                after = emit.value("nvgpu.mma.sync", [a, b, before], kind, mmaShape=shape)
                found += [element(after, row, column) for row in range(2) for column in range(2)]
        return found

    def fragment(self, side: int, x: Form, k: Form, halves: int) -> mlir.Value:
        """What this thread holds of a factor: pairs at k + 2t and k + 2t + 8, of `halves` rows that lie 8 apart."""
        memory = self.shared[side]
        kind = memory.type.element_type
        pair, whole = mlir.VectorType.get([2], kind), mlir.VectorType.get([2 * halves, 2], kind)
        zero = mlir.DenseElementsAttr.get_splat(whole, mlir.FloatAttr.get(kind, 0.0))
        result = self.kernel.once(("zero", whole), lambda: emit.constant(zero))
        number = 0
        for beyond in (0, 8):
            for half in range(halves):
                indices = [self.kernel.at(x + 8 * half), self.kernel.at(k + self.member * 2 + beyond)]
                value = emit.value("vector.load", [memory, *indices], pair, alignment=emit.i64(4))
                position = mlir.DenseI64ArrayAttr.get([number])
                result = emit.value("vector.insert", [value, result], whole, static_position=position)
                number += 1
        return result

    def finish(self, sums: list[mlir.Value], stores: Sequence[Store]) -> None:
        """Store what is returned: two neighbours in two rows of each piece."""
        tile, kernel = self.tile, self.kernel
        pieces = tile.wide // _COLUMNS
        kernel.lanes = 2
        for number in range(len(sums) // 4):
            first_row = self.origin[0] + self.above * tile.high + number // pieces * _ROWS + self.group
            first = self.origin[1] + self.beside * tile.wide + number % pieces * _COLUMNS + self.member * 2
            for half in range(2):
                row = first_row + 8 * half
                values = sums[4 * number + 2 * half : 4 * number + 2 * half + 2]
                together = self.sizes[1] % 2 == 0
                for part in ([0, 1],) if together else ([0], [1]):
                    columns = [first + lane for lane in part]
                    guards = [
                        self.in_grid, kernel.below(row, self.sizes[0]), kernel.below(columns[-1], self.sizes[1])
                    ]  # fmt: skip
                    points = [self.product.place(self.batch, row, column) for column in columns]
                    kernel.guarded(guards, partial(self.store, points, [values[lane] for lane in part], stores))


def element(vector: mlir.Value, row: int, column: int) -> mlir.Value:
    """An element of a vector of two dimensions."""
    position = mlir.DenseI64ArrayAttr.get([row, column])
    return emit.value("vector.extract", [vector], mlir.VectorType(vector.type).element_type, static_position=position)
