"""Tiled products of matrices: a block computes a tile, its threads share loads, each has a register tile.

    for k in steps of DEPTH:
        shared_a[k', m] = a[m0 + m, k + k'];  shared_b[k', n] = b[k + k', n0 + n];  barrier
        for k': sums[i, j] += shared_a[k', i] * shared_b[k', j];  barrier
    out[m, n] = the result, computed from the sums

Producers of operands (views, casts) are inlined into the loads, and consumers of the product into the stores. Beyond
the edges of the matrices a block reads their last rows and columns redundantly, and zeros along k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.gpu.contract.product import Product, fewest, has_zero_init, match_product
from mlirml.codegen.gpu.contract.split_depth import add_parts, offset_of_part, parts_of
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import Host, Kernel, extract
from mlirml.codegen.gpu.reads import read_indices, symbols
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, operations
from mlirml.passes import NoMatch

Store = tuple[mlir.Value, mlir.Value]
VECTOR = 4


@dataclass(frozen=True)
class Tile:
    """A block's tile of `rows` x `columns`, `depth` at a time; a thread's is `high` x `wide`."""

    rows: int
    columns: int
    depth: int
    high: int
    wide: int

    @property
    def threads(self) -> int:
        return (self.rows // self.high) * (self.columns // self.wide)


SMALL, SHARED = Tile(32, 32, 16, 4, 4), Tile(64, 64, 16, 4, 4)
MIDDLE, LARGE = Tile(64, 64, 16, 8, 8), Tile(128, 128, 8, 8, 8)


def match_contract(op: mlir.Operation, stores: Sequence[Store]) -> Product:
    """Read an operation as a contraction whose results depend on one element of the product each."""
    product = match_product(op)
    if fewest(product) < 8 or product.size(product.depth) < 4:
        raise NoMatch("too small for tiles")
    point = tuple(symbols("element", product.result.type.shape))
    for value, _ in stores:
        if read_indices(value, product.result, point) is None:
            raise NoMatch("a result reads other elements of the product")
    return product


def choose_tile(product: Product, stores: Sequence[Store]) -> Tile:
    """The largest tile of which there are enough to fill a device.

    The computation on the sums is unrolled for each of a thread's, so with elementary functions it gets fewer.
    """
    rows, columns = product.size(product.rows), product.size(product.columns)
    many = any(has_functions(value) for value, _ in stores)
    for tile, enough in ((SHARED, 4),) if many else ((LARGE, 16), (MIDDLE, 4)):
        count = -(-rows // tile.rows) * -(-columns // tile.columns) * product.size(product.batch)
        if count >= enough and min(rows, columns) > tile.rows // 2:
            return tile
    return SMALL


def has_functions(value: mlir.Value) -> bool:
    """True if an elementary function is computed for an element of a tensor."""
    owner = value.owner
    return not isinstance(owner, mlir.Block) and any(op.name.startswith("math.") for op in operations(owner.operation))


def lower_contract(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """Build the kernel of a contraction."""
    lower_in_parts(host, Contract, product, choose_tile(product, stores), stores)


def lower_in_parts(host: Host, contract: type[Contract], product: Product, tile: Tile, stores: Sequence[Store]) -> None:
    """Build the kernel of a contraction, or of its parts, and one that adds them."""
    blocks = -(-product.size(product.rows) // tile.rows) * -(-product.size(product.columns) // tile.columns)
    steps = -(-product.size(product.depth) // tile.depth)
    parts = parts_of(host, blocks * product.size(product.batch), steps)
    size = parts * math.prod(product.result.type.shape)
    partial = host.array([size], product.combiner.types[0]) if parts > 1 else None
    with host.kernel("contract", (contract.threads_of(tile),)) as kernel:
        contract(kernel, product, tile, parts, partial).build(stores)
    if partial is not None:
        add_parts(host, product, parts, partial, stores)


class SharedTiles:
    """Tiles of the two factors in shared memory, and the product of them in the registers of the threads of a block.

    `batch` and `origin` are the matrix and the first row and column of the tile; `depth_tile` is the number of indices
    along the depth that are read at least, whole or not.
    """

    vector = VECTOR

    def __init__(
        self, kernel: Kernel, elements: Elements, product: Product, tile: Tile, depth_tile: int | None = None
    ) -> None:
        self.kernel = kernel
        self.product = product
        self.tile = tile
        self.elements = elements
        self.sizes = (product.size(product.rows), product.size(product.columns))
        self.depth = product.size(product.depth)
        self.depth_tile = depth_tile or tile.depth
        self.type = product.combiner.types[0]
        self.batch = Form()
        self.origin: tuple[Form, Form] = (Form(), Form())
        self.in_grid: mlir.Value | None = None
        across = tile.columns // tile.wide
        self.thread = kernel.thread()
        self.thread_position = cut_up(self.thread, [tile.threads // across, across])
        self.shared = self.share()

    def share(self) -> list[mlir.Value]:
        """The shared tiles; rows are padded to avoid bank conflicts."""
        tile = self.tile
        return [self.kernel.shared([tile.depth, extent + VECTOR], self.type) for extent in (tile.rows, tile.columns)]

    @classmethod
    def threads_of(cls, tile: Tile) -> int:
        """The threads of a block."""
        return tile.threads

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.threads_of(self.tile)

    def zeros(self) -> list[mlir.Value]:
        """The sums of a thread before the first step."""
        return [self.kernel.constant(0, self.type)] * (self.tile.high * self.tile.wide)

    def fetch(self, side: int, start: Form) -> None:
        """Copy the tile of one operand into shared memory, along its contiguous dimension."""
        tile, product, kernel = self.tile, self.product, self.kernel
        extent = (tile.rows, tile.columns)[side]
        along_depth = product.last_loop(side) in product.depth
        inner, outer = (tile.depth, extent) if along_depth else (extent, tile.depth)
        lanes = self.vector
        chunks = inner * outer // lanes
        for first in range(0, chunks, self.threads):
            number = self.thread + first
            o, i = cut_up(number, [outer, inner // lanes])
            guard = kernel.below(number, chunks)
            positions = [(i * lanes + lane, o) if along_depth else (o, i * lanes + lane) for lane in range(lanes)]

            def copy(positions: list[tuple[Form, Form]] = positions) -> None:
                values = [self.element(side, start, k, x, along_depth, positions) for k, x in positions]
                self.write(side, positions, values, along_depth)

            kernel.guarded([guard], copy)

    def factor(self, side: int, point: Sequence[Form]) -> mlir.Value:
        """The shared element of an operand."""
        return self.product.factor(self.elements, side, point)

    def write(
        self, side: int, positions: Sequence[tuple[Form, Form]], values: Sequence[mlir.Value], along_depth: bool
    ) -> None:
        """Store adjacent elements, given by their indices along k and across it, into a shared tile."""
        if not along_depth:
            self.write_vector(values, self.shared[side], *positions[0])
            return
        for (k, x), value in zip(positions, values, strict=True):
            self.kernel.write(value, self.shared[side], k, x)

    def element(
        self, side: int, start: Form, k: Form, x: Form, along_depth: bool, positions: list[tuple[Form, Form]]
    ) -> mlir.Value:
        """The factor at an index of a tile; 0 beyond the end of k. Whole chunks are moved if sizes allow it."""
        kernel = self.kernel
        depth, across = start + k, self.origin[side] + x
        lane = next(n for n, position in enumerate(positions) if position == (k, x))
        across = self.clamped_index(across, self.sizes[side], lane if not along_depth else None)
        valid = None
        if self.depth % self.depth_tile:
            valid = kernel.below(depth, self.depth)
            depth = self.clamped_index(depth, self.depth, lane if along_depth else None)
        row, column = (across, Form()) if side == 0 else (Form(), across)
        value = self.factor(side, self.product.point(self.batch, row, column, depth))
        if valid is None:
            return value
        return emit.same_type("arith.select", valid, value, kernel.constant(0, value.type))

    def clamped_index(self, index: Form, size: int, lane: int | None) -> Form:
        """An index clamped to a size; the lanes of a chunk stay together if the size is a multiple of theirs."""
        tile = (self.depth_tile, self.tile.rows, self.tile.columns)
        if all(size % extent == 0 for extent in tile):
            return index
        if lane is None or size % self.vector:
            return self.kernel.clamped(index, size)
        last = size - self.vector
        first = self.kernel.clamped(index - lane, last + 1)
        return self.whole(first, last) + lane

    def whole(self, index: Form, last: int) -> Form:
        """An index that is known to be a multiple of the lanes, as a form that implies it."""
        if index.is_multiple_of(self.vector):
            return index
        lanes = self.kernel.constant(self.vector)
        number = self.kernel.once(
            ("lanes", index), lambda: emit.value("arith.divui", [self.kernel.at(index), lanes], self.kernel.index)
        )
        return form(Digit(Base(number, last // self.vector + 1))) * self.vector

    def write_vector(self, values: Sequence[mlir.Value], memory: mlir.Value, row: Form, column: Form) -> None:
        """Store adjacent elements into shared memory at once."""
        kernel = self.kernel
        type_ = memory.type.element_type
        vector = emit.value("vector.from_elements", list(values), mlir.VectorType.get([len(values)], type_))
        indices = [kernel.at(row), kernel.at(column)]
        alignment = emit.i64(min(16, len(values) * element_bytes(type_)))
        emit.create("vector.store", [vector, memory, *indices], (), {"alignment": alignment})

    def read_vector(self, memory: mlir.Value, row: Form, column: Form) -> list[mlir.Value]:
        """Load adjacent elements of shared memory."""
        indices = [self.kernel.at(row), self.kernel.at(column)]
        type_ = mlir.VectorType.get([VECTOR], self.type)
        alignment = emit.i64(min(16, VECTOR * element_bytes(self.type)))
        vector = emit.value("vector.load", [memory, *indices], type_, alignment=alignment)
        return [extract(vector, lane) for lane in range(VECTOR)]

    def quads(self, side: int) -> list[Form]:
        """The rows, or the columns, of a thread's tile within the block's: strided groups of four."""
        extent, own = ((self.tile.rows, self.tile.high), (self.tile.columns, self.tile.wide))[side]
        fours = own // VECTOR
        return [self.thread_position[side] * VECTOR + four * (extent // fours) for four in range(fours)]

    def multiply(self, k: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        """Add the products at one index along k."""
        left, right = (
            [value for first in self.quads(side) for value in self.read_vector(self.shared[side], k, first)]
            for side in (0, 1)
        )
        return [
            self.add_product(a, b, sums[i * len(right) + j]) for i, a in enumerate(left) for j, b in enumerate(right)
        ]

    def add_product(self, a: mlir.Value, b: mlir.Value, total: mlir.Value) -> mlir.Value:
        if isinstance(self.type, mlir.IntegerType):
            return emit.same_type("arith.addi", emit.same_type("arith.muli", a, b), total)
        return emit.same_type("math.fma", a, b, total)

    def finish(self, sums: list[mlir.Value], stores: Sequence[Store]) -> None:
        """Store the results, computed from the sums."""
        kernel, product = self.kernel, self.product
        wide = self.tile.wide
        for i, row in enumerate(self.each(0)):
            for group in range(0, wide, VECTOR):
                columns = self.each(1)[group : group + VECTOR]
                together = self.stores_together()
                parts = [columns] if together else [[column] for column in columns]
                for number, part in enumerate(parts):
                    first = i * wide + group + (0 if together else number)
                    guards = [
                        self.in_grid, kernel.below(row, self.sizes[0]), kernel.below(part[-1], self.sizes[1])
                    ]  # fmt: skip
                    values = sums[first : first + len(part)]
                    points = [product.result_indices(self.batch, row, column) for column in part]
                    kernel.guarded(guards, partial(self.store, points, values, stores))

    def stores_together(self) -> bool:
        """True if the thread's columns are groups of four adjacent ones that end with the matrix."""
        return self.sizes[1] % VECTOR == 0

    def each(self, side: int) -> list[Form]:
        """The rows, or the columns, of the matrix that the thread computes."""
        return [self.origin[side] + first + lane for first in self.quads(side) for lane in range(VECTOR)]

    def store(self, points: Sequence[tuple[Form, ...]], values: Sequence[mlir.Value], stores: Sequence[Store]) -> None:
        """Register sums as known elements of the product, and store the results computed from them."""
        for point, value in zip(points, values, strict=True):
            if not has_zero_init(self.product):
                before = self.elements.get(self.product.op.operands[2], point)
                name = "arith.addi" if isinstance(self.type, mlir.IntegerType) else "arith.addf"
                value = emit.same_type(name, value, before)
            self.elements.give(self.product.result, point, value)
        self.elements.reduced.add(self.product.op)
        for tensor, out in stores:
            positions = [read_indices(tensor, self.product.result, point) for point in points]
            found = [
                (flat(indices, tensor.type.shape), self.elements.get(tensor, indices))
                for indices in positions
                if indices is not None
            ]
            self.kernel.store(out, found)


