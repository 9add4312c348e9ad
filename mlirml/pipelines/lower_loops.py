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
`schedules/reduction.py`. A fill of an out in front of a reduction is folded into it. Neighbours that work on the same
rows share the loop over the rows (`schedules/rows.py`).
"""

from __future__ import annotations

from mlirml.analysis.memory import VIEWS
from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.errors import LoweringError
from mlirml.ir import block_ops, mlir, named_operations
from mlirml.location import source_location
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.schedules.frame import Frame
from mlirml.pipelines.schedules.rows import groups, lower_group
from mlirml.pipelines.schedules.structured import Structured, lower, match_structured

_HARMLESS = ("memref.alloc", "memref.get_global", *VIEWS)


@register
@dataclass(frozen=True)
class LowerLoopsPass(Pass):
    """Lower every linalg operation and memref.copy to loops. `vector_bits` is the width of the vector registers."""

    name = "mlirml-lower-loops"
    vector_bits: int = 256

    def run(self, module: mlir.Operation) -> None:
        for copy in named_operations(module, ("memref.copy",)):
            as_generic(copy)
        for block in blocks_with_loops(module):
            for neighbours in runs(block):
                for group in groups(neighbours):
                    with group[-1].op.location, mlir.InsertionPoint(group[-1].op):
                        if len(group) > 1:
                            lower_group(group, self.vector_bits)
                        else:
                            lower(group[0], Frame(group[0].op), self.vector_bits)
                    for item in group:
                        item.op.erase()


def is_structured(op: mlir.Operation) -> bool:
    return op.name.startswith("linalg.") and bool(op.regions)


def blocks_with_loops(module: mlir.Operation) -> list[mlir.Block]:
    """Every block that holds structured operations."""
    found, todo = [], [block for region in module.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        ops = block_ops(block)
        if any(map(is_structured, ops)):
            found.append(block)
        for op in ops:
            if not is_structured(op):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def runs(block: mlir.Block) -> list[list[Structured]]:
    """The structured operations of a block, cut where another operation may touch memory."""
    matched = iter([read(op) for op in block_ops(block) if is_structured(op) and op.name != "linalg.fill"])
    found: list[list[Structured]] = [[]]
    for op in block_ops(block):
        if is_structured(op):
            found[-1].append(read(op) if op.name == "linalg.fill" else next(matched))
        elif op.name not in _HARMLESS and not op.name.startswith("arith."):
            found.append([])
    return found


def read(op: mlir.Operation) -> Structured:
    """The operation as the schedules see it."""
    try:
        return match_structured(op)
    except NoMatch as reason:
        error = LoweringError(f"no loops for `{op.name}`: {reason}", location=source_location(op.location))
        error.op = op.name
        raise error from None


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
