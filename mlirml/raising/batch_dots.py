"""Batch dots: dot products of rows in loops become one matrix product before the loops.

Before:
    %r = scf.for %i = %c0 to %c64 step %c1 iter_args(...) {
      %m = scf.for %j = %c0 to %c64 step %c1 iter_args(...) {
        %q = tensor.extract_slice %Q[%i, 0] [1, 32] [1, 1] : tensor<64x32xf64> to tensor<32xf64>
        %k = tensor.extract_slice %K[%j, 0] [1, 32] [1, 1] : tensor<64x32xf64> to tensor<32xf64>
        %d = linalg.dot ins(%q, %k) outs(%zero) -> tensor<f64>
        %s = tensor.extract %d[] : tensor<f64>
After:
    %all = linalg.contract indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (j, k), (i, j, k) -> (i, j)]
      ins(%Q, %K) outs(%zeros) -> tensor<64x64xf64>
    %r = scf.for %i = %c0 to %c64 step %c1 iter_args(...) {
      %m = scf.for %j = %c0 to %c64 step %c1 iter_args(...) {
        %s = tensor.extract %all[%i, %j] : tensor<64x64xf64>

The arrays must be defined before the loops. Equal products of several loops are computed once: so are the scores of
attention, which plain loops compute for the maximum, for the sum of the weights, and for the weighted sum. A dot in an
`scf.if` is batched only if it is one of several that are equal: it is then computed for all iterations. The condition
is marked with the branch that is worth running unconditionally, which mlirml-convert-ifs reads.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, named_operations
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.find_loops import loop_functions
from mlirml.raising.nests.remarks import remark

TAKEN = "mlirml.taken"
"""The attribute of an `scf.if` with the branch that is worth running unconditionally."""
BATCHED = "mlirml.batched"
"""The attribute of a loop whose dot products are computed before it, until mlirml-expand-rows has run."""
_MOST_ELEMENTS = 1 << 19
"""More dot products than these would be evicted from the second-level cache before the loops read them."""


@register(when=ANY_LOOP, optional=True)
class BatchDotsPass(Pass):
    """Compute dot products of rows in loops as matrix products before the loops."""

    def run(self, module: mlir.Operation) -> None:
        changed = False
        for function in loop_functions(module):
            found: list[tuple[mlir.Operation, Dots]] = []
            for op in named_operations(function, ("linalg.dot",)):
                with suppress(NoMatch):
                    found.append((op, match_dots(op)))
            counts = Counter(dots.key for _, dots in found)
            for op, dots in found:
                if dots.ifs and counts[dots.key] < 2:
                    continue
                with op.location:
                    build_dots(op, dots)
                changed = True
        if changed:
            run_upstream(module, "canonicalize,cse")


@dataclass(frozen=True)
class Row:
    """A row of an array: for each leading dimension, the loop that indexes it (by its number) or an invariant index."""

    array: mlir.Value
    places: tuple[int | mlir.Value, ...]
    counted: tuple[bool, ...]
    start: int
    length: int

    @property
    def loops(self) -> list[int]:
        """The loops that index rows."""
        return [place for place, counted in zip(self.places, self.counted) if counted and isinstance(place, int)]


@dataclass(frozen=True)
class Dots:
    """The products of two rows in `loops`, the outermost first; `ifs` are the conditionals between them."""

    rows: tuple[Row, Row]
    loops: tuple[mlir.Operation, ...]
    ifs: tuple[tuple[mlir.Operation, int], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Trip counts."""
        return tuple(_trips(loop) for loop in self.loops)

    @property
    def used(self) -> list[int]:
        """The loops that index rows of an array, the outermost first."""
        return sorted({loop for row in self.rows for loop in row.loops})

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for equal products."""
        return (self.rows, self.sizes, self.loops[0].block, len(self.loops))


def match_dots(op: mlir.Operation) -> Dots:
    """The dot products of as many loops around `op` as can be batched; raises `NoMatch`."""
    if not _is_zero(op.operands[2]):
        raise NoMatch("it does not start from zero")
    loops: list[mlir.Operation] = []
    ifs: list[tuple[mlir.Operation, int]] = []
    best: Dots | None = None
    inner = op
    while (outer := inner.parent.operation).name in ("scf.for", "scf.if"):
        if outer.name == "scf.if":
            ifs.append((outer, 0 if inner.block == outer.regions[0].blocks[0] else 1))
        else:
            if _trips(outer) < 1:
                break
            loops.insert(0, outer)
            with suppress(NoMatch):
                best = _match_in(op, loops, ifs)
        inner = outer
    if best is None:
        raise NoMatch("no loop counts its rows")
    return best


def _match_in(op: mlir.Operation, loops: list[mlir.Operation], ifs: list[tuple[mlir.Operation, int]]) -> Dots:
    dots = Dots((_row(op.operands[0], loops), _row(op.operands[1], loops)), tuple(loops), tuple(ifs))
    first, second = (set(row.loops) for row in dots.rows)
    if first == second:
        raise NoMatch("no row is one of several products")
    if any(len(row.loops) != len(set(row.loops)) for row in dots.rows):
        raise NoMatch("a diagonal")
    if math.prod(dots.sizes[loop] for loop in dots.used) > _MOST_ELEMENTS:
        raise NoMatch("too many products")
    return dots


def _row(value: mlir.Value, loops: list[mlir.Operation]) -> Row:
    """A slice along the last dimension of an array; an array of one dimension is a row itself."""
    op, kind = defining_op(value), mlir.ShapedType(value.type)
    if not kind.has_static_shape or len(kind.shape) != 1:
        raise NoMatch("no row of static length")
    if op is None or op.name != "tensor.extract_slice":
        if is_inside(value, loops[0]):
            raise NoMatch("the row is computed in the loops")
        return Row(value, (), (), 0, kind.shape[0])
    array, sizes = op.operands[0], list(op.attributes["static_sizes"])
    shape = list(mlir.ShapedType(array.type).shape)
    if is_inside(array, loops[0]) or any(stride != 1 for stride in op.attributes["static_strides"]):
        raise NoMatch("the array is stored to in the loops, or has steps")
    if (
        not mlir.ShapedType(array.type).has_static_shape
        or any(s != 1 for s in sizes[:-1])
        or sizes[-1] != kind.shape[0]
    ):
        raise NoMatch("the slice is no row")
    *front, start = slice_offsets(op)
    if not isinstance(start, int):
        raise NoMatch("the row starts at an index that is computed")
    variables = [loop.regions[0].blocks[0].arguments[0] for loop in loops]
    places: list[int | mlir.Value] = []
    counted: list[bool] = []
    for offset, size in zip(front, shape):
        number = next((n for n, v in enumerate(variables) if isinstance(offset, mlir.Value) and v == offset), None)
        if number is not None and _trips(loops[number]) > size:
            raise NoMatch("a loop leaves the array")
        if number is None and isinstance(offset, mlir.Value) and is_inside(offset, loops[0]):
            raise NoMatch("an index is computed in the loops")
        places.append(offset if number is None else number)
        counted.append(number is not None)
    return Row(array, tuple(places), tuple(counted), start, kind.shape[0])


def _trips(loop: mlir.Operation) -> int:
    """The trip count of a loop from zero with step one; zero for other loops."""
    lower, upper, step = (constant_of(bound) for bound in list(loop.operands)[:3])
    return upper if upper is not None and (lower, step) == (0, 1) else 0


def is_inside(value: mlir.Value, loop: mlir.Operation) -> bool:
    """True if a value is defined in a loop."""
    op = defining_op(value)
    around = op.parent if op is not None else value.owner.owner
    while around is not None and around.name not in ("func.func", "builtin.module"):
        if around.operation == loop:
            return True
        around = around.operation.parent
    return False


def _is_zero(value: mlir.Value) -> bool:
    """True if a tensor of rank 0 is the constant zero."""
    op = defining_op(value)
    if op is not None and op.name in ("tensor.from_elements", "linalg.fill"):
        return _is_zero(op.operands[0])
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr):
        attribute = attribute.get_splat_value()
    return attribute.value == 0 if isinstance(attribute, mlir.FloatAttr | mlir.IntegerAttr) else False


def build_dots(op: mlir.Operation, dots: Dots) -> None:
    """Build the product before the loops, and replace `op` by an element of it."""
    used, element = dots.used, mlir.ShapedType(op.results[0].type).element_type
    sum_loop = len(used)
    with mlir.InsertionPoint(dots.loops[0]):
        operands, maps = [], []
        for row in dots.rows:
            operands.append(_rows(row, dots))
            maps.append([*(used.index(loop) for loop in row.loops), sum_loop])
        kind = mlir.RankedTensorType.get([dots.sizes[loop] for loop in used], element)
        zeros = emit.fill(emit.number(element, 0), emit.empty(kind)).results[0]
        maps.append(list(range(len(used))))
        dims = [mlir.AffineMap.get(sum_loop + 1, 0, [mlir.AffineDimExpr.get(d) for d in m]) for m in maps]
        body = op.regions[0].blocks[0]
        product = emit.contract([*operands, zeros], dims, lambda xs: emit.body_again(body, xs)[0])
    with mlir.InsertionPoint(op):
        at = [dots.loops[loop].regions[0].blocks[0].arguments[0] for loop in used]
        number = emit.value("tensor.extract", [product, *at], element)
        op.results[0].replace_all_uses_with(emit.value("tensor.from_elements", [number], op.results[0].type))
    dots.loops[0].attributes[BATCHED] = mlir.UnitAttr.get(op.context)
    for conditional, branch in dots.ifs:
        conditional.attributes[TAKEN] = emit.i64(branch)
    remark(op, "the dot products of its loops are one product before them", "raised")
    op.erase()


def _rows(row: Row, dots: Dots) -> mlir.Value:
    """All rows of an array that the loops index."""
    shape = list(mlir.ShapedType(row.array.type).shape)
    offsets = [0 if counted else place for place, counted in zip(row.places, row.counted)] + [row.start]
    sizes = [
        dots.sizes[place] if counted and isinstance(place, int) else 1
        for place, counted in zip(row.places, row.counted)
    ] + [row.length]
    if sizes == shape and all(row.counted):
        return row.array
    kept = [size for size, counted in zip(sizes, (*row.counted, True)) if counted]
    return emit.extract_slice(row.array, offsets, sizes, kept)
