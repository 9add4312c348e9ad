"""Tile rows: a loop over columns, whose operations work on all rows, is tiled by rows outside of the column loop.

Before:
    scf.for %j = %c1 to %c300 step %c1 {
      %a = memref.subview %x[0, %j] [4096, 1] [1, 1] : memref<4096x300xf64> to memref<4096xf64, ...>
      %b = memref.subview %y[0, %j - 1] [4096, 1] [1, 1] : memref<4096x300xf64> to memref<4096xf64, ...>
      %c = memref.subview %y[0, %j] [4096, 1] [1, 1] : memref<4096x300xf64> to memref<4096xf64, ...>
      linalg.generic {... ["parallel"]} ins(%a, %b) outs(%c) {...}
    }
After:
    scf.for %r = %c0 to %c4096 step %c64 {
      scf.for %j = %c1 to %c300 step %c1 {
        %a = memref.subview %x[%r, %j] [64, 1] [1, 1] : memref<4096x300xf64> to memref<64xf64, ...>
        ...
        linalg.generic {... ["parallel"]} ins(%a, %b) outs(%c) {...}
      }
    } {mlirml.parallel}

A column has one element in each cache line: the lines of all rows are loaded for each column, unless the rows are so
few that their lines stay in cache. Rows are independent if each operation stores to its own row, and reads no other row
of an array that the loop writes: then the tiles may run in parallel, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.cost import bytes_of, element_bytes
from mlirml.analysis.dimensions import slice_numbers
from mlirml.analysis.memory import buffer_of, is_known, written_by
from mlirml.analysis.structured import is_parallel
from mlirml.analysis.trip_counts import trip_count
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, main_function, mlir, named_operations, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP
from mlirml.pipelines.memref.prove_parallel import INDEPENDENT
from mlirml.targets.machine import Processor

_LINE = 64
_L1_BYTES = 16 << 10
"""The maximum size of the lines that one iteration of a tile accesses: they stay in the first-level cache."""
_LANES = 8
"""The vector length of operations whose rows have one element."""
_FEWEST_COLUMNS = 8
_PURE = ("arith.", "math.")
_DYNAMIC = mlir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class Rows:
    """The rows of an operand: row `r` is index `offset + r` of dimension `dim` of `source`.

    `operand_dim` is that dimension of the operand, a view of the source or the source itself.
    """

    operand: mlir.Value
    operand_dim: int
    source: mlir.Value
    dim: int
    offset: int


@dataclass(frozen=True)
class ColumnLoop:
    """A loop whose operations work on `count` rows each; the rows of `columns` are in cache lines of their own."""

    loop: mlir.Operation
    count: int
    rows: dict[mlir.Value, Rows]
    columns: tuple[Rows, ...]


@register(when=PROGRAM_LOOP, optional=True)
class TileRowsPass(Pass):
    """Tile loops over columns for the second-level cache, if the lines of one column exceed `least_bytes`."""

    processor: Processor = Processor()
    least_bytes: int = _L1_BYTES

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(main_function(module), ("scf.for",)):
            try:
                columns = match_column_loop(loop)
                tile = plan_tile(columns, self.processor.l2_bytes, self.least_bytes)
            except NoMatch:
                continue
            build_tiles(columns, tile)


def match_column_loop(loop: mlir.Operation) -> ColumnLoop:
    """Match a loop of operations on independent rows."""
    if loop.results:
        raise NoMatch("it carries values")
    count = trip_count(loop)
    if count is not None and count < _FEWEST_COLUMNS:
        raise NoMatch("it has few columns")
    block = loop.regions[0].blocks[0]
    ops = block_ops(block)[:-1]
    works = [op for op in ops if op.name in ("linalg.generic", "linalg.fill")]
    if not works:
        raise NoMatch("nothing works on rows")
    for op in ops:
        if op not in works and not is_harmless(op):
            raise NoMatch(f"`{op.name}` is in it")
    rows: dict[mlir.Value, Rows] = {}
    plain: list[mlir.Value] = []
    written: list[mlir.Value] = []
    counts: set[int] = set()
    for op in works:
        written += written_by(op)
        for operand, dim in row_dims(op):
            if dim is None:
                plain.append(operand)
                continue
            found = rows_of(operand, dim, block)
            if rows.setdefault(operand, found) != found:
                raise NoMatch("an operand is used in two ways")
            counts.add(operand.type.shape[dim])
    if len(counts) != 1:
        raise NoMatch("not all operations have the same rows")
    loads = [op.operands[0] for op in ops if op.name == "memref.load"]
    sources = {op.operands[0] for op in ops if op.name == "memref.subview"}
    if any(operand in plain or operand in loads or operand in sources for operand in rows):
        raise NoMatch("an operand is used in two ways")
    check_apart(rows, [*plain, *loads], written)
    columns = {found.source: found for found in rows.values() if is_column(found, block)}
    return ColumnLoop(loop, counts.pop(), rows, tuple(columns.values()))


def is_harmless(op: mlir.Operation) -> bool:
    """True for operations on scalars, views, and buffers that the loop fills in each iteration."""
    if op.name == "memref.alloc":
        users = (use.owner.operation for use in op.results[0].uses)
        return all(user.name.startswith("linalg.") or is_cell_store(user) for user in users)
    if op.name == "memref.store":
        return is_cell_store(op)
    return op.name in ("memref.subview", "memref.load") or (op.name.startswith(_PURE) and not op.regions)


def is_cell_store(op: mlir.Operation) -> bool:
    """True for the store of a scalar to a buffer of one element that is allocated for it."""
    if op.name != "memref.store" or op.operands[1].type.rank:
        return False
    maker = defining_op(op.operands[1])
    return maker is not None and maker.name == "memref.alloc" and maker.block == op.block


def row_dims(op: mlir.Operation) -> list[tuple[mlir.Value, int | None]]:
    """The memref operands of an operation, with the dimension that its outermost loop iterates over."""
    if op.name == "linalg.fill":
        if not op.operands[1].type.rank:
            raise NoMatch("no rows")
        return [(op.operands[1], 0)]
    if not is_parallel(op):
        raise NoMatch("a reduction")
    if any(not inner.name.startswith((*_PURE, "linalg.yield")) for inner in list(operations(op))[1:]):
        raise NoMatch("a body that needs its indices, or loads elements")
    found: list[tuple[mlir.Value, int | None]] = []
    outs = written_by(op)
    for operand, attribute in zip(op.operands, mlir.ArrayAttr(op.attributes["indexing_maps"]), strict=True):
        if not isinstance(operand.type, mlir.MemRefType):
            continue
        results = list(mlir.AffineMapAttr(attribute).value.results)
        if not all(isinstance(result, mlir.AffineDimExpr) for result in results):
            raise NoMatch("an index that is no loop")
        dims = [position for position, result in enumerate(results) if mlir.AffineDimExpr(result).position == 0]
        if len(dims) > 1 or (operand in outs and not dims):
            raise NoMatch("an operand does not have the rows as one dimension")
        found.append((operand, dims[0] if dims else None))
    return found


def rows_of(operand: mlir.Value, dim: int, block: mlir.Block) -> Rows:
    """The rows of an operand of the loop body, along its dimension `dim`."""
    kind = operand.type
    if not kind.has_static_shape or kind.shape[dim] < 2:
        raise NoMatch("rows that are not known, or one")
    view = defining_op(operand)
    if view is None or view.block != block:
        return Rows(operand, dim, operand, dim, 0)
    if view.name == "memref.alloc":
        return Rows(operand, dim, operand, dim, 0)
    if view.name != "memref.subview":
        raise NoMatch("an operand that is no view")
    source = view.operands[0]
    maker = defining_op(source)
    if maker is not None and maker.block == block:
        raise NoMatch("a view of what the loop makes")
    offsets, sizes, steps = slice_numbers(view)
    if _DYNAMIC in sizes:
        raise NoMatch("a view of dynamic sizes")
    before = sum(size != 1 for size in kind.shape[:dim])
    source_dim = [position for position, size in enumerate(sizes) if size != 1][before]
    if offsets[source_dim] == _DYNAMIC or steps[source_dim] != 1:
        raise NoMatch("rows that move, or are not neighbours")
    return Rows(operand, dim, source, source_dim, offsets[source_dim])


def check_apart(rows: dict[mlir.Value, Rows], others: Sequence[mlir.Value], written: Sequence[mlir.Value]) -> None:
    """Raise NoMatch if one row may access elements that another one stores."""
    buffers = {buffer_of(operand) for operand in (*rows, *others)}
    if not all(map(is_known, buffers)):
        raise NoMatch("a buffer that may be another one")
    stored = {buffer_of(operand): rows[operand] for operand in written}
    if any(buffer_of(operand) in stored for operand in others):
        raise NoMatch("all rows read an array that is written")
    for operand, found in rows.items():
        one = stored.get(buffer_of(operand), found)
        if (one.source, one.dim, one.offset) != (found.source, found.dim, found.offset):
            raise NoMatch("a row reads what another one stores")


def is_column(found: Rows, block: mlir.Block) -> bool:
    """True if the loop iterates along the cache lines of the rows."""
    view = defining_op(found.operand)
    if view is None or view.block != block or view.name != "memref.subview":
        return False
    if not found.source.type.has_static_shape:
        return False
    strides, _ = found.source.type.get_strides_and_offset()
    element = element_bytes(found.source.type.element_type)
    if _DYNAMIC in strides or strides[found.dim] * element < _LINE:
        return False
    offsets = list(view.attributes["static_offsets"])
    return any(offset == _DYNAMIC and stride * element < _LINE for offset, stride in zip(offsets, strides, strict=True))


def plan_tile(columns: ColumnLoop, l2_bytes: int, least_bytes: int) -> int:
    """The number of rows of a tile; raises NoMatch if tiling does not pay."""
    each = sum(math.prod(c.operand.type.shape) // columns.count for c in columns.columns) * _LINE
    if not each or each * columns.count <= least_bytes:
        raise NoMatch("the lines of all rows stay in the cache")
    whole = sum(bytes_of(c.source) // c.source.type.shape[c.dim] for c in columns.columns)
    most: int = min(least_bytes // each, l2_bytes // 2 // whole, columns.count // 2)
    if each > _LINE * _LANES * len(columns.columns):  # a row alone fills vectors
        most = max(most, 1)
        return max(tile for tile in range(1, most + 1) if columns.count % tile == 0)
    if most < _LANES:
        raise NoMatch("the lines of few rows do not stay, either")
    most -= most % _LANES
    for tile in range(most, most // 2, -_LANES):
        if columns.count % tile == 0:
            return tile
    return most


def build_tiles(columns: ColumnLoop, tile: int) -> None:
    """Replace a loop over columns by one over tiles of rows around it, and one for the remaining rows."""
    loop, count = columns.loop, columns.count
    whole = count - count % tile
    with loop.location, mlir.InsertionPoint(loop):
        emit.for_loop(
            emit.index(0), emit.index(whole), emit.index(tile), lambda row, _: build_columns(columns, row, tile)
        )
        *_, tiles = block_ops(mlir.InsertionPoint.current.block)[: block_ops(loop.block).index(loop)]
        tiles.attributes[INDEPENDENT] = mlir.UnitAttr.get()
        if whole < count:
            build_columns(columns, emit.index(whole), count - whole)
    loop.erase()


def build_columns(columns: ColumnLoop, first: mlir.Value, count: int) -> None:
    """The loop over columns for `count` rows from `first` on."""
    loop = columns.loop
    block = loop.regions[0].blocks[0]
    values: dict[mlir.Value, mlir.Value] = {}
    starts = {0: first}
    for found in columns.rows.values():
        if found.offset not in starts:
            starts[found.offset] = emit.same_type("arith.addi", first, emit.index(found.offset))
        maker = defining_op(found.operand)
        if maker is None or maker.block != block:
            values[found.operand] = whole_view(found, first, count)

    def body(column: mlir.Value, _: list[mlir.Value]) -> None:
        values[block.arguments[0]] = column
        for op in block_ops(block)[:-1]:
            with op.location:
                found = columns.rows.get(op.results[0]) if len(op.results) else None
                if found is None:
                    clone_with(op, values)
                elif op.name == "memref.alloc":
                    values[found.operand] = allocate(found, count)
                else:
                    values[found.operand] = rows_of_view(op, found, starts[found.offset], count, values)

    lower, upper, step = loop.operands
    emit.for_loop(lower, upper, step, body)


def whole_view(found: Rows, first: mlir.Value, count: int) -> mlir.Value:
    """Rows of an operand from outside of the loop."""
    sizes = list(found.operand.type.shape)
    sizes[found.dim] = count
    offsets: list[mlir.Value | int] = [0] * len(sizes)
    offsets[found.dim] = first
    return subview(found, found.operand, offsets, sizes, [1] * len(sizes))


def rows_of_view(
    view: mlir.Operation, found: Rows, start: mlir.Value, count: int, values: dict[mlir.Value, mlir.Value]
) -> mlir.Value:
    """Rows of a view that is taken in the loop."""
    offsets, sizes, steps = slice_numbers(view)
    given = iter([values.get(operand, operand) for operand in list(view.operands)[1:]])
    starts: list[mlir.Value | int] = [next(given) if offset == _DYNAMIC else offset for offset in offsets]
    starts[found.dim], sizes[found.dim] = start, count
    return subview(found, values.get(found.source, found.source), starts, sizes, steps)


def subview(
    found: Rows, source: mlir.Value, offsets: Sequence[mlir.Value | int], sizes: Sequence[int], steps: Sequence[int]
) -> mlir.Value:
    """A view with some rows of an operand's source."""
    kind = found.operand.type
    shape = list(kind.shape)
    shape[found.operand_dim] = sizes[found.dim]
    strides, _ = kind.get_strides_and_offset()
    layout = mlir.StridedLayoutAttr.get(_DYNAMIC, list(strides))
    result = mlir.MemRefType.get(shape, kind.element_type, layout)
    return emit.slice_op("memref.subview", [source], result, offsets, sizes, steps)


def allocate(found: Rows, count: int) -> mlir.Value:
    """A buffer for `count` rows."""
    shape = list(found.operand.type.shape)
    shape[found.dim] = count
    attributes = {"operandSegmentSizes": emit.segments(0, 0), "alignment": emit.i64(64)}
    memref_type = mlir.MemRefType.get(shape, found.operand.type.element_type)
    return emit.create("memref.alloc", (), [memref_type], attributes).results[0]
