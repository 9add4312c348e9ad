"""Multi-buffered tiles of matrices in shared memory, in the layout that tensor cores read: chunks of 16 bytes.

A panel is a tile of one factor in its memory layout, with the chunks of each row permuted:

    panel[slot][row][chunk ^ twist(row)] = 16 bytes of the matrix

so that there are no bank conflicts between the threads that fill it or the eight rows that `ldmatrix` reads at once. If
the chunks are contiguous in memory, the device copies them asynchronously (`nvgpu.device_async_copy`); if the factor is
computed, or rows are not aligned, threads load one step ahead and store a step later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.structured import groups_of, indexing_maps
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import Tile
from mlirml.codegen.gpu.elements import Indices, apply, dims_at, is_structured
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form, split
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir

CHUNK_BYTES = 16


class Tiled(Protocol):
    """The tile of a product whose factors are copied into panels."""

    kernel: Kernel
    product: Product
    tile: Tile
    thread: Form
    batch: Form
    origin: tuple[Form, Form]
    sizes: tuple[int, int]
    depth: int

    @property
    def threads(self) -> int: ...

    def is_plain(self, side: int) -> bool: ...

    def clamped_index(self, index: Form, size: int, lane: int | None) -> Form: ...

    def element(
        self, side: int, start: Form, k: Form, x: Form, along_depth: bool, positions: list[tuple[Form, Form]]
    ) -> mlir.Value: ...


class Panel:
    """The shared memory of one factor.

    `along`: a row of the panel is along the depth of the product, else across it.
    """

    def __init__(self, contract: Tiled, side: int, slots: int) -> None:
        self.contract = contract
        self.kernel = contract.kernel
        self.side = side
        tile, product = contract.tile, contract.product
        extent = (tile.rows, tile.columns)[side]
        self.type = product.op.operands[product.sides[side].operand].type.element_type
        self.along = product.last_loop(side) in product.depth
        self.rows, self.row = (extent, tile.depth) if self.along else (tile.depth, extent)
        self.width = CHUNK_BYTES // element_bytes(self.type)
        self.chunks = self.row // self.width
        self.memory = self.kernel.shared([slots * self.rows * self.row], self.type)
        self.direct = contract.is_plain(side) and is_direct(self.kernel.host, product, side, self.width)

    def offset(self, slot: Form, row: Form, chunk: Form, within: Form | None = None) -> Form:
        """The index of an element of a chunk."""
        size = self.rows * self.row
        twist = self._twist(row)
        if twist.terms or twist.constant:
            number = self.kernel.once(
                ("twisted", chunk, twist),
                lambda: emit.value("arith.xori", [self.kernel.at(chunk), self.kernel.at(twist)], self.kernel.index),
            )
            chunk = form(Digit(Base(number, self.chunks)))
        found = row * self.row + chunk * self.width + slot * size
        return found if within is None else found + within

    def _twist(self, row: Form) -> Form:
        """The value that a chunk's number is xored with: rows that are read together get different banks."""
        if self.chunks < 8:  # rows of 64 bytes: two of them share the banks
            per_line = 8 // self.chunks
            if self.width == 2:  # four rows, with four adjacent elements in two chunks each
                return split(split(row, per_line)[0], self.chunks // 2)[1] * 2
            return split(split(row, per_line)[0], self.chunks)[1]
        if self.width == 8:
            return split(row, 8)[1]
        return split(row, 4)[1] * 2  # four rows, with eight adjacent elements in two chunks each

    def each_chunk(self) -> list[tuple[Form, Form, mlir.Value | None]]:
        """The rows and chunks of a panel that this thread fills; None or the condition that there is such a chunk."""
        contract, kernel = self.contract, self.kernel
        count = self.rows * self.chunks
        found = []
        for first in range(0, count, contract.threads):
            number = contract.thread + first
            row, chunk = cut_up(kernel.clamped(number, count), [self.rows, self.chunks])
            found.append((row, chunk, kernel.below(number, count)))
        return found

    def copy(self, slot: Form, round_number: Form) -> None:
        """Start the asynchronous copies of a slot, without waiting for them."""
        kernel = self.kernel
        for row, chunk, is_one in self.each_chunk():
            kernel.guarded([is_one], partial(self._copy_chunk, slot, round_number, row, chunk))

    def _copy_chunk(self, slot: Form, round_number: Form, row: Form, chunk: Form) -> None:
        """Start the asynchronous copy of a chunk."""
        contract, kernel = self.contract, self.kernel
        inner = chunk * self.width
        x, k = (row, inner) if self.along else (inner, row)
        across = contract.origin[self.side] + x
        across = (
            kernel.clamped(across, contract.sizes[self.side])
            if self.along
            else contract.clamped_index(across, contract.sizes[self.side], 0)
        )
        depth = round_number * contract.tile.depth + k
        count: list[mlir.Value] = []
        if contract.depth % contract.tile.depth:
            valid = kernel.below(depth, contract.depth)
            if valid is not None:
                depth = contract.clamped_index(depth, contract.depth, 0 if self.along else None)
                chosen = [valid, kernel.constant(self.width), kernel.constant(0)]
                count = [emit.value("arith.select", chosen, kernel.index)]
        found = source_of(kernel.host, contract.product, self.side, contract.batch, across, depth)
        assert found is not None
        source = kernel.memory(found[0])
        operands = [self.memory, kernel.at(self.offset(slot, row, chunk)), source, kernel.at(found[1]), *count]
        attributes = {
            "dstElements": mlir.IntegerAttr.get(kernel.index, self.width),
            "bypassL1": mlir.UnitAttr.get(),
            "operandSegmentSizes": emit.segments(1, 1, 1, 1, len(count)),
        }
        emit.create("nvgpu.device_async_copy", operands, [token()], attributes)

    def load(self, round_number: Form) -> list[list[mlir.Value]]:
        """The elements that this thread stores into the panel in a step, computed; 0 beyond the end of the depth."""
        contract = self.contract
        start = round_number * contract.tile.depth
        found = []
        for row, chunk, _ in self.each_chunk():
            lanes = [chunk * self.width + lane for lane in range(self.width)]
            positions = [(lane, row) if self.along else (row, lane) for lane in lanes]
            found.append([contract.element(self.side, start, k, x, self.along, positions) for k, x in positions])
        return found

    def store(self, slot: Form, values: Sequence[Sequence[mlir.Value]]) -> None:
        """Store the loaded elements into a slot."""
        kernel = self.kernel
        for (row, chunk, is_one), lanes in zip(self.each_chunk(), values, strict=True):

            def write(row: Form = row, chunk: Form = chunk, lanes: Sequence[mlir.Value] = lanes) -> None:
                kernel.store_vector(self.memory, self.offset(slot, row, chunk), list(lanes))

            kernel.guarded([is_one], write)

    def fragment(
        self, slot: Form, across: Form, depth: int, order: tuple[Form, Form], eighth: Form
    ) -> list[mlir.Value]:
        """Four registers of a fragment: the 8x8 matrix, with 16 bytes per row, of each register is `order` further.

        `order` has 0 or 1 across and along the depth for the matrix that contains this thread's row in the subgroup;
        each thread passes the address of one row, `eighth` of its matrix, to `ldmatrix`.
        """
        kernel = self.kernel
        x, k = across + order[0] * 8, order[1] * self.width + depth
        if self.along:
            row, chunk = x + eighth, split(k, self.width)[0]
        else:
            row, chunk = k + eighth, split(x, self.width)[0]
        operands = [self.memory, kernel.at(self.offset(slot, row, chunk))]
        type_ = mlir.VectorType.get([4, self.width // 4], self.type)
        attributes = {"numTiles": emit.i32(4), "transpose": mlir.BoolAttr.get(not self.along)}
        found = emit.create("nvgpu.ldmatrix", operands, [type_], attributes).results[0]
        register = mlir.VectorType.get([self.width // 4], self.type)
        return [
            emit.value("vector.extract", [found], register, static_position=mlir.DenseI64ArrayAttr.get([n]))
            for n in range(4)
        ]

    def scattered(self, slot: Form, across: Form, depth: Form, steps: Sequence[tuple[int, int]]) -> list[mlir.Value]:
        """The same for 32-bit elements of a panel across the depth, which `ldmatrix` does not transpose."""
        kernel = self.kernel
        found = []
        for dx, dk in steps:
            chunk, within = split(across + 8 * dx, self.width)
            offset = self.offset(slot, depth + self.width * dk, chunk, within)
            value = kernel.read(self.memory, offset)
            found.append(emit.value("vector.from_elements", [value], mlir.VectorType.get([1], self.type)))
        return found


def is_direct(host: Host, product: Product, side: int, width: int) -> bool:
    """True if each chunk of a panel, of `width` elements of a factor, is contiguous in memory."""
    across, depth = product.size((product.rows, product.columns)[side]), product.size(product.depth)
    along = product.last_loop(side) in product.depth
    if (depth if along else across) % width:
        return False
    batch, x, k = (
        form(Digit(Base(name, size)))
        for name, size in (
            ("batch", product.size(product.batch)),
            ("x", across if along else across // width),
            ("k", depth // width if along else depth),
        )
    )
    x, k = (x, k * width) if along else (x * width, k)
    ways = [(0, lane) if along else (lane, 0) for lane in (0, 1)]
    first, second = (source_of(host, product, side, batch, x + dx, k + dk) for dx, dk in ways)
    return (
        first is not None
        and second is not None
        and first[1].is_multiple_of(width)
        and second == (first[0], first[1] + 1)
    )


def source_of(
    host: Host, product: Product, side: int, batch: Form, across: Form, depth: Form
) -> tuple[mlir.Value, Form] | None:
    """The memory that contains an element of a factor, and its offset."""
    row, column = (across, Form()) if side == 0 else (Form(), across)
    operand = product.sides[side].operand
    point = product.point(batch, row, column, depth)
    return memory_of(host, product.op.operands[operand], apply(indexing_maps(product.op)[operand], point))


def token() -> mlir.Type:
    """The type of the result of asynchronous copies."""
    return mlir.Type.parse("!nvgpu.device.async.token")


def memory_of(host: Host, tensor: mlir.Value, indices: Indices) -> tuple[mlir.Value, Form] | None:
    """The tensor in memory that has an element unchanged, and its offset there; None if it is computed."""
    while tensor not in host.buffers:
        op = defining_op(tensor)
        if op is None:
            return None
        shape = tensor.type.shape
        if op.name == "tensor.expand_shape":
            indices = tuple(flat([indices[d] for d in group], [shape[d] for d in group]) for group in groups_of(op))
        elif op.name == "tensor.collapse_shape":
            inner = op.operands[0].type.shape
            parts: list[Form] = []
            for group, index in zip(groups_of(op), indices, strict=True):
                parts += cut_up(index, [inner[d] for d in group])
            indices = tuple(parts)
        elif is_transposition(op):
            dims = [dim for dim in dims_at(op, 0, indices) if dim is not None]
            indices = apply(indexing_maps(op)[0], dims)
        else:
            return None
        tensor = op.operands[0]
    return tensor, flat(indices, tensor.type.shape)


def is_transposition(op: mlir.Operation) -> bool:
    """True if a structured operation only permutes the elements of its operand."""
    if not is_structured(op) or len(op.operands) != 2 or not is_tensor(op.operands[0]):
        return False
    block = op.regions[0].blocks[0]
    ops = block_ops(block)
    maps = indexing_maps(op)
    dims = all(isinstance(e, mlir.AffineDimExpr) for map_ in maps for e in map_.results)
    return len(ops) == 1 and ops[0].operands[0] == block.arguments[0] and dims and maps[1].is_permutation