class Contract(SharedTiles):
    """The kernel: the positions of its block and thread, the shared tiles, the sums."""

    def __init__(
        self, kernel: Kernel, product: Product, tile: Tile, parts: int = 1, partial: mlir.Value | None = None
    ) -> None:
        super().__init__(kernel, Elements(kernel), product, tile)
        self.partial = partial
        counts = [-(-self.sizes[0] // tile.rows), -(-self.sizes[1] // tile.columns)]
        blocks = parts * product.size(product.batch) * counts[0] * counts[1]
        block = kernel.cover(blocks)
        self.in_grid = kernel.below(block, blocks)
        numbers = cut_up(kernel.clamped(block, blocks), [parts, product.size(product.batch), *counts])
        self.part, self.batch = numbers[:2]
        self.num_steps = -(-self.depth // tile.depth) // parts
        self.first = self.part * self.num_steps
        self.origin = (numbers[2] * tile.rows, numbers[3] * tile.columns)

    def steps(self) -> int:
        """The step of `multiply` along k."""
        return 1

    def build(self, stores: Sequence[Store]) -> None:
        """Build the kernel."""
        depth, by = self.tile.depth, self.steps()

        def step(k: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
            self.kernel.lanes = self.vector
            for side in (0, 1):
                self.fetch(side, (self.first + k) * depth)
            self.kernel.lanes = 0
            self.kernel.barrier()
            sums = self.kernel.loop((0, depth // by, 1), lambda i, inner: self.multiply(i * by, inner), sums)
            self.kernel.barrier()
            return sums

        sums = self.kernel.loop((0, self.num_steps, 1), step, self.zeros())
        self.kernel.lanes = VECTOR
        self.finish(sums, stores)

    def store(self, points: Sequence[tuple[Form, ...]], values: Sequence[mlir.Value], stores: Sequence[Store]) -> None:
        """Store the sums of a part, or the results computed from them."""
        if self.partial is None:
            super().store(points, values, stores)
            return
        parts = [offset_of_part(self.product, self.part, point) for point in points]
        self.kernel.store(self.partial, list(zip(parts, values, strict=True)))
