"""Fuse: elementwise chains and the reductions that consume them become one loop nest that reads every input once.

Before:
    %t = linalg.generic {...} ins(%a, %b) outs(%e0) { %0 = arith.mulf %x, %y  linalg.yield %0 }
    %u = linalg.generic {...} ins(%t) outs(%e1) { %0 = math.tanh %x  linalg.yield %0 }
    %v = linalg.generic {...} ins(%t, %u) outs(%e2) { %0 = arith.addf %x, %y  linalg.yield %0 }
After:
    %v = linalg.generic {...} ins(%a, %b) outs(%e) {
      %0 = arith.mulf %x, %y
      %1 = math.tanh %0
      %2 = arith.addf %0, %1
      linalg.yield %2
    }

Nodes with one iteration space are grouped into a cluster: consumers join their producers, and operations that read the
same tensor join each other, if no operation outside depends on one and feeds the other. A result that is used outside
of its cluster becomes a result of the fused operation, so nothing expensive is computed twice. Cheap producers
(broadcasts, casts, a few additions) with another iteration space, and constants, are recomputed in each consumer. With
the option `search` that is the first of several partitions, of which the cheapest is chosen (`fusion/partitions.py`).
"""

from __future__ import annotations

from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import Pass, register
from mlirml.pipelines.tensor.fusion.clusters import Graph
from mlirml.pipelines.tensor.fusion.merge import rewrite
from mlirml.pipelines.tensor.fusion.partitions import best_partition, within_streams


@register(optional=True)
class FusePass(Pass):
    """Fuse structured operations. `max_ops` limits the body of a loop, `max_operands` its memory streams.

    With `prologues`, producers that kernels of matrix-vector products can compute are left to them. With `search`,
    partitions are looked for that take less by the cost model.
    """

    max_ops: int = 512
    max_operands: int = 24
    prologues: bool = False
    search: bool = False

    def run(self, module: mlir.Operation) -> None:
        for block in tensor_blocks(module):
            graph = within_streams(Graph(block, self.max_ops, self.max_operands, prologues=self.prologues))
            rewrite(best_partition(graph) if self.search else graph)


def tensor_blocks(module: mlir.Operation) -> list[mlir.Block]:
    """Every block that may contain structured operations."""
    found, todo = [], [block for region in module.regions for block in region.blocks]
    while todo:
        block = todo.pop()
        structured = False
        for op in block_ops(block):
            if op.name.startswith("linalg."):
                structured = True
            else:
                todo += [inner for region in op.regions for inner in region.blocks]
        if structured:
            found.append(block)
    return found
