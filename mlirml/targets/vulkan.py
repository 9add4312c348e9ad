"""The target `vulkan`: SPIR-V kernels for a Vulkan device, and host code that launches them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import Any

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.errors import TargetError
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.device import device
from mlirml.targets import gpu
from mlirml.targets.machine import Processor, processor
from mlirml.targets.target import Target

_DTYPES = ("bf16", "f16", "f32", "i16", "i32", "i8")
"""Element types that each device has; half floats and small integers are computed in 32 bits."""
ATOMICS = "atomics={bf16,f16,f32,i16,i32,i8}"
_HOST_OPS = ("math.ipowi", *(f"{name}:f64" for name in ("math.sin", "math.cos", "math.tan", "arith.remf")))
"""What shaders have no instruction for. Those of f64 would need one for large arguments."""


@dataclass(frozen=True)
class Capabilities:
    """What code for a device may use; the defaults are what each has."""

    dtypes: tuple[str, ...] = _DTYPES
    subgroups: bool = False
    storage_buffers: int = 8
    binding_bytes: int = 128 << 20
    workgroup_bytes: int = 16 << 10
    workgroup_threads: int = 256

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Capabilities:
        """From what the driver says."""
        features = facts["features"]
        return cls(
            tuple(sorted((*_DTYPES, *wide_dtypes(features)))),
            "subgroups" in features,
            facts["storage_buffers"],
            facts["binding_bytes"],
            facts["workgroup_bytes"],
            facts["workgroup_threads"],
        )


def wide_dtypes(features: Collection[str]) -> tuple[str, ...]:
    """The 64-bit element types that a device has by its features; functions of f64 take their bits as i64."""
    return tuple(name for name in ("f64", "i64") if name in features and "i64" in features)


def vulkan_target() -> Target:
    """The target for the first Vulkan device, or for the least that one may be where there is none."""
    try:
        capabilities = Capabilities.of(device("vulkan").capabilities)
    except TargetError:
        return least_target()
    return target_for(capabilities, config.checkpoint_bytes, config.deterministic, processor())


def least_target() -> Target:
    """The target for the least that a Vulkan device may be: none is opened."""
    return target_for(Capabilities(), config.checkpoint_bytes, config.deterministic, processor())


@cache
def target_for(capabilities: Capabilities, checkpoint_bytes: int, deterministic: bool, machine: Processor) -> Target:
    """The target for a device that can do this, and a processor."""
    return Target(
        name="vulkan",
        stages=stages("vulkan", capabilities, gpu.TO_SPIRV, checkpoint_bytes, deterministic, machine),
        codegen=partial(codegen, machine=machine),
        depends_on=machine.key_entries(),
        device="vulkan",
        processor=machine,
        float64="f64" in capabilities.dtypes,
    )


def stages(
    name: str,
    capabilities: Capabilities,
    lower_kernels: str,
    checkpoint_bytes: int,
    deterministic: bool,
    machine: Processor,
) -> tuple[tuple[str, str], ...]:
    """The stages of a target whose kernels are shaders for a device that can do this."""
    facts = f"shared-bytes={capabilities.workgroup_bytes} {ATOMICS} deterministic={str(deterministic).lower()}"
    placement = f"dtypes={{{','.join(capabilities.dtypes)}}} host-ops={{{','.join(_HOST_OPS)}}} target={name}"
    placement += f" array-bytes={capabilities.binding_bytes}"
    limits = f"buffers={capabilities.storage_buffers} shared-bytes={capabilities.workgroup_bytes}"
    limits += f" threads={capabilities.workgroup_threads} target={name}"
    return gpu.stages(facts, lower_kernels, checkpoint_bytes, placement, limits, machine, capabilities.storage_buffers)


def codegen(module: Any, *, machine: Processor) -> Artifact:
    """The object of the host code, and the kernels, of a module after stage `lower`."""
    operation = getattr(module, "operation", module)
    return gpu.artifact(operation, "vulkan", take_binary(operation), machine)


def emit_spirv(module: Any) -> bytes:
    """The kernels of a module after stage `lower`, as bytes; empty where nothing runs on the device."""
    from mlirml.ir.bindings import gpu

    operation = getattr(module, "operation", module)
    found = binary_of(operation)
    code: bytes = gpu.ObjectAttr(found.attributes["objects"][0]).object if found is not None else b""
    return code


def binary_of(module: Any) -> Any:
    """The `gpu.binary` of a module; None where it has none."""
    from mlirml.ir.bindings import block_ops

    return next((op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.binary"), None)


def take_binary(module: Any) -> bytes:
    """The SPIR-V of a module, which has none afterwards."""
    code = emit_spirv(module)
    found = binary_of(module)
    if found is not None:
        found.erase()
    return code
