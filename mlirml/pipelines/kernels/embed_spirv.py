"""Embed SPIR-V: the kernels of a module are serialised, and replaced by their binary.

Before:
    spirv.module @__spv__kernels Logical GLSL450 ... {...}
    gpu.module @kernels [#spirv.target_env<...>] { gpu.func @k(...) kernel {...} }
After:
    gpu.binary @kernels [#gpu.object<#spirv.target_env<...>, bin = "...">]

Upstream's `gpu-module-to-binary` expects the spirv.module inside of the gpu.module.
"""

from __future__ import annotations

from mlirml.errors import PreconditionError
from mlirml.ir.bindings import block_ops, mlir, passmanager
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register


@register
class EmbedSpirvPass(Pass):
    """Serialise each spirv.module, and replace its gpu.module by a gpu.binary."""

    def run(self, module: mlir.Operation) -> None:
        ops = block_ops(module.regions[0].blocks[0])
        shaders = {op.attributes["sym_name"].value: op for op in ops if op.name == "spirv.module"}
        for kernels in [op for op in ops if op.name == "gpu.module"]:
            shader = shaders.get(f"__spv__{kernels.attributes['sym_name'].value}")
            if "targets" not in kernels.attributes:
                raise PreconditionError(
                    "a gpu.module says no target: it has no `targets`", location=source_location(kernels.location)
                )
            if shader is None:
                continue
            block = kernels.regions[0].blocks[0]
            for function in block_ops(block):
                function.erase()
            block.append(shader)
        manager = passmanager.PassManager.parse("builtin.module(gpu-module-to-binary)", module.context)
        manager.run(module)
