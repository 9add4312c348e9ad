"""Schedule kernels: functions on tensors that were outlined for a device become gpu kernels and their launches.

Before:
    func.func private @k0_tanh(%x: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {mlirml.kernel} {
      %y = linalg.generic {...} ins(%x : tensor<64xf32>) outs(%out : tensor<64xf32>) {...} -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
After: that function unchanged (bufferization needs it to know what is read and written), and
    gpu.module @kernels {
      gpu.func @k0_tanh_elementwise(%x: memref<64xf32>, %out: memref<64xf32>) kernel {...}
    }
    func.func private @k0_tanh__launch(%x: memref<64xf32>, %out: memref<64xf32>) {
      gpu.launch_func @kernels::@k0_tanh_elementwise blocks in (...) threads in (...) args(%x, %out)
      return
    }

The last arguments of a kernel function are the inits of its results, in order. Kernels use gpu, scf, memref, arith,
math and vector operations and one-dimensional memory, and nothing that only one backend has but for what the option
`device` lists.
"""

from __future__ import annotations

from mlirml.analysis.ordered_loops import is_ordered
from mlirml.codegen.gpu.general import lower_general, try_fused
from mlirml.codegen.gpu.kernel import Choices, Host
from mlirml.codegen.gpu.outs import body_of, carried_outs, is_used, returned
from mlirml.codegen.gpu.sizes import has_dynamic_sizes
from mlirml.codegen.gpu.slices import chain_of
from mlirml.dialects.mlirml import KERNEL
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register
from mlirml.targets.machine import Device

MODULE = "kernels"


@register
class ScheduleKernelsPass(Pass):
    """Generate kernels for the functions with the attribute `mlirml.kernel`.

    `naive` computes each element of a result in its own thread without shared memory. With `tf32` products of f32 use
    tensor cores, rounded to 10 bits. If results need not be `deterministic`, sums and products of floats use atomic
    operations.
    """

    device: Device = Device()
    naive: bool = False
    tf32: bool = False
    deterministic: bool = True

    def run(self, module: mlir.Operation) -> None:
        body = module.regions[0].blocks[0]
        functions = [op for op in block_ops(body) if op.name == "func.func" and KERNEL in op.attributes]
        if not functions:
            return
        module.attributes["gpu.container_module"] = mlir.UnitAttr.get(module.context)
        choices = Choices(self.naive, self.tf32, self.deterministic)
        with functions[0].location, mlir.InsertionPoint(functions[0]):
            kernels = emit.create("gpu.module", (), (), {"sym_name": mlir.StringAttr.get(MODULE)}, regions=1)
        block = kernels.regions[0].blocks.append()
        for function in functions:
            with function.location, mlir.InsertionPoint(body):
                host = Host(function, block, self.device, choices)
                schedule(host, function)
            if has_dynamic_sizes(function):
                check_sizes(host)


def schedule(host: Host, function: mlir.Operation) -> None:
    """Generate the launches of one kernel function by the first schedule that matches."""
    reductions = [op for op in body_of(function) if carried_outs(op) and any(map(is_used, op.results))]
    stores = returned(function)
    whole = not has_dynamic_sizes(function) and not any(chain_of(*store) for store in stores)
    if reductions and whole and not any(map(is_ordered, body_of(function))):
        with reductions[-1].location:
            if try_fused(host, reductions, stores):
                return
    lower_general(host, function)


def check_sizes(host: Host) -> None:
    """Refuse kernels with a number that was computed from the one that types have in the place of a dynamic size."""
    for op in [op for root in (host.op, *host.built) for op in operations(root) if op.name == "arith.constant"]:
        value = op.attributes["value"]
        if isinstance(op.results[0].type, mlir.IndexType) and abs(mlir.IntegerAttr(value).value) >= _SENTINEL:
            raise LoweringError("no kernel takes this dynamic size", location=source_location(op.location))


_SENTINEL = 1 << 48
"""A greater index is no address: MLIR has the least integer in the place of dynamic sizes."""
