"""Scalarize: long programs on single elements, as from unrolled loops over elements, become scalar arithmetic.

Before:
    %s = tensor.extract_slice %x[1, 2] [1, 1] [1, 1] : tensor<4x4xf32> to tensor<f32>
    %r = linalg.generic {maps = [() -> (), () -> ()], []} ins(%s : tensor<f32>) outs(%e : tensor<f32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = math.sqrt %a : f32
      linalg.yield %0 : f32
    } -> tensor<f32>
    %y = tensor.insert_slice %r into %x[3, 3] [1, 1] [1, 1] : tensor<f32> into tensor<4x4xf32>
After:
    %a = tensor.extract %x[%c1, %c2] : tensor<4x4xf32>
    %0 = math.sqrt %a : f32
    %y = tensor.insert %0 into %x[%c3, %c3] : tensor<4x4xf32>

A buffer and a kernel for each scalar would cost a thousand times the arithmetic. A few scalars next to big arrays are
left as tensors: they are computed where the results are stored.
"""

from __future__ import annotations

from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.rank_zero import Scalars, is_scalar
from mlirml.passes import Pass, register


@register(when=("!tensor<0d>",), optional=True)
class ScalarizePass(Pass):
    """Replace operations on tensors of rank 0 by scalar ones, in functions with at least `fewest` of them."""

    fewest: int = 16

    def run(self, module: mlir.Operation) -> None:
        for function in block_ops(module.regions[0].blocks[0]):
            if function.name == "func.func" and len(function.regions[0].blocks) == 1:
                body = function.regions[0].blocks[0]
                if sum(map(is_scalar, block_ops(body))) >= self.fewest:
                    scalarize(body)


def scalarize(body: mlir.Block) -> None:
    """Rewrite the operations of a block."""
    scalars = Scalars(body)
    done: list[mlir.Operation] = []
    for op in block_ops(body):
        with op.location, mlir.InsertionPoint(op):
            if is_scalar(op):
                scalars.inline(op)
                done.append(op)
            elif op.name == "tensor.extract_slice":
                if scalars.read(op):
                    done.append(op)
            elif op.name == "tensor.insert_slice" and op.operands[0] in scalars.known:
                scalars.store(op)
    for op in reversed(done):
        scalars.replace(op)
