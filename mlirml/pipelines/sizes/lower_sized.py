"""Lower sized: structured operations and copies on memrefs become loops whose trip counts are dynamic.

Before:
    linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)], ["parallel", "reduction"]}
        ins(%x : memref<?x8xf32>) outs(%y : memref<?xf32>) {
    ^bb0(%a: f32, %total: f32):
      %sum = arith.addf %a, %total : f32
      linalg.yield %sum : f32
    }
After:
    scf.for %i = %c0 to %n step %c1 {
      %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %zero) -> (f32) {
        %a = memref.load %x[%i, %j] : memref<?x8xf32>
        %sum = arith.addf %t, %a fastmath<reassoc> : f32
        scf.yield %sum : f32
      }
      %init = memref.load %y[%i] : memref<?xf32>
      %total = arith.addf %init, %sum : f32
      memref.store %total, %y[%i] : memref<?xf32>
    }

The loop along which most operands are contiguous is innermost, where LLVM vectorises it. Reduced loops are innermost,
too, and carry their results in registers, unless the innermost one is parallel. Adjacent operations on the same rows
are lowered row by row (`row_groups.py`).
"""  # fmt: skip

from __future__ import annotations

from mlirml.analysis.memref_sizes import fold_dims
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.pipelines.sizes.row_groups import Group, groups_of
from mlirml.pipelines.tensor.fuse import tensor_blocks


@register
@dataclass(frozen=True)
class LowerSizedPass(Pass):
    """Lower every structured operation and copy to loops."""

    name = "mlirml-lower-sized"

    def run(self, module: mlir.Operation) -> None:
        for copy in named_operations(module, ("memref.copy",)):
            lower_copy(copy)
        for block in tensor_blocks(module):
            for group in groups_of(block):
                lower_group(group)
        fold_dims(module)


def lower_group(group: Group) -> None:
    """Replace a group by loops over its rows, or an operation alone by its own loops."""
    last = group.members[-1].op
    depth = group.depth if len(group.members) > 1 else 0
    with last.location, mlir.InsertionPoint(last):
        rows_of(group, depth, [])
    for member in group.members:
        member.op.erase()


def rows_of(group: Group, depth: int, indices: list[mlir.Value]) -> None:
    """The shared loops from the next one on, and the operations in them."""
    if len(indices) == depth:
        for member in group.members:
            with member.op.location:
                member.build(indices)
        return
    first = group.members[0]
    size = first.size(first.rows()[len(indices)])

    def body(i: mlir.Value, _: list[mlir.Value]) -> None:
        rows_of(group, depth, [*indices, i])

    emit.for_loop(emit.index(0), size, emit.index(1), body)


def lower_copy(copy: mlir.Operation) -> None:
    """Replace a copy by a structured operation; erase a copy of a buffer onto itself."""
    source, target = copy.operands
    if source != target:
        with copy.location, mlir.InsertionPoint(copy):
            identity = mlir.AffineMap.get_identity(source.type.rank)
            emit.generic([source], [target], [identity] * 2, ["parallel"] * identity.n_dims, lambda b: b[:1])
    copy.erase()
