"""Tiled products of matrices of dynamic sizes: tiles as in `tiles.py`, whose loads and stores are masked at all edges.

block = its batch and its tile, of a grid that the host computes from the sizes
for k in steps of DEPTH, as many as the size needs:
    shared_a[k', m] = a[m0 + m, k + k'] or 0;  shared_b[k', n] = b[k + k', n0 + n] or 0;  barrier
    for k': sums[i, j] += shared_a[k', i] * shared_b[k', j];  barrier
out[m, n] = the result, computed from the sums, where m and n are in the matrix
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.analysis.structured import indexing_maps, is_parallel
from mlirml.analysis.values import depends_on, walk
from mlirml.codegen.gpu.contract.product import Product, has_zero_init, match_product
from mlirml.codegen.gpu.contract.tiles import SHARED, SMALL, SharedTiles, Store, Tile
from mlirml.codegen.gpu.elements import Elements, apply, out_map
from mlirml.codegen.gpu.index import Form, cut_up, form
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.codegen.gpu.sizes import (
    Size,
    below,
    blocks_of,
    cover,
    cut,
    flat_index,
    in_kernel,
    loop_extents,
    product,
)
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch


def match_sized_product(host: Host, op: mlir.Operation) -> Product:
    """Read an operation as a contraction for tiles; raises NoMatch, too where a static side is too short for them."""
    matched = match_product(op)
    sizes = Sizes(host, matched)
    if any(isinstance(size, int) and size < least for size, least in ((sizes.rows, 8), (sizes.columns, 8))):
        raise NoMatch("too small for tiles")
    if isinstance(sizes.depth, int) and sizes.depth < 4:
        raise NoMatch("too small for tiles")
    return matched


class Sizes:
    """The sizes of the loops of a contraction, and of the groups of them."""

    def __init__(self, host: Host, matched: Product) -> None:
        self.loops = loop_extents(host, matched.op)
        self.batch, self.rows, self.columns, self.depth = (
            product(host, self.of(group)) for group in (matched.batch, matched.rows, matched.columns, matched.depth)
        )

    def of(self, group: Sequence[int]) -> list[Size]:
        """The sizes of some loops."""
        return [self.loops[d] for d in group]


def lower_sized_product(host: Host, matched: Product, stores: Sequence[Store]) -> None:
    """Build the kernel of a contraction, and of what is computed from its elements."""
    sizes = Sizes(host, matched)
    short = any(isinstance(size, int) and size < SHARED.rows for size in (sizes.rows, sizes.columns))
    tile = SMALL if short else SHARED
    with host.kernel("contract", (SizedContract.threads_of(tile),)) as kernel:
        SizedContract(kernel, matched, sizes, tile).build(stores)


class SizedContract(SharedTiles):
    """The kernel: the positions of its block and thread, the shared tiles, the sums."""

    def __init__(self, kernel: Kernel, matched: Product, sizes: Sizes, tile: Tile) -> None:
        # Not that of the base class, whose sizes are numbers.
        self.kernel, self.product, self.tile = kernel, matched, tile
        self.elements = Elements(kernel)
        self.extents = sizes
        self.type = matched.combiner.types[0]
        host = kernel.host
        counts = [blocks_of(host, sizes.rows, tile.rows), blocks_of(host, sizes.columns, tile.columns)]
        blocks = product(host, [sizes.batch, *counts])
        block = cover(kernel, blocks)
        self.in_grid = below(kernel, block, blocks)
        self.batch, row, column = cut(kernel, block, [sizes.batch, *counts])
        self.origin = (row * tile.rows, column * tile.columns)
        across = tile.columns // tile.wide
        self.thread = kernel.thread()
        self.thread_position = cut_up(self.thread, [tile.threads // across, across])
        self.shared = self.share()

    def build(self, stores: Sequence[Store]) -> None:
        """Build the kernel."""
        depth = self.tile.depth

        def step(k: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
            for side in (0, 1):
                self.fetch(side, k * depth)
            self.kernel.barrier()
            sums = self.kernel.loop((0, depth, 1), self.multiply, sums)
            self.kernel.barrier()
            return sums

        steps = blocks_of(self.kernel.host, self.extents.depth, depth)
        sums = self.kernel.loop((0, in_kernel(self.kernel, steps), 1), step, self.zeros())
        for i, row in enumerate(self.each(0)):
            for j, column in enumerate(self.each(1)):
                guards = [
                    self.in_grid,
                    below(self.kernel, row, self.extents.rows),
                    below(self.kernel, column, self.extents.columns),
                ]
                value = sums[i * self.tile.wide + j]
                self.kernel.guarded(guards, partial(self.store_one, row, column, value, stores))

    def point(self, row: Form, column: Form, depth: Form) -> list[Form]:
        """The indices of all loops, from the row-major indices of the groups of loops."""
        point = [form(0)] * len(self.extents.loops)
        matched = self.product
        groups = ((matched.batch, self.batch), (matched.rows, row), (matched.columns, column), (matched.depth, depth))
        for loops, number in groups:
            for d, index in zip(loops, cut(self.kernel, number, self.extents.of(loops)), strict=True):
                point[d] = index
        return point

    def element(
        self, side: int, start: Form, k: Form, x: Form, along_depth: bool, positions: list[tuple[Form, Form]]
    ) -> mlir.Value:
        """The factor at an index of a tile; 0 beyond the edges."""
        kernel = self.kernel
        depth, across = start + k, self.origin[side] + x
        inside = [
            self.in_grid,
            below(kernel, depth, self.extents.depth),
            below(kernel, across, (self.extents.rows, self.extents.columns)[side]),
        ]
        row, column = (across, form(0)) if side == 0 else (form(0), across)

        needed = [condition for condition in inside if condition is not None]
        return kernel.choose(
            kernel.all_of(needed),
            lambda: self.factor(side, self.point(row, column, depth)),
            lambda: kernel.constant(0, self.type),
            self.type,
        )

    def store_one(self, row: Form, column: Form, value: mlir.Value, stores: Sequence[Store]) -> None:
        """Register a sum as a known element of the product, and store the results computed from it."""
        matched, elements = self.product, self.elements
        indices = apply(out_map(matched.op, 0), self.point(row, column, form(0)))
        if not has_zero_init(matched):
            before = elements.get(matched.op.operands[2], indices)
            name = "arith.addi" if isinstance(self.type, mlir.IntegerType) else "arith.addf"
            value = emit.same_type(name, value, before)
        elements.give(matched.result, indices, value)
        elements.reduced.add(matched.op)
        found = [elements.get(tensor, indices) for tensor, _ in stores]
        for (tensor, out), element in zip(stores, found, strict=True):
            self.kernel.store(out, [(flat_index(self.kernel, tensor, indices), element)])


def is_pointwise(value: mlir.Value, matched: Product) -> bool:
    """True if each element of a tensor is computed from the element of the product at its own indices."""

    def read(each: mlir.Value) -> list[mlir.Value]:
        op = defining_op(each)
        if each == matched.result or op is None or not op.name.startswith("linalg."):
            return []
        if op.name == "linalg.fill" or not is_parallel(op):
            return []
        identity = mlir.AffineMap.get_identity(each.type.rank)
        pairs = zip(op.operands, indexing_maps(op), strict=True)
        found = [(operand, map_) for operand, map_ in pairs if depends_on(operand, [matched.result])]
        is_plain = out_map(op, list(op.results).index(each)) == identity and all(map_ == identity for _, map_ in found)
        return [operand for operand, _ in found] if is_plain else []

    return all(each == matched.result or read(each) for each in walk(value, read))
