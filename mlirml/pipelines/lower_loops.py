"""Lower loops: linalg operations and copies on memrefs become loop nests made for LLVM's vectoriser.

Before:
    linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, j)], ["parallel", "parallel"]}
        ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
After:
    %flat_x = memref.collapse_shape %x [[0, 1]] : memref<4x8xf32> into memref<32xf32>
    %flat_y = memref.collapse_shape %y [[0, 1]] : memref<4x8xf32> into memref<32xf32>
    scf.for %i = %c0 to %c32 step %c1 {
      %a = memref.load %flat_x[%i] : memref<32xf32>
      %n = arith.negf %a : f32
      memref.store %n, %flat_y[%i] : memref<32xf32>
    }

Loops are ordered by stride, neighbours that all operands walk as one are merged, and an outermost parallel loop with
enough work becomes `scf.parallel` with the attribute `mlirml.grain`. How reductions are cut is told in
`schedules/reduction.py`. A fill of an out in front of a reduction is folded into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirml.dialects import emit
from mlirml.ir import defining_op, mlir, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.schedules.elementwise import lower_elementwise, ordered
from mlirml.pipelines.schedules.frame import Frame
from mlirml.pipelines.schedules.nest import Body, Nest, match_nest, read_body
from mlirml.pipelines.schedules.position import lower_position, match_position
from mlirml.pipelines.schedules.reducers import match_reducers
from mlirml.pipelines.schedules.reduction import lower_reduction
from mlirml.pipelines.schedules.sequential import lower_sequential
from mlirml.pipelines.schedules.transpose import lower_transposition, match_transposition


@register
@dataclass(frozen=True)
class LowerLoopsPass(Pass):
    """Lower every linalg operation and memref.copy to loops. `vector_bits` is the width of the vector registers."""

    name = "mlirml-lower-loops"
    vector_bits: int = 256

    def run(self, module: mlir.Operation) -> None:
        for copy in [op for op in operations(module) if op.name == "memref.copy"]:
            as_generic(copy)
        structured = [op for op in operations(module) if op.name.startswith("linalg.") and op.regions]
        for op in structured:
            if op.name != "linalg.fill":
                replace_by_loops(op, self.vector_bits)
        for op in [op for op in operations(module) if op.name == "linalg.fill"]:
            replace_by_loops(op, self.vector_bits)


def replace_by_loops(op: mlir.Operation, vector_bits: int) -> None:
    with op.location, mlir.InsertionPoint(op):
        lower(op, vector_bits)
    op.erase()


def as_generic(copy: mlir.Operation) -> None:
    """A copy as a structured operation; nothing for a copy of a buffer onto itself."""
    source, target = copy.operands
    if source == target:
        copy.erase()
        return
    with copy.location, mlir.InsertionPoint(copy):
        identity = mlir.AffineMap.get_identity(source.type.rank)
        emit.generic([source], [target], [identity] * 2, ["parallel"] * identity.n_dims, lambda b: b[:1])
    copy.erase()


def lower(op: mlir.Operation, vector_bits: int) -> None:
    """Build the loops of one operation in front of it."""
    body = read_body(op)
    nest = match_nest(op, body)
    frame = Frame(op)
    reduced = [size for size, reduction in zip(nest.sizes, nest.reduction, strict=True) if reduction and size != 1]
    if not reduced:
        lower_parallel_loops(op, frame, nest, body, vector_bits)
        return
    try:
        reducers = match_reducers(nest, body)
    except NoMatch:
        lower_ordered(frame, nest, body)
        return
    lower_reduction(frame, nest, body, reducers, fold_fills(op, nest, body))


def lower_ordered(frame: Frame, nest: Nest, body: Body) -> None:
    """Lower an accumulation that is no known combiner."""
    try:
        lower_position(frame, nest, body, match_position(nest, body))
    except NoMatch:
        lower_sequential(frame, nest, body)


def lower_parallel_loops(op: mlir.Operation, frame: Frame, nest: Nest, body: Body, vector_bits: int) -> None:
    """Lower an operation without reductions."""
    if 0 in nest.sizes:
        return
    nest = ordered(nest)
    try:
        plan = match_transposition(nest, body, vector_bits)
    except NoMatch:
        lower_elementwise(frame, nest, body, fold_fills(op, nest, body))
        return
    lower_transposition(frame, plan, body)


def fold_fills(op: mlir.Operation, nest: Nest, body: Body) -> dict[mlir.Value, mlir.Value]:
    """The scalars that outs were filled with just before; those fills are gone."""
    folded = {}
    for number in range(nest.outs):
        position = len(op.operands) - nest.outs + number
        argument = body.arguments[position]
        if not body.reads(argument):
            continue
        fill = last_fill(op, op.operands[position])
        if fill is not None:
            folded[argument] = fill.operands[0]
            fill.erase()
    return folded


def last_fill(op: mlir.Operation, out: mlir.Value) -> mlir.Operation | None:
    """The fill of `out` in front of `op`, when nothing can touch the memory in between."""
    owner = defining_op(out)
    if owner is not None and owner.name != "memref.alloc":
        return None
    last = None
    for use in out.uses:
        user = use.owner.operation
        if user.block != op.block or any(isinstance(r.type, mlir.MemRefType) for r in user.results):
            return None
        if user != op and user.is_before_in_block(op) and (last is None or last.is_before_in_block(user)):
            last = user
    return last if last is not None and last.name == "linalg.fill" else None
