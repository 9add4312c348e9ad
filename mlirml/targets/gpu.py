"""What the targets that are GPUs share: the pipeline up to the dialect conversion of the kernels, and its two ends."""

from __future__ import annotations

import importlib
from collections.abc import Collection

from mlirml.raising import PASSES as RAISING_PASSES
from mlirml.raising import RAISE
from mlirml.targets import cpu

OFFLOAD = "mlirml-form-dispatches,mlirml-outline"
SCHEDULE = (
    "mlirml-schedule-kernels{{{facts}}},mlirml-bufferize,mlirml-link-kernels,mlirml-plan-transfers,"
    "mlirml-lower-contract{{{contract}}},mlirml-lower-conv{{vector-bits={bits}}},"
    "mlirml-lower-loops{{vector-bits={bits}}},mlirml-plan-buffers{{alignment=256}}"
)
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

_FILES = (
    ("raising", (*RAISING_PASSES, "promote_elements")),
    ("pipelines", (*cpu.PASSES, "schedule_kernels")),
    ("autodiff", ("expand",)),
    ("offload", ("form_dispatches", "outline", "link_kernels", "plan_transfers", "lower_launches")),
)


def stages(facts: str, lower_kernels: str, checkpoint_bytes: int) -> tuple[tuple[str, str], ...]:
    """The stages of a GPU: `facts` are the options of its schedules, `lower_kernels` makes a binary of its kernels."""
    return (
        ("raise", RAISE),
        ("transform", f"mlirml-expand{{checkpoint-bytes={checkpoint_bytes}}}"),
        ("optimize", cpu.OPTIMIZE),
        ("offload", OFFLOAD),
        ("schedule", SCHEDULE.format(facts=facts, contract=cpu.machine_options(), bits=cpu.vector_bits())),
        ("lower", f"mlirml-lower-launches,{lower_kernels},mlirml-lower-asserts,{cpu.LOWER}"),
    )


def load_passes(pipelines: tuple[str, ...], without: Collection[str] = ()) -> None:
    """Import the passes of the pipeline, and those of `pipelines` for one target, but for those of these flags."""
    for package, names in (*_FILES, ("pipelines", pipelines)):
        for name in names:
            if f"mlirml-{name.replace('_', '-')}" not in without:
                importlib.import_module(f"mlirml.{package}.{name}")
