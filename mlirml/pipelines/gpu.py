"""The recipes of the targets that are GPUs: kernels up to the dialect conversion, and the host code that launches them.

`sized_stages` are those of programs of dynamic sizes: the host computes grids and memory from the sizes of the call,
and kernels take the sizes as arguments.

`TO_NVVM`, `TO_SPIRV` and `TO_WGSL` are the ends of kernels; all before and after them is the same for each device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirml.dialects.atomics import KIND_OF
from mlirml.ir.combiners import COMBINERS
from mlirml.pipelines import cpu
from mlirml.pipelines.recipe import Recipe, recipe, step

if TYPE_CHECKING:
    from mlirml.targets.machine import Device, Processor

ALIGNMENT = 256
"""The bytes at whose multiples temporaries begin: devices bind buffers at no others."""
_TO_SHADER = (
    step("mlirml-expand-math", processor="scalar", f64=False),
    "mlirml-inline-library",
    "canonicalize",
    "cse",
    "mlirml-prepare-spirv",
)

TO_SPIRV = (
    step("mlirml-expand-atomics", native=("addi", "andi", "maxu", "minu", "ori")),
    *_TO_SHADER,
    "mlirml-lower-exchanges",
    "gpu.module(gpu.func(convert-math-to-spirv))",
    step("convert-gpu-to-spirv", use_64bit_index=False),
    "mlirml-lower-exchanges",
    "mlirml-sign-spirv",
    "spirv.module(spirv-lower-abi-attrs,spirv-update-vce)",
    "mlirml-embed-spirv",
)
"""From scheduled kernels to a gpu.binary that holds SPIR-V, whose buffers are bound in the order of the arguments."""

TO_WGSL = (
    step("mlirml-expand-atomics", native=("addi", "andi", "maxs", "mins", "ori", "xori")),
    *_TO_SHADER,
    "mlirml-embed-wgsl",
)
"""From scheduled kernels to a gpu.binary that holds the text of a shader in WGSL."""

_NVVM_ATOMICS = tuple(sorted(kind for op, kind in KIND_OF.items() if COMBINERS[op].word != "product"))
_TO_NVVM_KERNELS = (
    "convert-nvgpu-to-nvvm",
    "convert-scf-to-cf",
    "expand-strided-metadata",
    "lower-affine",
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=32}",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)
TO_NVVM = (
    "mlirml-embed-tiles",
    step("mlirml-expand-atomics", native=_NVVM_ATOMICS, small=True),
    step("mlirml-expand-math", processor="scalar+f16c+fma+ptx"),
    "mlirml-inline-library",
    "canonicalize",
    "cse",
    "mlirml-prepare-nvvm",
    "mlirml-lower-nvgpu",
    f"gpu.module({','.join(_TO_NVVM_KERNELS)})",
    "mlirml-relax-atomics",
)
"""From scheduled kernels to a gpu.module in the NVVM and LLVM dialects."""


def stages(
    device: Device,
    machine: Processor,
    checkpoint_bytes: int,
    lower_kernels: Sequence[str],
    *,
    deterministic: bool,
    tf32: bool | None = None,
    exact: bool = False,
) -> Recipe:
    """The stages of a GPU, with host code for `machine`; `lower_kernels` makes a binary of the kernels.

    `deterministic` sums of scatters do not depend on the order of threads. `tf32` tells whether products of f32 may be
    computed with 10 bits of mantissa, on devices that can. With `exact` no sums or products of floats are reassociated.
    """
    # Where operands alone are counted, some buffers are left for results.
    fused = min((device.buffers or 32) - 4, device.kernel_buffers)
    rounded = {} if tf32 is None else {"tf32": tf32}
    choices = {"deterministic": deterministic} | rounded
    return recipe(
        **{
            "raise": ["mlirml-choose-library", *cpu.raising(exact=exact)],
            "transform": [
                step("mlirml-lower-lengths", for_requests=True),
                "mlirml-stop-shifts",
                *cpu.expand(checkpoint_bytes),
            ],
            "optimize": [
                "mlirml-fold-ranges",
                *cpu.CLEAN,
                *cpu.fuse(exact=exact, narrowing=False, max_ops=96, max_operands=fused),
                "canonicalize",
                "mlirml-fold-guards",
                "cse",
            ],
            "offload": [
                "mlirml-mark-loops",
                step("mlirml-keep-loops", device=device),
                step("mlirml-fold-contract", narrowing=False),
                "mlirml-restore-unit-dims",
                step("mlirml-fold-contract", narrowing=False),
                "mlirml-narrow-factors",
                step("mlirml-narrow-integers", device=device),
                step("mlirml-recompute-scores", device=device),
                step("mlirml-form-dispatches", device=device, **rounded),
                "mlirml-outline",
            ],
            "schedule": [
                step("mlirml-schedule-kernels", device=device, **choices),
                "mlirml-align-while",
                "mlirml-bufferize",
                "mlirml-link-kernels",
                "mlirml-defer-checks",
                "mlirml-plan-transfers",
                "mlirml-swap-buffers",
                step("mlirml-lower-contract", processor=machine),
                step("mlirml-lower-conv", processor=machine),
                step("mlirml-lower-loops", processor=machine),
                step("mlirml-plan-buffers", alignment=ALIGNMENT),
                step("mlirml-check-kernels", device=device),
            ],
            "lower": ["mlirml-lower-launches", *lower_kernels, "mlirml-collect-checks", *cpu.LOWER],
        }
    )


def sized_stages(
    device: Device,
    machine: Processor,
    checkpoint_bytes: int,
    lower_kernels: Sequence[str],
    *,
    deterministic: bool,
    exact: bool = False,
) -> Recipe:
    """The stages of a GPU for programs of dynamic sizes; the options are those of `stages`."""
    fused = min((device.buffers or 32) - _FOR_SIZES, device.kernel_buffers)
    return recipe(
        **{
            "raise": [],
            "transform": cpu.expand(checkpoint_bytes),
            "optimize": [
                *cpu.CLEAN,
                *cpu.algebra(exact=exact),
                "mlirml-hoist",
                step("mlirml-fuse", max_ops=96, max_operands=fused),
                "canonicalize",
                "mlirml-fold-guards",
                "cse",
                "mlirml-free-sizes",
            ],
            "offload": [
                "mlirml-mark-loops",
                step("mlirml-narrow-integers", device=device),
                step("mlirml-form-dispatches", device=device),
                "mlirml-outline",
            ],
            "schedule": [
                step("mlirml-schedule-kernels", device=device, deterministic=deterministic),
                "mlirml-align-while",
                "mlirml-bufferize",
                "mlirml-pass-sizes",
                "mlirml-link-kernels",
                "mlirml-defer-checks",
                "mlirml-plan-transfers",
                step("mlirml-lower-sized", processor=machine, parallel=False),
                step("mlirml-lower-loops", processor=machine),
                "canonicalize",
                "mlirml-fold-guards",
                "cse",
                step("mlirml-plan-buffers", alignment=ALIGNMENT),
                step("mlirml-plan-sizes", alignment=ALIGNMENT),
                step("mlirml-check-kernels", device=device),
            ],
            "lower": ["mlirml-lower-launches", *lower_kernels, "mlirml-collect-checks", *cpu.LOWER],
        }
    )


_FOR_SIZES = 5
"""The buffers of a kernel that are left for results and for the sizes that it takes."""
