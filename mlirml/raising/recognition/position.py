"""Argmax: a loop that carries the largest element so far and its index, in the form that argmax kernels take.

Before:
    %r:2 = scf.for %i = %c1 to %c64 step %c1 iter_args(%m = %m0, %k = %k0) -> (f32, i64) {
      %x = tensor.extract %a[%row, %i]
      %better = arith.cmpf ogt, %x, %m
      %here = arith.index_cast %i
      yield select(%better, %x, %m), select(%better, %here, %k)
    }
After:
    %s = tensor.extract_slice %a[%row, 1] [1, 63] [1, 1]
    %g:2 = linalg.generic {["reduction"]} ins(%s) outs(%m0, -1) {
      yield select(x > m, x, m), select(x > m, linalg.index 0, k)
    }
    %k = select(%g#1 < 0, %k0, %g#1 + 1)

The first of equal elements is selected, as in NumPy. NaN elements are ignored, as by the comparison.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.reductions import argmaxes_of, extreme_of
from mlirml.analysis.structured import INDEX_CONVERSIONS
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, seen_through
from mlirml.passes import NoMatch


@dataclass(frozen=True)
class Position:
    """Carried value `value` is the extreme of `element` and `index_result` its index; the loop runs along `axis`."""

    value: int
    index_result: int
    element: mlir.Operation
    axis: int
    predicate: str
    first: int
    count: int

    @property
    def description(self) -> str:
        """The name of the operation in remarks."""
        return "argmax" if self.predicate.endswith("gt") else "argmin"


def match_position(loop: mlir.Operation) -> Position:
    """The argmax that a loop computes; raises `NoMatch` for other loops."""
    if len(loop.results) != 2:
        raise NoMatch("no two results")
    first, last, step = (constant_of(bound) for bound in list(loop.operands)[:3])
    if first is None or last is None or step is None:
        raise NoMatch("a bound is known at run time only")
    if step != 1 or last <= first:
        raise NoMatch("no loop over neighbours")
    block = loop.regions[0].blocks[0]
    *body, final = block_ops(block)
    variable, *carried = block.arguments
    found = next(argmaxes_of(final.operands, carried, lambda x: seen_through(x, INDEX_CONVERSIONS) == variable), None)
    combiner = None if found is None else extreme_of(found.better, found.term, carried[found.value])
    if found is None or combiner is None:
        raise NoMatch("no extreme and its index are carried")
    if combiner.is_float and not combiner.ignores_nan:
        raise NoMatch("NaN wins")
    element = defining_op(found.term)
    if element is None or element.name != "tensor.extract":
        raise NoMatch("no comparison of elements")
    source, *indices = element.operands
    axes = [axis for axis, index in enumerate(indices) if index == variable]
    inside = set(block.arguments) | {result for op in body for result in op.results}
    if len(axes) != 1 or any(v in inside for n, v in enumerate([source, *indices]) if n != axes[0] + 1):
        raise NoMatch("the loop does not index one dimension")
    if not mlir.ShapedType(source.type).has_static_shape:
        raise NoMatch("a size is known at run time only")
    if first < 0 or last > source.type.shape[axes[0]]:
        raise NoMatch("the loop reads outside of the array")
    return Position(found.value, found.index, element, axes[0], combiner.better, first, last - first)


def build_position(loop: mlir.Operation, position: Position) -> list[mlir.Value]:
    """The results of the loop."""
    inits = list(loop.operands)[3:]
    kind = inits[position.index_result].type
    row = sliced(position)
    scalar = mlir.AffineMap.get(1, 0, [])
    starts = [inits[position.value], emit.number(kind, -1)]
    outs = [emit.value("tensor.from_elements", [v], mlir.RankedTensorType.get([], v.type)) for v in starts]

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        x, best, index = arguments
        better = emit.compare(position.predicate, x, best)
        here = emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(0))
        if not isinstance(kind, mlir.IndexType):
            here = emit.value("arith.index_cast", [here], kind)
        return [emit.same_type("arith.select", better, x, best), emit.same_type("arith.select", better, here, index)]

    maps = [mlir.AffineMap.get_identity(1), scalar, scalar]
    found = emit.generic([row], outs, maps, ["reduction"], body)
    value, index = (emit.value("tensor.extract", [result], result.type.element_type) for result in found.results)
    none = emit.compare("slt", index, emit.number(kind, 0))
    moved = emit.same_type("arith.addi", index, emit.number(kind, position.first)) if position.first else index
    index = emit.same_type("arith.select", none, inits[position.index_result], moved)
    return [value, index] if position.value == 0 else [index, value]


def sliced(position: Position) -> mlir.Value:
    """The row that the loop runs along."""
    source, *indices = position.element.operands
    offsets = [position.first if n == position.axis else index for n, index in enumerate(indices)]
    sizes = [position.count if n == position.axis else 1 for n in range(len(indices))]
    return emit.extract_slice(source, offsets, sizes, [position.count])
