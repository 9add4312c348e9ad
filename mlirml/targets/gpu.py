"""What the targets for graphics processors share: the pipelines from kernels to the two ends."""

from __future__ import annotations

TO_SPIRV = (
    "mlirml-expand-math{fma=false f16c=false},mlirml-inline-library,canonicalize,cse,mlirml-prepare-spirv,"
    "gpu.module(gpu.func(convert-math-to-spirv)),convert-gpu-to-spirv{use-64bit-index=false},"
    "mlirml-sign-spirv,"
    "spirv.module(spirv-lower-abi-attrs,spirv-update-vce),mlirml-embed-spirv"
)
"""From scheduled kernels to a gpu.binary that holds SPIR-V, whose buffers are bound in the order of the arguments."""
TO_NVVM = (
    "mlirml-expand-math{f16c=true},mlirml-inline-library,canonicalize,cse,mlirml-prepare-nvvm,"
    "gpu.module(convert-nvgpu-to-nvvm,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=32},canonicalize,cse,"
    "reconcile-unrealized-casts)"
)
"""From scheduled kernels to a gpu.module in the NVVM and LLVM dialects."""
