"""What the targets that are GPUs share: the pipeline up to the dialect conversion of the kernels, and its two ends."""

from __future__ import annotations

from typing import Any

from mlirml.raising import RAISE
from mlirml.runtime.artifact import Artifact
from mlirml.targets import cpu
from mlirml.targets.machine import Processor

OFFLOAD = "mlirml-mark-loops,mlirml-form-dispatches{placement},mlirml-outline"
SCHEDULE = (
    "mlirml-schedule-kernels{{{facts}}},mlirml-bufferize,mlirml-link-kernels,mlirml-defer-checks,mlirml-plan-transfers,mlirml-swap-buffers,"
    "mlirml-lower-contract{{{contract}}},mlirml-lower-conv{{vector-bits={bits}}},"
    "mlirml-lower-loops{{vector-bits={bits}}},mlirml-plan-buffers{{alignment=256}},mlirml-check-kernels{{{limits}}}"
)
TO_SPIRV = (
    "mlirml-expand-atomics{native={addi,andi,maxu,minu,ori}},"
    "mlirml-expand-math{fma=false f16c=false f64=false},mlirml-inline-library,canonicalize,cse,mlirml-prepare-spirv,"
    "mlirml-lower-exchanges,gpu.module(gpu.func(convert-math-to-spirv)),convert-gpu-to-spirv{use-64bit-index=false},"
    "mlirml-lower-exchanges,mlirml-sign-spirv,"
    "spirv.module(spirv-lower-abi-attrs,spirv-update-vce),mlirml-embed-spirv"
)
"""From scheduled kernels to a gpu.binary that holds SPIR-V, whose buffers are bound in the order of the arguments."""
TO_WGSL = (
    "mlirml-expand-atomics{native={addi,andi,maxs,mins,ori,xori}},"
    "mlirml-expand-math{fma=false f16c=false f64=false},mlirml-inline-library,canonicalize,cse,mlirml-prepare-spirv,"
    "mlirml-embed-wgsl"
)
"""The same to a gpu.binary that holds the text of a shader in WGSL."""
TO_NVVM = (
    "mlirml-expand-atomics{native={addf,addi,andi,maximumf,maxnumf,maxs,maxu,minimumf,minnumf,mins,minu,ori,xori} "
    "small=true},mlirml-expand-math{f16c=true},mlirml-inline-library,canonicalize,cse,mlirml-prepare-nvvm,mlirml-lower-nvgpu,"
    "gpu.module(convert-nvgpu-to-nvvm,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=32},canonicalize,cse,"
    "reconcile-unrealized-casts)"
)
"""From scheduled kernels to a gpu.module in the NVVM and LLVM dialects."""


_MOST_BUFFERS = 24
"""Of a kernel, so that it stays a small one."""


def stages(
    facts: str,
    lower_kernels: str,
    checkpoint_bytes: int,
    placement: str,
    limits: str,
    machine: Processor,
    buffers: int = 32,
) -> tuple[tuple[str, str], ...]:
    """The stages of a GPU.

    `facts` are the options of its schedules, `lower_kernels` makes a binary of its kernels, `placement` are the options
    of dispatches: what the device lacks, and `limits` those of the check of kernels. Host code is for
    `machine`. A kernel may take so many `buffers`.
    """
    host = cpu.machine_options(machine)
    schedule = SCHEDULE.format(facts=facts, contract=host, bits=machine.vector_bits, limits=limits)
    most = min(buffers, _MOST_BUFFERS)
    fused = min(buffers - 4, _MOST_BUFFERS)  # where operands alone are counted, some are left for results
    return (
        ("raise", f"mlirml-choose-library,{RAISE}"),
        ("transform", f"mlirml-lower-lengths{{for-requests=true}},{cpu.expand(checkpoint_bytes)}"),
        ("optimize", f"{cpu.FUSE}{{max-operands={fused}}},canonicalize,cse"),
        ("offload", OFFLOAD.format(placement=f"{{{placement} buffers={most}}}")),
        ("schedule", schedule),
        ("lower", f"mlirml-lower-launches,{lower_kernels},mlirml-collect-checks,{cpu.LOWER}"),
    )


def artifact(operation: Any, form: str, kernels: bytes, machine: Processor) -> Artifact:
    """The program of a module after stage `lower` whose kernels are taken out: host code, and kernels in their form."""
    import numpy as np

    from mlirml.dialects.mlirml import CONSTANTS, DEFERRED_CHECKS, HOST_INPUTS, HOST_WORK, KERNELS
    from mlirml.ir.bindings import mlir
    from mlirml.offload.lower_launches import RUNTIME
    from mlirml.pipelines.llvm.emit_entry import ENTRY, entry_function
    from mlirml.targets.llvm.codegen import compile_to_object

    attributes = entry_function(operation).attributes
    entries = [mlir.DictAttr(e) for e in attributes[KERNELS]] if KERNELS in attributes else []
    constants = b""
    if CONSTANTS in attributes:  # of no use to the host code
        constants = np.array(mlir.DenseElementsAttr(attributes[CONSTANTS])).tobytes()
        del attributes[CONSTANTS]
    deferred = [mlir.DictAttr(e) for e in attributes[DEFERRED_CHECKS]] if DEFERRED_CHECKS in attributes else []
    lines = list(attributes[HOST_WORK]) if HOST_WORK in attributes else []
    return Artifact(
        object=compile_to_object(operation, cpu.codegen_options(machine, externals=RUNTIME)),
        entry=ENTRY,
        inputs=tuple(map(cpu.buffer, attributes["mlirml.inputs"])),
        outputs=tuple(map(cpu.buffer, attributes["mlirml.outputs"])),
        workspace_bytes=attributes["mlirml.workspace"].value,
        in_place=tuple(attributes["mlirml.in_place"]) if "mlirml.in_place" in attributes else (),
        format=form,
        kernels=kernels,
        kernel_table=tuple((mlir.StringAttr(e["name"]).value, tuple(e["arguments"])) for e in entries),
        kernel_launches=tuple(mlir.IntegerAttr(e["launches"]).value for e in entries),
        host_work=tuple(mlir.StringAttr(line).value for line in lines),
        kernel_places=tuple(mlir.StringAttr(e["place"]).value for e in entries),
        host_inputs=tuple(attributes[HOST_INPUTS]) if HOST_INPUTS in attributes else (),
        host_workspace_bytes=attributes["mlirml.host_workspace"].value if "mlirml.host_workspace" in attributes else 0,
        constants=constants,
        deferred_checks=tuple((e["check"].value, e["limit"].value, e["bits"].value, e["base"].value) for e in deferred),
    )
