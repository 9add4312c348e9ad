"""The target `vulkan`: SPIR-V kernels for a Vulkan device, and host code that launches them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.pipelines.gpu import TO_SPIRV, sized_stages, stages
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.device import device
from mlirml.targets import gpu
from mlirml.targets.machine import DEVICES, Device, Processor, processor
from mlirml.targets.target import Target, target

LEAST = DEVICES["vulkan"]


def device_of(capabilities: Mapping[str, Any]) -> Device:
    """The device that a driver describes."""
    return replace(
        LEAST,
        dtypes=tuple(sorted((*LEAST.dtypes, *wide_dtypes(capabilities["features"])))),
        buffers=capabilities["storage_buffers"],
        array_bytes=capabilities["binding_bytes"],
        shared_bytes=capabilities["workgroup_bytes"],
        threads=capabilities["workgroup_threads"],
    )


def wide_dtypes(features: Collection[str]) -> tuple[str, ...]:
    """The 64-bit element types of a device with these features; functions of f64 access their bits as i64."""
    return tuple(name for name in ("f64", "i64") if name in features and "i64" in features)


@target("vulkan", forms=("spirv",), portable="least_target")
def vulkan_target() -> Target:
    """The target for the first Vulkan device, or for a device of minimum capabilities if there is none."""
    try:
        found = device_of(device("vulkan").capabilities)
    except TargetError:
        return least_target()
    return target_for(found, config.checkpoint_bytes, config.deterministic, processor(), exact=_is_exact())


def least_target() -> Target:
    """The target for the least that a Vulkan device may be: none is opened."""
    return target_for(LEAST, config.checkpoint_bytes, config.deterministic, processor(), exact=_is_exact())


def _is_exact() -> bool:
    return config.algebra == "exact"


@cache
def target_for(
    device: Device, checkpoint_bytes: int, deterministic: bool, machine: Processor, *, exact: bool = False
) -> Target:
    """The target for a device and a processor. With `exact` no sums or products of floats are reassociated."""
    return Target(
        name="vulkan",
        stages=stages(device, machine, checkpoint_bytes, TO_SPIRV, deterministic=deterministic, exact=exact),
        codegen=partial(codegen, machine=machine, device=device),
        depends_on=machine.key_entries(),
        device="vulkan",
        processor=machine,
        forms={"spirv": emit_spirv},
        open=gpu.load,
        float64="f64" in device.dtypes,
        sized=partial(sized_target, device, checkpoint_bytes, deterministic, machine, exact=exact),
    )


@cache
def sized_target(
    device: Device, checkpoint_bytes: int, deterministic: bool, machine: Processor, *, exact: bool = False
) -> Target:
    """The target for programs of dynamic sizes."""
    return replace(
        target_for(device, checkpoint_bytes, deterministic, machine, exact=exact),
        stages=sized_stages(device, machine, checkpoint_bytes, TO_SPIRV, deterministic=deterministic, exact=exact),
        open=gpu.load_sized,
        sized=None,
    )


def codegen(module: Any, *, machine: Processor, device: Device) -> Artifact:
    """The object of the host code, and the kernels, of a module after stage `lower`."""
    operation = getattr(module, "operation", module)
    return gpu.artifact(operation, "vulkan", take_binary(operation), machine, device)


def emit_spirv(module: Any) -> bytes:
    """The kernels of a module after stage `lower`, as bytes; empty if no operation runs on the device."""
    from mlirml.ir.bindings import gpu

    operation = getattr(module, "operation", module)
    found = binary_of(operation)
    return gpu.ObjectAttr(found.attributes["objects"][0]).object if found is not None else b""


def binary_of(module: Any) -> Any:
    """The `gpu.binary` of a module; None where it has none."""
    from mlirml.ir.bindings import block_ops

    return next((op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.binary"), None)


def take_binary(module: Any) -> bytes:
    """Remove the SPIR-V from a module and return it."""
    code = emit_spirv(module)
    found = binary_of(module)
    if found is not None:
        found.erase()
    return code
