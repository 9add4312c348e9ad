"""Move gathers: functions of the rows of a table are computed once for each row of it, not for each index.

Before:
    %rows = linalg.generic ... ins(%indices : tensor<32000xi64>) outs(%0) {
    ^bb0(%i: i64, %out: f64):
      %row = arith.index_cast %i : i64 to index
      %column = linalg.index 1 : index
      %x = tensor.extract %table[%row, %column] : tensor<49x11xf64>
      linalg.yield %x : f64
    } -> tensor<32000x11xf64>
    %angles = tensor.extract_slice %rows[0, 2] [32000, 1] [1, 1] : tensor<32000x11xf64> to tensor<32000xf64>
    %cosines = linalg.generic ... ins(%angles : tensor<32000xf64>) outs(%1) { math.cos } -> tensor<32000xf64>
After:
    %angles = tensor.extract_slice %table[0, 2] [49, 1] [1, 1] : tensor<49x11xf64> to tensor<49xf64>
    %new = linalg.generic ... ins(%angles : tensor<49xf64>) outs(%2) { math.cos } -> tensor<49xf64>
    %cosines = linalg.generic ... ins(%indices : tensor<32000xi64>) outs(%1) {
    ^bb0(%i: i64, %out: f64):
      %row = arith.index_cast %i : i64 to index
      %x = tensor.extract %new[%row] : tensor<49xf64>
      linalg.yield %x : f64
    } -> tensor<32000xf64>

f(table)[indices] for f(table[indices]), with the same numbers. Divisions and elementary functions are moved, with what
they are computed from; cheaper operations would only be further gathers. Slices are moved where nothing else is read of
the rows: whole rows need not be stored then. A row that no index has may give an infinity
or NaN that is never read: this is right for values, not for derivatives, and therefore done after these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

from mlirml.analysis.cost import is_costly
from mlirml.analysis.structured import dims_in, dims_of, index_dim, indexing_maps, is_parallel
from mlirml.analysis.traits import INTEGER_DIVISIONS
from mlirml.analysis.values import operands_of, walk
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import every

_SCALAR = ("arith.", "math.")
_LEAST = 4
"""The least number of indices for each row of a table."""
_FEWEST = 256
"""The least number of indices."""


@dataclass(frozen=True)
class Gather:
    """An operation that reads rows: `rows` of its table for `count` indices; `extract` is the read in its body."""

    op: mlir.Operation
    extract: mlir.Operation
    rows: int
    count: int


@register(when=every(("tensor.extract",), ("math.", "arith.divf")), optional=True)
class MoveGathersPass(Pass):
    """Compute costly functions of gathered rows before the gather."""

    def run(self, module: mlir.Operation) -> None:
        gathers: list[Gather] = []
        for op in named_operations(module, ("linalg.generic",)):
            with suppress(NoMatch):
                gathers.append(match_gather(op))
        for gather in gathers:
            with suppress(NoMatch):
                move(gather)


def match_gather(op: mlir.Operation) -> Gather:
    """A gather of rows; raises `NoMatch` for other operations."""
    if len(op.operands) != 2 or len(op.results) != 1 or not is_parallel(op):
        raise NoMatch("no gather")
    *inner, last = block_ops(op.regions[0].blocks[0])
    reads = [each for each in inner if each.name == "tensor.extract"]
    source, target = indexing_maps(op)
    if len(reads) != 1 or last.operands[0] != reads[0].results[0]:
        raise NoMatch("no gather")
    table, row, *others = reads[0].operands
    first = mlir.AffineMap.get(target.n_dims, 0, [mlir.AffineExpr.get_dim(0)])
    if source != first or target != mlir.AffineMap.get_identity(target.n_dims):
        raise NoMatch("its indices are no vector, or it transposes")
    if any(index_dim(value) is not None for value in walk(row, operands_of)):
        raise NoMatch("the row depends on the number of the index")
    if [index_dim(value) for value in others] != list(range(1, target.n_dims)):
        raise NoMatch("it reads rows in another order")
    read, found = table.type, op.results[0].type
    if not (read.has_static_shape and found.has_static_shape) or list(read.shape)[1:] != list(found.shape)[1:]:
        raise NoMatch("rows of dynamic lengths, or parts of them")
    if found.shape[0] < max(_FEWEST, _LEAST * read.shape[0]):
        raise NoMatch("most rows are read few times")
    return Gather(op, reads[0], read.shape[0], found.shape[0])


def move(gather: Gather) -> None:
    """Compute functions of the gathered rows from the table; raises `NoMatch` if none is costly."""
    moved = worth_moving(gather, functions_of(gather))
    if not moved:
        raise NoMatch("nothing costly is computed from rows")
    tables = {gather.op.results[0]: gather.extract.operands[0]}
    for op in moved:
        with op.location, mlir.InsertionPoint(op):
            new = sliced(op, tables, gather) if op.name == "tensor.extract_slice" else computed(op, tables, gather)
            tables |= zip(op.results, new, strict=True)
    for op in moved:
        with op.location, mlir.InsertionPoint(op):
            for result in op.results:
                if any(use.owner.operation not in moved for use in result.uses):
                    result.replace_all_uses_with(gathered(gather, tables[result], result.type))
    for op in reversed(moved):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()


def functions_of(gather: Gather) -> list[mlir.Operation]:
    """The operations of the block that compute rows from gathered rows alone, in their order."""
    ops = block_ops(gather.op.block)
    rows, found = {gather.op.results[0]}, []
    for op in ops[ops.index(gather.op) + 1 :]:
        if not rows.isdisjoint(op.operands) and (is_slice(op, gather) or is_function(op, rows, gather)):
            rows.update(op.results)
            found.append(op)
    return found


def is_slice(op: mlir.Operation, gather: Gather) -> bool:
    """True for a slice of the columns of all rows."""
    if op.name != "tensor.extract_slice" or len(op.operands) > 1:
        return False
    offsets, sizes, strides = (list(op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides"))
    whole = (offsets[0], sizes[0], strides[0]) == (0, gather.count, 1)
    return whole and bool(op.results[0].type.shape) and op.results[0].type.shape[0] == gather.count


def is_function(op: mlir.Operation, rows: Collection[mlir.Value], gather: Gather) -> bool:
    """True if each row of the results is computed from the same rows of the operands that are in `rows`."""
    if op.name != "linalg.generic" or not is_parallel(op) or not op.results:
        return False
    maps = indexing_maps(op)
    inputs = list(zip(op.operands, maps))[: len(maps) - len(op.results)]
    inits = list(op.operands)[len(inputs) :]
    if not all((owner := defining_op(init)) is not None and owner.name == "tensor.empty" for init in inits):
        return False
    if not all(_is_by_row(map_) for map_ in maps[len(inputs) :]):
        return False
    if not all(_is_by_row(map_) if value in rows else 0 not in dims_of(map_) for value, map_ in inputs):
        return False
    if any(init.type.shape[0] != gather.count for init in inits):
        return False
    body = block_ops(op.regions[0].blocks[0])[:-1]
    return all(each.name.startswith(_SCALAR) and not each.name.startswith(INTEGER_DIVISIONS) for each in body)


def _is_by_row(map_: mlir.AffineMap) -> bool:
    """True if the first index, and no other, is that of the first loop."""
    first, *others = map_.results
    return first == mlir.AffineExpr.get_dim(0) and not any(0 in dims_in(each) for each in others)


def worth_moving(gather: Gather, ops: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """The operations with divisions or elementary functions, and those of `ops` that these are computed from.

    With them the slices, if these are all that is read of the rows: what computes with columns gathers them itself.
    """
    users = {use.owner.operation for use in gather.op.results[0].uses}
    only_slices = all(is_slice(user, gather) for user in users)
    wanted: set[mlir.Value] = set()
    found: list[mlir.Operation] = []
    for op in reversed(ops):
        body = block_ops(op.regions[0].blocks[0]) if op.name == "linalg.generic" else ()
        if (only_slices and op in users) or any(map(is_costly, body)) or not wanted.isdisjoint(op.results):
            found.append(op)
            wanted.update(op.operands)
    return found[::-1]


def sliced(op: mlir.Operation, tables: Mapping[mlir.Value, mlir.Value], gather: Gather) -> list[mlir.Value]:
    """The slice of a table."""
    offsets, sizes, strides = (list(op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides"))
    shape = [gather.rows, *list(op.results[0].type.shape)[1:]]
    return [emit.extract_slice(tables[op.operands[0]], offsets, [gather.rows, *sizes[1:]], shape, strides)]


def computed(op: mlir.Operation, tables: Mapping[mlir.Value, mlir.Value], gather: Gather) -> list[mlir.Value]:
    """The results of an operation for the rows of tables."""
    maps, body = indexing_maps(op), op.regions[0].blocks[0]
    inputs = [tables.get(value, value) for value in list(op.operands)[: len(maps) - len(op.results)]]
    inits = [emit.empty(with_rows(result.type, gather.rows)) for result in op.results]
    new = emit.generic(inputs, inits, maps, ["parallel"] * maps[0].n_dims, partial(emit.body_again, body))
    return list(new.results)


def gathered(gather: Gather, table: mlir.Value, result_type: mlir.Type) -> mlir.Value:
    """The rows of a table for the indices of a gather."""
    inner = block_ops(gather.op.regions[0].blocks[0])

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        environment = dict(zip(gather.op.regions[0].blocks[0].arguments, arguments, strict=True))
        for op in inner:
            if not needed.isdisjoint(op.results):
                emit.body_op(op, environment)
        numbers = [emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(d)) for d in range(1, rank)]
        read = [table, environment.get(row, row), *numbers]
        return [emit.value("tensor.extract", read, result_type.element_type)]

    row, rank = gather.extract.operands[1], len(result_type.shape)
    needed = set(walk(row, operands_of))
    maps = [mlir.AffineMap.get(rank, 0, [mlir.AffineExpr.get_dim(0)]), mlir.AffineMap.get_identity(rank)]
    indices = gather.op.operands[0]
    return emit.generic([indices], [emit.empty(result_type)], maps, ["parallel"] * rank, body).results[0]


def with_rows(type_: mlir.Type, rows: int) -> mlir.RankedTensorType:
    """The type of a tensor with another number of rows."""
    return mlir.RankedTensorType.get([rows, *list(type_.shape)[1:]], type_.element_type)
