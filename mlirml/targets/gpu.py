"""The program that all targets that are GPUs make: host code, and kernels in the form of the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlirml.runtime.artifact import Artifact
from mlirml.runtime.binding import Binding
from mlirml.targets import cpu
from mlirml.targets.machine import Device, Processor


def load(artifact: Artifact, binding: Binding) -> Any:
    """Load an artifact as a program for a device."""
    from mlirml.runtime import device_program

    return device_program.load(artifact, binding)


def load_sized(artifact: Artifact, binding: Binding) -> Any:
    """Load an artifact of dynamic sizes as a program for a device."""
    from mlirml.runtime.sized_device_program import SizedDeviceProgram

    return SizedDeviceProgram(artifact, binding)


def artifact(
    operation: Any,
    form: str,
    kernels: bytes,
    machine: Processor,
    device: Device,
    images: Mapping[str, bytes] | None = None,
    cubin: bytes = b"",
) -> Artifact:
    """The program of a module after stage `lower` whose kernels are taken out: host code, and kernels in their form.

    Arrays of dynamic size have the limits of `device`. `images` are those of kernels that have one each, by name;
    `cubin` has the others as assembled for one processor.
    """
    import numpy as np

    from mlirml.dialects.mlirml import CONSTANTS, DEFERRED_CHECKS, HOST_INPUTS, HOST_WORK, KERNELS
    from mlirml.ir.bindings import mlir
    from mlirml.offload.lower_launches import RUNTIME
    from mlirml.pipelines.gpu import ALIGNMENT
    from mlirml.pipelines.llvm.emit_entry import ENTRY, entry_function
    from mlirml.targets.llvm.codegen import compile_to_object

    function = entry_function(operation)
    attributes = function.attributes
    entries = [mlir.DictAttr(e) for e in attributes[KERNELS]] if KERNELS in attributes else []
    images = images or {}
    distinct = list(dict.fromkeys(images.values()))
    alone = [images.get(mlir.StringAttr(e["name"]).value, b"") for e in entries]
    constants = b""
    if CONSTANTS in attributes:  # of no use to the host code
        constants = np.array(mlir.DenseElementsAttr(attributes[CONSTANTS])).tobytes()
        del attributes[CONSTANTS]
    deferred = [mlir.DictAttr(e) for e in attributes[DEFERRED_CHECKS]] if DEFERRED_CHECKS in attributes else []
    lines = list(attributes[HOST_WORK]) if HOST_WORK in attributes else []
    return Artifact(
        object=compile_to_object(operation, cpu.codegen_options(machine, externals=RUNTIME)),
        entry=ENTRY,
        **cpu.signature(function),
        format=form,
        kernels=b"".join([kernels, cubin, *distinct]),
        cubin_bytes=len(cubin),
        image_sizes=tuple(map(len, distinct)),
        kernel_images=tuple(distinct.index(image) if image else -1 for image in alone),
        kernel_table=tuple((mlir.StringAttr(e["name"]).value, tuple(e["arguments"])) for e in entries),
        kernel_accesses=tuple(tuple(e["accesses"]) for e in entries),
        kernel_launches=tuple(mlir.IntegerAttr(e["launches"]).value for e in entries),
        host_work=tuple(mlir.StringAttr(line).value for line in lines),
        kernel_places=tuple(mlir.StringAttr(e["place"]).value for e in entries),
        host_inputs=tuple(attributes[HOST_INPUTS]) if HOST_INPUTS in attributes else (),
        host_workspace_bytes=attributes["mlirml.host_workspace"].value if "mlirml.host_workspace" in attributes else 0,
        host_workspace_terms=cpu.terms(attributes, "mlirml.host_workspace_terms"),
        alignment=ALIGNMENT,
        most_elements=device.array_elements,
        most_bytes=device.array_bytes,
        constants=constants,
        deferred_checks=tuple((e["check"].value, e["limit"].value, e["bits"].value, e["base"].value) for e in deferred),
    )
