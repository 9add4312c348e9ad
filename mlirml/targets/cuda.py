"""The target `cuda`: PTX kernels for NVIDIA GPUs, and host code that launches them. Compiling needs no GPU."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from mlirml.core.config import config
from mlirml.pipelines.gpu import TO_NVVM, stages
from mlirml.runtime.artifact import Artifact
from mlirml.targets import gpu
from mlirml.targets.machine import DEVICES, Processor, processor
from mlirml.targets.target import Target, target

ARCHITECTURE = "sm_80"
"""The default architecture: PTX for it runs on every later GPU too."""


@target("cuda", forms=("ptx",))
def cuda_target() -> Target:
    """The target for NVIDIA GPUs of compute capability 8.0 or later."""
    return target_for(config.checkpoint_bytes, config.matmul_precision, config.deterministic, processor())


@cache
def target_for(checkpoint_bytes: int, matmul_precision: str, deterministic: bool, machine: Processor) -> Target:
    """The target, with the memory limit of checkpoints, the precision of f32 products and the order of scatters."""
    tf32 = matmul_precision == "tf32"
    return Target(
        name="cuda",
        stages=stages(DEVICES["cuda"], machine, checkpoint_bytes, TO_NVVM, deterministic=deterministic, tf32=tf32),
        codegen=partial(codegen, machine=machine),
        depends_on=(*machine.key_entries(), ("cuda.architecture", ARCHITECTURE)),
        device="cuda",
        processor=machine,
        forms={"ptx": emit_ptx, "ptx-": emit_ptx},
        open=gpu.load,
    )


def kernels_of(module: Any) -> Any:
    """The gpu.module of a module after stage `lower`; None if no operation runs on the device."""
    from mlirml.ir.bindings import block_ops

    operation = getattr(module, "operation", module)
    return next((op for op in block_ops(operation.regions[0].blocks[0]) if op.name == "gpu.module"), None)


def emit_ptx(module: Any, architecture: str = ARCHITECTURE) -> str:
    """The PTX of a module after stage `lower`; empty if no operation runs on the device."""

    from mlirml.targets.llvm.codegen import to_llvm_ir
    from mlirml.targets.llvm.ptx import to_ptx

    kernels = kernels_of(module)
    return "" if kernels is None else to_ptx(to_llvm_ir(kernels), architecture)


def codegen(module: Any, *, machine: Processor) -> Artifact:
    """The object of the host code, and the kernels as PTX, of a module after stage `lower`."""
    operation = getattr(module, "operation", module)
    code = emit_ptx(operation).encode()
    kernels = kernels_of(operation)
    if kernels is not None:
        kernels.erase()
    return gpu.artifact(operation, "cuda", code, machine)
