"""What a launch on a Vulkan device costs the host: in chains of a compiled program, and of calls of wgpu-native alone.

Two times of each: what the calling thread works (where the device is a CPU it does its own work on the same cores, in
threads of its own), and how long the call takes by the clock.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from benchmarks.startup import Times

CHAINS = (200, 1000)
"""Lengths of chains of launches whose time is told."""
_PASS = 256
"""Launches that are submitted together, as the runtime does while the device has nothing else to do."""
_SLOT, _FLOATS, _THREADS = 64, 1 << 14, 256
"""Bytes of a number, elements of the array, threads of a block; a loop of smaller kernels would stay on the host."""

_SHADER = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> number: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(THREADS) fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  y[at.x] = x[at.x] * 0.99 + f32(number[0]);
}
"""

# Sets one of two groups with the offset of its number, and launches.
_LOOP = """
define void @loop(i64 %count, ptr %set, ptr %dispatch, ptr %pass, ptr %groups) {
entry:
  %offset = alloca i32
  br label %round
round:
  %i = phi i64 [ 0, %entry ], [ %next, %round ]
  %number = trunc i64 %i to i32
  %place = mul i32 %number, SLOT
  store i32 %place, ptr %offset
  %odd = and i64 %i, 1
  %at = getelementptr ptr, ptr %groups, i64 %odd
  %group = load ptr, ptr %at
  call void %set(ptr %pass, i32 0, ptr %group, i64 1, ptr %offset)
  call void %dispatch(ptr %pass, i32 GROUPS, i32 1, i32 1)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %round, label %done
done:
  ret void
}
"""


def label(chain: int, what: str, clock: str = "work") -> str:
    """What a time of a launch in a chain is called."""
    who = "" if what == "mlirml" else f", {what}"
    return f"launch on a Vulkan device, {chain:,} in a chain{who}" + (", by the clock" if clock == "wall" else "")


def device_launches(repeats: int) -> list[Times]:
    """Seconds of the host for a launch of a small kernel, and for a call of one; none without a device.

    The compiled chains and those of wgpu-native alone take turns.
    """
    import mlirml as ml
    from mlirml.errors import TargetError

    try:
        ml.device("vulkan").driver  # noqa: B018  (opens it)
    except TargetError:
        return []
    runs: dict[tuple[int, str], tuple[Callable[[], Any], Callable[[Any], None]]] = {}
    for chain in CHAINS:
        runs[chain, "mlirml"] = compiled_chain(chain)
        runs[chain, "wgpu-native alone"] = bare_chain(chain)
    runs[1, "call"] = compiled_chain(1)
    samples: dict[tuple[int, str], list[tuple[float, float]]] = {key: [] for key in runs}
    for _ in range(10 * repeats + 1):
        for key, (start, finish) in runs.items():
            begun, clock = time.thread_time(), time.perf_counter()
            result = start()
            samples[key].append(((time.thread_time() - begun) / key[0], (time.perf_counter() - clock) / key[0]))
            finish(result)
    found = []
    for (chain, what), pairs in samples.items():
        for clock_name, seconds in zip(("work", "wall"), zip(*pairs[1:], strict=True), strict=True):
            name = label(chain, what, clock_name)
            if what == "call":
                name = "call of one kernel on a Vulkan device" + (", by the clock" if clock_name == "wall" else "")
            found.append(Times(name, tuple(seconds)))
    return found


def compiled_chain(chain: int) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """A call of so many launches that returns before they are done, and what waits for its result."""
    import numpy as np

    import mlirml as ml

    x = ml.put(np.ones(_FLOATS, np.float32), ml.device("vulkan"))

    def loop(x: Any) -> Any:
        return ml.fori_loop(0, chain, lambda i, s: s * 0.99 + i, x) if chain > 1 else x * 2 + 1

    program = ml.compile(loop, target="vulkan")
    program(x).block()
    return lambda: program(x), lambda result: result.block()


def bare_chain(chain: int) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """The same launches by calls of wgpu-native alone, their loop in machine code: what nothing above it can beat."""
    import wgpu
    from wgpu.backends.wgpu_native import ffi, lib

    from mlirml.runtime import load_object
    from mlirml.targets.llvm.codegen import compile_to_object

    vulkan = next(a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan")
    device = vulkan.request_device_sync(required_limits=dict(vulkan.limits))
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.COPY_SRC
    numbers = device.create_buffer(size=_PASS * _SLOT, usage=usage)
    arrays = [device.create_buffer(size=4 * _FLOATS, usage=usage) for _ in range(2)]
    kinds = [{"type": "storage", "has_dynamic_offset": n == 1} for n in range(3)]
    entries = [{"binding": n, "visibility": 4, "buffer": kind} for n, kind in enumerate(kinds)]  # 4: of compute shaders
    layout = device.create_bind_group_layout(entries=entries)
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={
            "module": device.create_shader_module(code=_SHADER.replace("THREADS", str(_THREADS))),
            "entry_point": "main",
        },
    )
    groups = []
    for first, second in ((0, 1), (1, 0)):
        bound = [(arrays[first], 4 * _FLOATS), (numbers, _SLOT), (arrays[second], 4 * _FLOATS)]
        resources = [
            {"binding": n, "resource": {"buffer": buffer, "offset": 0, "size": size}}
            for n, (buffer, size) in enumerate(bound)
        ]
        groups.append(device.create_bind_group(layout=layout, entries=resources))
    text = _LOOP.replace("SLOT", str(_SLOT)).replace("GROUPS", str(_FLOATS // _THREADS))
    code = load_object(compile_to_object(text))
    pointer = ctypes.c_void_p
    signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, pointer, pointer, pointer, pointer)

    def address(handle: Any) -> int:
        return int(ffi.cast("intptr_t", handle))

    functions = (address(lib.wgpuComputePassEncoderSetBindGroup), address(lib.wgpuComputePassEncoderDispatchWorkgroups))
    content = ffi.new("int32_t[]", _PASS * _SLOT // 4)

    def start() -> None:
        loop = signature(code.address("loop"))
        table = (pointer * 2)(*(address(group._internal) for group in groups))
        for first in range(0, chain, _PASS):
            count = min(_PASS, chain - first)
            encoder = lib.wgpuDeviceCreateCommandEncoder(device._internal, ffi.NULL)
            step = lib.wgpuCommandEncoderBeginComputePass(encoder, ffi.NULL)
            lib.wgpuComputePassEncoderSetPipeline(step, pipeline._internal)
            loop(count, *functions, address(step), table)
            lib.wgpuComputePassEncoderEnd(step)
            lib.wgpuComputePassEncoderRelease(step)
            lib.wgpuQueueWriteBuffer(device.queue._internal, numbers._internal, 0, content, count * _SLOT)
            commands = lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)
            lib.wgpuCommandEncoderRelease(encoder)
            lib.wgpuQueueSubmit(device.queue._internal, 1, ffi.new("WGPUCommandBuffer *", commands))
            lib.wgpuCommandBufferRelease(commands)

    def finish(_: Any) -> None:
        device.queue.read_buffer(arrays[0])

    start()
    finish(None)
    return start, finish
