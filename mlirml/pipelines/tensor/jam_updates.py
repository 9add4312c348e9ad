"""Jam updates: iterations that update all of a matrix by a row and a column of it go through it several at a time.

Before:
    %r = scf.for %k = %c0 to %c200 step %c1 iter_args(%p = %p0) -> (tensor<200x200xi32>) {
      %column = tensor.extract_slice %p[0, %k] [200, 1] [1, 1] : tensor<200x200xi32> to tensor<200xi32>
      %row = tensor.extract_slice %p[%k, 0] [1, 200] [1, 1] : tensor<200x200xi32> to tensor<200xi32>
      %new = linalg.generic {maps = [(i, j) -> (i), (i, j) -> (j), (i, j) -> (i, j), ...]} ins(%column, %row, %p) {
        min(%p_ij, %column_i + %row_j)
      }
      scf.yield %new
    }
After:
    %r = scf.for %k = %c0 to %c200 step %c4 iter_args(%p = %p0) -> (tensor<200x200xi32>) {
      %column0, %row0 = ...                   // of %p at %k
      %column1, %row1 = ...                   // of %p at %k + 1, updated by %column0 and %row0
      ...                                     // %column2 is updated twice, %column3 three times
      %new = linalg.generic ... ins(%p, %column0, %row0, ..., %column3, %row3) {
        /* the update by %column0 and %row0, of which that by %column1 and %row1, ... */
      }
      scf.yield %new
    }

A matrix that is larger than the first-level cache is read and written once for `factor` iterations. The rows and
columns of the matrices between them take a small part of the time. All-pairs shortest paths, transitive closures and
sums of outer products are such loops. This is blocking of a loop nest along its outermost loop (Venkataraman, Sahni and
Mukhopadhyaya, A blocked all-pairs shortest-paths algorithm, Journal of Experimental Algorithmics 8, 2003), for any
update of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.trip_counts import trip_count
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, replace_op
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST
from mlirml.pipelines.tensor.jam_loops import bytes_of

_SLICES = ("tensor.collapse_shape", "tensor.empty", "tensor.extract_slice")
_FEWEST = 32
"""Rows and columns of a matrix, of which few are then computed apart."""


@register(when=LOOP_OR_REQUEST, optional=True)
class JamUpdatesPass(Pass):
    """Join `factor` updates of matrices of at least `least` bytes, of at most `longest` operations an element."""

    factor: int = 4
    least: int = 1 << 15
    longest: int = 12

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                build(match(loop, self), self.factor)


@dataclass(frozen=True)
class Update:
    """A loop that updates a matrix by `op`. For each input of it the dimension along which the input is one row or
    column of the matrix; -1 for the matrix, and None for others, which have one element.
    """

    loop: mlir.Operation
    op: mlir.Operation
    along: tuple[int | None, ...]


def match(loop: mlir.Operation, options: JamUpdatesPass) -> Update:
    """Read a loop; raises `NoMatch`."""
    count = trip_count(loop)
    if len(loop.results) != 1 or count is None or count < options.factor or constant_of(loop.operands[2]) != 1:
        raise NoMatch("not a loop of many iterations over one matrix")
    block = loop.regions[0].blocks[0]
    number, matrix = block.arguments
    *ops, end = block_ops(block)
    if not ops:
        raise NoMatch("nothing but a yield")
    *others, op = ops
    kind = loop.results[0].type
    if op.name != "linalg.generic" or len(op.results) != 1 or end.operands[0] != op.results[0]:
        raise NoMatch("no structured operation at the end")
    if bytes_of(kind) < options.least or len(kind.shape) != 2 or min(kind.shape) < _FEWEST:
        raise NoMatch("no large matrix")
    *inputs, _ = op.operands
    body = op.regions[0].blocks[0]
    inner = block_ops(body)
    if len(inner) > options.longest or any(x.name == "linalg.index" or x.regions for x in inner):
        raise NoMatch("a long body, or one that depends on indices")
    if "reduction" in str(op.attributes["iterator_types"]) or any(True for _ in body.arguments[-1].uses):
        raise NoMatch("no update of elements")
    maps = indexing_maps(op)
    along = tuple(_along(value, m, matrix, number) for value, m in zip(inputs, maps))
    if not _is_whole(maps[-1]) or along.count(-1) != 1 or {0, 1}.isdisjoint(along):
        raise NoMatch("the matrix is not updated by rows or columns of it")
    if any(x.name not in _SLICES for x in others):
        raise NoMatch("other operations")
    return Update(loop, op, along)


def _along(value: mlir.Value, access: mlir.AffineMap, matrix: mlir.Value, number: mlir.Value) -> int | None:
    """The dimension along which an input has one index of the matrix, that of the iteration; see `Update.along`."""
    if value == matrix:
        if not _is_whole(access):
            raise NoMatch("the matrix is read transposed")
        return -1
    op = defining_op(value)
    if op is not None and op.name == "tensor.collapse_shape":
        op = defining_op(op.operands[0])
    if op is None or op.parent.operation != matrix.owner.owner.operation:
        if access.results:
            raise NoMatch("another array")
        return None
    if op.name != "tensor.extract_slice" or op.operands[0] != matrix or len(access.results) != 1:
        raise NoMatch("no row or column of the matrix")
    kept: int = mlir.AffineDimExpr(access.results[0]).position
    shape, offsets = list(matrix.type.shape), slice_offsets(op)
    expected = [shape[d] if d == kept else 1 for d in range(2)]
    if list(op.attributes["static_sizes"]) != expected or set(op.attributes["static_strides"]) != {1}:
        raise NoMatch("a part of a row or column")
    if offsets[kept] != 0 or isinstance(offsets[1 - kept], int) or offsets[1 - kept] != number:
        raise NoMatch("another row or column than that of the iteration")
    return 1 - kept


def _is_whole(access: mlir.AffineMap) -> bool:
    return str(access) == "(d0, d1) -> (d0, d1)" or str(access) == "affine_map<(d0, d1) -> (d0, d1)>"


Lines = dict[int, mlir.Value]
"""The row (0) and the column (1) by which a matrix is updated."""


def build(update: Update, factor: int) -> None:
    """Replace a loop by one over `factor` iterations at once, and one over those that are left."""
    loop = update.loop
    lower, upper = (constant_of(value) for value in list(loop.operands)[:2])
    assert lower is not None and upper is not None
    middle = lower + (upper - lower) // factor * factor
    block = loop.regions[0].blocks[0]
    *body, end = block_ops(block)

    def one(number: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip(block.arguments, [number, *carried], strict=True))
        for op in body:
            clone_with(op, values)
        return [values[end.operands[0]]]

    with loop.location, mlir.InsertionPoint(loop):
        bounds = [emit.index(number) for number in (lower, middle, upper)]
        step = emit.index(factor)
        found = emit.for_loop(
            bounds[0], bounds[1], step, lambda k, x: [_several(update, k, x[0], factor)], [loop.operands[3]]
        )
        if middle < upper:
            found = emit.for_loop(bounds[1], bounds[2], emit.index(1), one, found)
    replace_op(loop, found[0])


def _several(update: Update, first: mlir.Value, matrix: mlir.Value, factor: int) -> mlir.Value:
    """The matrix after `factor` iterations from `first` on."""
    done: list[Lines] = []
    for step in range(factor):
        number = first if not step else emit.same_type("arith.addi", first, emit.index(step))
        lines: Lines = {dim: _line(matrix, dim, number) for dim in (0, 1) if dim in update.along}
        for before in done:
            lines = {dim: _updated(update, line, dim, number, before) for dim, line in lines.items()}
        done.append(lines)
    inputs, maps = [matrix], [_map(0, 1)]
    for lines in done:
        for value, dim in _inputs(update):
            if dim != -1:
                inputs.append(value if dim is None else lines[dim])
                maps.append(_map() if dim is None else _map(1 - dim))
    each = len(update.along) - 1

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        element = arguments[0]
        for step in range(factor):
            given = iter(arguments[1 + step * each :])
            values = [element if dim == -1 else next(given) for dim in update.along]
            element = emit.body_again(update.op.regions[0].blocks[0], [*values, arguments[-1]])[0]
        return [element]

    out = emit.empty(matrix.type)
    return emit.generic(inputs, [out], [*maps, _map(0, 1)], ["parallel"] * 2, body).results[0]


def _inputs(update: Update) -> Sequence[tuple[mlir.Value, int | None]]:
    return list(zip(update.op.operands, update.along))


def _line(matrix: mlir.Value, dim: int, number: mlir.Value) -> mlir.Value:
    """A row of a matrix (`dim` 0), or a column (1)."""
    size = matrix.type.shape[1 - dim]
    offsets, sizes = ([number, 0], [1, size]) if dim == 0 else ([0, number], [size, 1])
    return emit.extract_slice(matrix, offsets, sizes, [size])


def _updated(update: Update, line: mlir.Value, dim: int, number: mlir.Value, by: Lines) -> mlir.Value:
    """The row or column `number` of a matrix after an update by other rows and columns of it."""
    whole, one = mlir.AffineMap.get_identity(1), mlir.AffineMap.get(1, 0, [])
    inputs, maps = [], []
    for value, across in _inputs(update):
        if across == -1:
            value = line
        elif across == dim:
            value = by[dim]
        elif across is not None:
            value = emit.value("tensor.extract", [by[across], number], line.type.element_type)
            value = emit.value("tensor.from_elements", [value], mlir.RankedTensorType.get([], line.type.element_type))
        inputs.append(value)
        maps.append(whole if across in (-1, dim) else one)
    source = update.op.regions[0].blocks[0]
    out = emit.empty(line.type)
    found = emit.generic(inputs, [out], [*maps, whole], ["parallel"], lambda xs: emit.body_again(source, xs))
    return found.results[0]


def _map(*dims: int) -> mlir.AffineMap:
    return mlir.AffineMap.get(2, 0, [mlir.AffineDimExpr.get(d) for d in dims])
