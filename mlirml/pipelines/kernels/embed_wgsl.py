"""Embed WGSL: the kernels of a module are printed as WGSL, WebGPU's language, and replaced by this text.

Before:
    gpu.module @kernels [#spirv.target_env<...>] {
      gpu.func @k(%x: memref<8xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {...}
    }
After:
    gpu.binary @kernels [#gpu.object<#spirv.target_env<...>, "@compute @workgroup_size(8, 1, 1) fn k(...) {...}">]

The pass runs after `mlirml-prepare-spirv`, whose forms are those that shaders in WGSL need too: no infinite constants,
no comparisons that are true for NaNs, no vectors, half floats as bits.
"""

from __future__ import annotations

from mlirml.codegen.wgsl.shader import shader
from mlirml.errors import PreconditionError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register


@register
class EmbedWgslPass(Pass):
    """Replace each gpu.module by its WGSL."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            if "targets" not in kernels.attributes:
                raise PreconditionError(
                    "a gpu.module says no target: it has no `targets`", location=source_location(kernels.location)
                )
            target = mlir.ArrayAttr(kernels.attributes["targets"])[0]
            code = mlir.StringAttr.get(shader(kernels), module.context)
            written = mlir.Attribute.parse(f"#gpu.object<{target}, {code}>", module.context)
            attributes = {
                "sym_name": kernels.attributes["sym_name"],
                "objects": mlir.ArrayAttr.get([written], module.context),
                "offloadingHandler": mlir.Attribute.parse("#gpu.select_object", module.context),
            }
            with kernels.location, mlir.InsertionPoint(kernels):
                emit.create("gpu.binary", (), (), attributes)
            kernels.erase()
