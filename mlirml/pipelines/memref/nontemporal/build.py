"""Stage rows in a buffer on the stack, and copy them from there with non-temporal stores."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.cpu.frame import flatten
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.pipelines.memref.nontemporal.match import LINE_BYTES, Stream, can_be_tiled, loops_around

TILE_BYTES = 1024
"""The size of a copy: the next tile is computed while the store buffers drain."""
STREAMS = "mlirml.streams"
"""Marks parallel loops with such stores: each chunk ends with a fence."""
_FENCE = "llvm.x86.sse.sfence"


@dataclass(frozen=True)
class _Tile:
    """Elements `first` to `end` of a row, which `loop` accesses as the last of the loops over the row.

    Relative to `origin`, which may be before the row, the tile starts at a line boundary and has at most `size`
    elements.
    """

    loop: mlir.Operation
    size: int
    origin: mlir.Value
    first: mlir.Value
    end: mlir.Value


def build_streams(streams: Sequence[Stream]) -> None:
    """Stage the rows of arrays that the same loops write."""
    around = loops_around(streams[0].loops[0])
    first, last = streams[0].loops[0], streams[0].loops[-1]
    if can_be_tiled(last) and max(stream.bytes for stream in streams) > TILE_BYTES:
        is_alone = first == last
        last, tile = cut(streams[0], tile_size(streams))
        first = last if is_alone else first
    else:
        with last.location, mlir.InsertionPoint(last):
            tile = _Tile(last, streams[0].size, emit.index(0), emit.index(0), emit.index(streams[0].size))
    for stream in streams:
        stage(stream, around[-1] if around else first, tile)
    fence_after(around[-1] if around else last)


def tile_size(streams: Sequence[Stream]) -> int:
    """The number of elements of a tile: whole lines of each array."""
    return TILE_BYTES // max(element_bytes(stream.array.type.element_type) for stream in streams)


def cut(stream: Stream, elements: int) -> tuple[mlir.Operation, _Tile]:
    """Tile the last loop over a row, with tiles that start at line boundaries of the stream."""
    loop = stream.loops[-1]
    block = loop.regions[0].blocks[0]
    size = element_bytes(stream.array.type.element_type)
    lanes = LINE_BYTES // size
    tiles: list[_Tile] = []

    def body(number: mlir.Value) -> None:
        zero, count = emit.index(0), emit.index(stream.size)
        tile = emit.same_type("arith.muli", number, emit.index(elements))
        row_address = address(flatten(stream.array), stream.start)
        misaligned = emit.same_type("arith.andi", elements_of(row_address, size), emit.index(lanes - 1))
        origin = emit.same_type("arith.subi", tile, misaligned)
        end = emit.same_type("arith.addi", origin, emit.index(elements))
        start, end = (emit.same_type("arith.minsi", bound, count) for bound in (origin, end))
        start = emit.same_type("arith.maxsi", start, zero)
        elements_loop = emit.create("scf.for", [start, end, emit.index(1)], regions=1)
        with mlir.InsertionPoint(emit.block(elements_loop, [mlir.IndexType.get()])):
            emit.create("scf.yield")
        tiles.append(_Tile(elements_loop, elements, origin, start, end))

    with loop.location, mlir.InsertionPoint(loop):
        count = emit.index(-(-(stream.size + lanes - 1) // elements))
        if loop.name == "scf.parallel":
            outer = emit.parallel_loop(emit.index(0), count, emit.index(1), body)
            grain = mlir.IntegerAttr(loop.attributes["mlirml.grain"]).value if "mlirml.grain" in loop.attributes else 1
            outer.attributes["mlirml.grain"] = emit.i64(math.ceil(grain / elements))
        else:
            emit.for_loop(emit.index(0), count, emit.index(1), lambda number, _: body(number))
            outer = tiles[0].loop.parent.operation
    target = tiles[0].loop.regions[0].blocks[0]
    block.arguments[0].replace_all_uses_with(target.arguments[0])
    (end,) = block_ops(target)
    for op in block_ops(block)[:-1]:
        op.move_before(end)
    loop.erase()
    return outer, tiles[0]


def stage(stream: Stream, outermost: mlir.Operation, tile: _Tile) -> None:
    """Redirect the accesses of a row to a buffer, and copy each tile after the loop that computes it."""
    element = stream.array.type.element_type
    is_alone = len(stream.loops) == 1
    size = tile.size if is_alone else stream.size
    with tile.loop.location:
        insertion = mlir.InsertionPoint(outermost)
        if outermost.name == "scf.parallel":  # each chunk has its own buffer
            insertion = mlir.InsertionPoint.at_block_begin(outermost.regions[0].blocks[0])
        with insertion:
            attributes = {"operandSegmentSizes": emit.segments(0, 0), "alignment": emit.i64(LINE_BYTES)}
            buffer = emit.create("memref.alloca", (), [mlir.MemRefType.get([size], element)], attributes).results[0]
            flat = flatten(stream.array)
        for access in stream.accesses:
            redirect(access, buffer, tile.origin if is_alone else None)
        with after(tile.loop):
            source = emit.same_type("arith.subi", tile.first, tile.origin) if is_alone else tile.first
            start = emit.same_type("arith.addi", index_of(stream.start), tile.first)
            copy_past_cache(buffer, source, flat, start, emit.same_type("arith.subi", tile.end, tile.first))


def after(op: mlir.Operation) -> mlir.InsertionPoint:
    """The insertion point right after an operation."""
    ops = block_ops(op.block)
    return mlir.InsertionPoint(ops[ops.index(op) + 1])


def redirect(access: mlir.Operation, buffer: mlir.Value, origin: mlir.Value | None) -> None:
    """Redirect an access to the buffer, whose first element is element `origin` of the row."""
    with access.location, mlir.InsertionPoint(access):
        index = access.block.arguments[0]
        if origin is not None:
            index = emit.same_type("arith.subi", index, origin)
        if access.name == "memref.load":
            value = emit.value("memref.load", [buffer, index], access.results[0].type)
            access.results[0].replace_all_uses_with(value)
        else:
            emit.create("memref.store", [access.operands[0], buffer, index])
    access.erase()


def index_of(element: Linear) -> mlir.Value:
    """The index of an element, as a value."""
    total = emit.index(element.constant)
    for value, factor in element.factors.items():
        total = emit.same_type("arith.addi", emit.same_type("arith.muli", value, emit.index(factor)), total)
    return total


def address(array: mlir.Value, element: Linear) -> mlir.Value:
    """The address of an element of a contiguous array."""
    shift = emit.index(element_bytes(array.type.element_type).bit_length() - 1)
    return address_of(array, emit.same_type("arith.shli", index_of(element), shift))


def address_of(array: mlir.Value, offset: mlir.Value) -> mlir.Value:
    base = emit.value("memref.extract_aligned_pointer_as_index", [array], mlir.IndexType.get())
    return emit.same_type("arith.addi", base, offset)


def elements_of(count: mlir.Value, size: int) -> mlir.Value:
    """The number of elements of `size` bytes in `count` bytes."""
    return emit.same_type("arith.shrui", count, emit.index(size.bit_length() - 1))


def whole_lines(address: mlir.Value, size: int, lower: mlir.Value, upper: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """Start and end of the whole lines among elements of `size` bytes, from `lower`, at an address, to `upper`."""
    misaligned = emit.same_type("arith.subi", emit.index(0), address)
    head = elements_of(emit.same_type("arith.andi", misaligned, emit.index(LINE_BYTES - 1)), size)
    start = emit.same_type("arith.minsi", emit.same_type("arith.addi", lower, head), upper)
    rest = emit.same_type("arith.subi", upper, start)
    lines = emit.same_type("arith.andi", rest, emit.index(-(LINE_BYTES // size)))
    return start, emit.same_type("arith.addi", start, lines)


def copy_past_cache(
    buffer: mlir.Value, source: mlir.Value, array: mlir.Value, start: mlir.Value, count: mlir.Value
) -> None:
    """Copy `count` elements from `source` to `start`: whole lines by non-temporal stores, the rest by plain ones."""
    element = buffer.type.element_type
    size = element_bytes(element)
    lanes = LINE_BYTES // size
    vector = mlir.VectorType.get([lanes], element)
    zero, shift = emit.index(0), emit.index(size.bit_length() - 1)
    target = address_of(array, emit.same_type("arith.shli", start, shift))
    head, end = whole_lines(target, size, zero, count)

    def source_index(i: mlir.Value) -> mlir.Value:
        return emit.same_type("arith.addi", source, i)

    def target_index(i: mlir.Value) -> mlir.Value:
        return emit.same_type("arith.addi", start, i)

    def partial_line(first: mlir.Value, end: mlir.Value) -> None:
        # Even an empty store loads its line, which a later non-temporal store would have to evict.
        condition = emit.compare("slt", first, end)
        with mlir.InsertionPoint(emit.block(emit.create("scf.if", [condition], regions=2), [])):
            mask_type = mlir.VectorType.get([lanes], mlir.IntegerType.get_signless(1))
            mask = emit.value("vector.create_mask", [emit.same_type("arith.subi", end, first)], mask_type)
            nothing = emit.constant(mlir.DenseElementsAttr.get_splat(vector, zero_attribute(element)))
            value = emit.value("vector.maskedload", [buffer, source_index(first), mask, nothing], vector)
            emit.create("vector.maskedstore", [array, target_index(first), mask, value])
            emit.create("scf.yield")

    def line(i: mlir.Value, _: list[mlir.Value]) -> None:
        value = emit.value("vector.load", [buffer, source_index(i)], vector)
        attributes = {"nontemporal": mlir.BoolAttr.get(True), "alignment": emit.i64(LINE_BYTES)}
        emit.create("vector.store", [value, array, target_index(i)], (), attributes)

    partial_line(zero, head)
    emit.for_loop(head, end, emit.index(lanes), line)
    partial_line(end, count)


def zero_attribute(element_type: mlir.Type) -> mlir.Attribute:
    if isinstance(element_type, mlir.FloatType):
        return mlir.FloatAttr.get(element_type, 0.0)
    return mlir.IntegerAttr.get(element_type, 0)


def fence_after(loop: mlir.Operation) -> None:
    """Emit a fence at the end of a loop, or of each chunk of a parallel one, which makes the stores visible."""
    with loop.location:
        if loop.name == "scf.parallel":
            loop.attributes[STREAMS] = mlir.UnitAttr.get()
            return
        with after(loop):
            fence()


def fence() -> None:
    """Wait for the non-temporal stores."""

    attributes = {
        "intrin": mlir.StringAttr.get(_FENCE),
        "operandSegmentSizes": emit.segments(0, 0),
        "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
    }
    emit.create("llvm.call_intrinsic", (), (), attributes)
