"""Runs a Python function as one kernel function, in PTX that is executed in NumPy, and counts its memory traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.analysis.shared_memory import dynamic_bytes
from mlirml.ir.bindings import mlir, operations
from mlirml.passes import parse_pipeline
from mlirml.pipelines.gpu import TO_NVVM
from mlirml.targets.cuda import emit_ptx
from tests.codegen.gpu.gpu_harness import as_kernel, read_plan
from tests.targets.emulation.instructions import RULES
from tests.targets.emulation.memory import GlobalMemory
from tests.targets.emulation.ptx import parse
from tests.targets.emulation.threads import Program, launch
from tests.targets.emulation.traffic import Traffic

_START, _ALIGNMENT = 1 << 62, 256


def run(
    function: Callable[..., Any], *arrays: np.ndarray, outs: list[np.ndarray], options: str = ""
) -> tuple[list[np.ndarray], dict[str, Traffic], str]:
    """The results of a function, the traffic of each of its kernels, and their PTX."""
    module = as_kernel(function, *arrays, target="cuda")
    parse_pipeline(f"mlirml-schedule-kernels{{device=cuda {options}}}").run(module.operation)
    plan = read_plan(module, "k")
    blocks = {
        op.attributes["sym_name"].value: tuple(op.attributes["known_block_size"])
        for op in operations(module.operation)
        if op.name == "gpu.func"
    }
    shared = {
        op.attributes["sym_name"].value: dynamic_bytes(op)
        for op in operations(module.operation)
        if op.name == "gpu.func"
    }
    text = ptx_of(module)
    buffers = [np.ascontiguousarray(array).copy() for array in (*arrays, *outs)]
    buffers += [np.zeros(size, np.uint8) for size in plan.temporaries]
    allocations, at = [], _START
    for buffer in buffers:
        allocations.append((at, buffer.ctypes.data, buffer.nbytes))
        at += -(-max(buffer.nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
    memory = GlobalMemory(allocations)
    kernels, counts = parse(text), dict[str, Traffic]()
    starts = [start for start, _, _ in allocations]
    for each in plan.launches:
        arguments = [starts[number] if number >= 0 else -number for number in each.buffers]
        traffic = counts.setdefault(each.name, Traffic())
        launch(
            Program(RULES), kernels[each.name], (each.grid, blocks[each.name]), arguments, memory, traffic=traffic,
            shared_bytes=shared[each.name],
        )  # fmt: skip
    return buffers[len(arrays) : len(arrays) + len(outs)], counts, text


def ptx_of(module: mlir.Module) -> str:
    """The PTX of scheduled kernels."""
    for op in [op for op in operations(module.operation) if op.name == "func.func"]:
        op.erase()
    parse_pipeline(",".join(TO_NVVM)).run(module.operation)
    return emit_ptx(module)
