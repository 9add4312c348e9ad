"""Link kernels: a call of a kernel becomes the launches that compute it.

Before:
    func.call @k0_tanh__launch(%x, %y) {mlirml.kernel} : (memref<8xf32>, memref<8xf32>) -> ()
    ...
    func.func private @k0_tanh__launch(%x: memref<8xf32>, %out: memref<8xf32>) {
      gpu.launch_func @kernels::@k0_tanh blocks in (...) threads in (...) args(%x, %out)
      return
    }
After:
    gpu.launch_func @kernels::@k0_tanh blocks in (...) threads in (...) args(%x, %y)
"""

from __future__ import annotations

from mlirml.dialects.mlirml import KERNEL, LAUNCH
from mlirml.ir.bindings import block_ops, callee_of, clone_with, main_function, mlir, named_function, operations
from mlirml.passes import Pass, register


@register
class LinkKernelsPass(Pass):
    """Inline the functions that launch kernels into @main."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        for call in [op for op in operations(main) if op.name == "func.call" and KERNEL in op.attributes]:
            inline(call, named_function(module, callee_of(call)))
        for op in block_ops(module.regions[0].blocks[0]):
            if op.name == "func.func" and mlir.StringAttr(op.attributes["sym_name"]).value.endswith(LAUNCH):
                op.erase()


def inline(call: mlir.Operation, function: mlir.Operation) -> None:
    body = function.regions[0].blocks[0]
    values = dict(zip(body.arguments, call.operands))
    with mlir.InsertionPoint(call):
        for op in block_ops(body)[:-1]:
            clone_with(op, values)
    call.erase()
