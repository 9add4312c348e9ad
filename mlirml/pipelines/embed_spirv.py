"""Embed SPIR-V: a converted module moves to where `gpu-module-to-binary` looks for it.

Before:
    spirv.module @__spv__kernels Logical GLSL450 ... {...}
    gpu.module @kernels [#spirv.target_env<...>] { gpu.func @k(...) kernel {...} }
After:
    gpu.module @kernels [#spirv.target_env<...>] { spirv.module @__spv__kernels Logical GLSL450 ... {...} }
"""

from __future__ import annotations

from mlirml.dataclass import dataclass
from mlirml.ir import block_ops, mlir
from mlirml.passes import Pass, register


@register
@dataclass(frozen=True)
class EmbedSpirvPass(Pass):
    """Move each spirv.module into the gpu.module that it was made of."""

    name = "mlirml-embed-spirv"

    def run(self, module: mlir.Operation) -> None:
        ops = block_ops(module.regions[0].blocks[0])
        shaders = {op.attributes["sym_name"].value: op for op in ops if op.name == "spirv.module"}
        for kernels in [op for op in ops if op.name == "gpu.module"]:
            shader = shaders.get(f"__spv__{kernels.attributes['sym_name'].value}")
            if shader is None:
                continue
            block = kernels.regions[0].blocks[0]
            for function in block_ops(block):
                function.erase()
            block.append(shader)
