"""The targets `webgpu` and `metal`: kernels as text in WGSL, WebGPU's language, and host code that launches them.

Kernels of `webgpu` use only what every implementation of WebGPU has: no 64-bit types, eight buffers, 16 KiB of
workgroup memory. They run on Vulkan devices, on macOS on Metal devices, through wgpu-native, which translates the text.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.pipelines.gpu import TO_WGSL, stages
from mlirml.runtime.artifact import Artifact
from mlirml.targets import gpu, vulkan
from mlirml.targets.machine import DEVICES, Processor, processor
from mlirml.targets.target import Target, target


@target("webgpu", forms=("wgsl",))
def webgpu_target() -> Target:
    """The target for every implementation of WebGPU, run by wgpu-native on the devices of this system."""
    device = "metal" if sys.platform == "darwin" else "vulkan"
    return target_for("webgpu", device, config.checkpoint_bytes, config.deterministic, processor(), exact=_is_exact())


@target("metal", forms=("wgsl",))
def metal_target() -> Target:
    """The same code for Metal devices only."""
    return target_for("metal", "metal", config.checkpoint_bytes, config.deterministic, processor(), exact=_is_exact())


def _is_exact() -> bool:
    return config.algebra == "exact"


@cache
def target_for(
    name: str, device: str, checkpoint_bytes: int, deterministic: bool, machine: Processor, *, exact: bool = False
) -> Target:
    """The WebGPU target of name `name`, whose programs run on devices of backend `device`."""

    def codegen(module: Any) -> Artifact:
        operation = getattr(module, "operation", module)
        return gpu.artifact(operation, device, vulkan.take_binary(operation), machine, DEVICES[name])

    return Target(
        name=name,
        stages=stages(DEVICES[name], machine, checkpoint_bytes, TO_WGSL, deterministic=deterministic, exact=exact),
        codegen=codegen,
        depends_on=machine.key_entries(),
        device=device,
        processor=machine,
        forms={"wgsl": emit_wgsl},
        open=gpu.load,
        float64=False,
    )


def emit_wgsl(module: Any) -> str:
    """The WGSL of a module after stage `lower`; empty if no operation runs on the device."""
    try:
        return vulkan.emit_spirv(module).decode()
    except UnicodeDecodeError:
        raise TargetError("the kernels of the module are binary, not WGSL", help="use --emit=spirv") from None
