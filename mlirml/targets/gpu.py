"""What the targets for graphics processors share: the pipelines from kernels to the two ends."""

from __future__ import annotations

TO_SPIRV = (
    "mlirml-expand-math{fma=false f16c=false},inline,canonicalize,cse,mlirml-prepare-spirv,"
    "gpu.module(gpu.func(convert-math-to-spirv)),convert-gpu-to-spirv{use-64bit-index=false},"
    "spirv.module(spirv-lower-abi-attrs,spirv-update-vce),mlirml-embed-spirv,gpu-module-to-binary"
)
"""From scheduled kernels to a gpu.binary that holds SPIR-V, whose buffers are bound in the order of the arguments."""
