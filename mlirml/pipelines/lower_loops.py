"""Lower loops: linalg operations and copies on memrefs become loop nests.

Before:
    linalg.generic {maps = [(i) -> (i), (i) -> (i)], ["parallel"]} ins(%x) outs(%y) {
    ^bb0(%a: f32, %out: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
After:
    scf.for %i = %c0 to %c8 step %c1 {
      %a = memref.load %x[%i] : memref<8xf32>
      %n = arith.negf %a : f32
      memref.store %n, %y[%i] : memref<8xf32>
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirml.dialects import emit
from mlirml.ir import block_ops, linalg, mlir, operations
from mlirml.passes import Pass, register


@register
@dataclass(frozen=True)
class LowerLoopsPass(Pass):
    """Lower every linalg operation and memref.copy to loops."""

    name = "mlirml-lower-loops"

    def run(self, module: mlir.Operation) -> None:
        for op in list(operations(module)):
            if op.name == "memref.copy" or (op.name.startswith("linalg.") and op.regions):
                with op.location, mlir.InsertionPoint(op):
                    lower(op)
                op.erase()


def lower(op: mlir.Operation) -> None:
    operands = list(op.operands)
    if op.name == "memref.copy":
        rank = operands[0].type.rank
        maps = [mlir.AffineMap.get_identity(rank)] * 2
    else:
        maps = [attribute.value for attribute in linalg.get_indexing_maps(op)]
    sizes: dict[int, int] = {}
    for operand, map_ in zip(operands, maps):
        if isinstance(operand.type, mlir.MemRefType):
            for expression, size in zip(map_.results, operand.type.shape):
                sizes[mlir.AffineDimExpr(expression).position] = size
    rank = maps[0].n_dims
    zero, one = emit.index(0), emit.index(1)

    def nest(dim: int, places: list[mlir.Value]) -> None:
        if dim < rank:
            emit.for_loop(zero, emit.index(sizes[dim]), one, lambda i, _: nest(dim + 1, [*places, i]))
            return
        at = [[places[mlir.AffineDimExpr(e).position] for e in m.results] for m in maps]
        if op.name == "memref.copy":
            emit.create("memref.store", [load(operands[0], at[0]), operands[1], *at[1]])
            return
        block = op.regions[0].blocks[0]
        environment = {}
        for argument, operand, indices in zip(block.arguments, operands, at):
            environment[argument] = load(operand, indices)
        for inner in block_ops(block):
            if inner.name == "linalg.yield":
                outs = len(operands) - len(inner.operands)
                for value, out, indices in zip(inner.operands, operands[outs:], at[outs:]):
                    emit.create("memref.store", [environment.get(value, value), out, *indices])
            elif inner.name == "linalg.index":
                environment[inner.results[0]] = places[inner.attributes["dim"].value]
            else:
                emit.body_op(inner, environment)

    nest(0, [])


def load(operand: mlir.Value, indices: list[mlir.Value]) -> mlir.Value:
    if not isinstance(operand.type, mlir.MemRefType):
        return operand
    return emit.value("memref.load", [operand, *indices], operand.type.element_type)
