"""IREE's CPU compiler, given the linalg module that mlirml captures: the same program, another compiler."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import iree.compiler
import iree.runtime as runtime
import numpy as np

import mlirml as ml
from benchmarks.workloads import WORKLOADS, Arguments
from mlirml.core.tree import flatten

_FLAGS = (
    "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)  # fmt: skip
# Its best effort fails on some programs ("exceeded stack allocation limit"): then the next.
_EFFORTS = (("--iree-opt-level=O3", "--iree-opt-data-tiling"), ("--iree-opt-data-tiling",), ("--iree-opt-level=O2",))


def version() -> str:
    """Its name and version."""
    return f"iree {metadata.version('iree-base-compiler')}"


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload's captured module, compiled by IREE; its inputs and results stay on its device."""
    if name == "call" or WORKLOADS[name].narrow or WORKLOADS[name].loops is not None or name.startswith("gradients_"):
        return None
    traced = ml.trace(WORKLOADS[name].function, *arguments)
    for number, effort in enumerate(_EFFORTS):
        try:
            code = iree.compiler.compile_str(traced.as_text(), input_type="auto", extra_args=[*_FLAGS, *effort])
            break
        except iree.compiler.CompilerToolError:
            if number + 1 == len(_EFFORTS):
                raise
    # Inline for one thread: its task system would share the core with the thread that waits.
    if threads > 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = runtime.Config("local-task" if threads > 1 else "local-sync")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
    function = context.modules.module["main"]
    arrays = [*flatten(arguments)[0], *traced.constants]
    inputs = [runtime.asdevicearray(config.device, np.ascontiguousarray(x)) for x in arrays]
    return lambda: function(*inputs)


def to_numpy(result: Any) -> Any:
    """The result as an array."""
    return result.to_host()
