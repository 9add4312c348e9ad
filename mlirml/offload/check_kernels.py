"""Check kernels: kernels that exceed a limit of the device are rejected at compile time, at the user's line.

Before:
    gpu.module @kernels {
      gpu.func @k0(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) kernel {...}  // `device=gpu,buffers=2`
    }
After: the error `a kernel takes 3 arrays, and the target 'gpu' binds 2 at once`; else nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlirml.analysis.shared_memory import shared_bytes
from mlirml.errors import PreconditionError, TargetError
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register
from mlirml.targets.machine import Device

_SPLIT = "compute in several steps, so that fewer arrays meet in one, or compile for the CPU"


@register
class CheckKernelsPass(Pass):
    """Reject kernels that exceed the arrays, the shared memory or the threads of a block of a device."""

    device: Device = Device()

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for function in [op for op in block_ops(kernels.regions[0].blocks[0]) if op.name == "gpu.func"]:
                for text, help in self.excesses(function):
                    raise TargetError(text, location=source_location(function.location), help=help)

    def excesses(self, function: mlir.Operation) -> Iterator[tuple[str, str]]:
        """The limits that a kernel exceeds, each as an error message and its help."""
        device = self.device
        arguments = len(function.regions[0].blocks[0].arguments)
        if device.buffers and arguments > device.buffers:
            yield (
                f"a kernel takes {arguments} arrays, and the target {device.name!r} binds {device.buffers} at once",
                _SPLIT,
            )
        shared, most = shared_bytes(function), max(device.shared_bytes, device.most_shared_bytes)
        if most and shared > most:
            yield (
                f"a kernel shares {shared:,} bytes in a block, and the target {device.name!r} has {most:,}",
                "compile for the CPU",
            )
        if "known_block_size" not in function.attributes:
            raise PreconditionError(
                "a kernel says no `known_block_size`, how many threads it runs in",
                location=source_location(function.location),
            )
        threads = math.prod(function.attributes["known_block_size"])
        if device.threads and threads > device.threads:
            yield (
                f"a kernel has blocks of {threads} threads, and the target {device.name!r} has {device.threads}",
                ("compile for the CPU"),
            )
