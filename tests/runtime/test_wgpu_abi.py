"""Our declarations of wgpu's C interface have the layout of the headers in its wheel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mlirml.errors import TargetError
from mlirml.runtime import vulkan

NATIVE = Path(__file__).parents[2] / "mlirml/runtime/native"
STRUCTS = {
    "InstanceDescriptor": "InstanceDescriptor", "InstanceExtras": "InstanceExtras", "AdapterInfo": "AdapterInfo",
    "EnumerateOptions": "InstanceEnumerateAdapterOptions", "Limits": "Limits", "DeviceDescriptor": "DeviceDescriptor",
    "BufferDescriptor": "BufferDescriptor", "ShaderSourceSpirv": "ShaderSourceSPIRV",
    "ComputePassDescriptor": "ComputePassDescriptor", "ComputePipelineDescriptor": "ComputePipelineDescriptor",
    "BindGroupLayoutEntry": "BindGroupLayoutEntry", "BindGroupLayoutDescriptor": "BindGroupLayoutDescriptor",
    "PipelineLayoutDescriptor": "PipelineLayoutDescriptor", "BindGroupEntry": "BindGroupEntry",
    "BindGroupDescriptor": "BindGroupDescriptor",
}  # fmt: skip
PLACES = [
    ("Limits", "storage_binding_bytes", "Limits", "maxStorageBufferBindingSize"),
    ("Limits", "workgroup_bytes", "Limits", "maxComputeWorkgroupStorageSize"),
    ("Limits", "workgroups", "Limits", "maxComputeWorkgroupsPerDimension"),
    ("DeviceDescriptor", "lost", "DeviceDescriptor", "deviceLostCallbackInfo"),
    ("DeviceDescriptor", "error", "DeviceDescriptor", "uncapturedErrorCallbackInfo"),
    ("BindGroupLayoutEntry", "buffer", "BindGroupLayoutEntry", "buffer"),
    ("InstanceExtras", "backends", "InstanceExtras", "backends"),
    ("AdapterInfo", "subgroup_max", "AdapterInfo", "subgroupMaxSize"),
]


def test_layouts_are_those_of_the_headers() -> None:
    try:
        headers = Path(vulkan.library_path()).parent
    except TargetError as error:
        pytest.skip(error.message)
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    checks = [f"static_assert(sizeof(mlirml::wgpu::{a}) == sizeof(WGPU{b}));" for a, b in STRUCTS.items()]
    checks += [f"static_assert(offsetof(mlirml::wgpu::{a}, {x}) == offsetof(WGPU{b}, {y}));" for a, x, b, y in PLACES]
    source = '#include "wgpu_abi.h"\n#include "webgpu.h"\n#include "wgpu.h"\n' + "\n".join(checks)
    command = [compiler, "-std=c++17", "-w", "-fsyntax-only", f"-I{NATIVE}", f"-I{headers}", "-x", "c++", "-"]
    done = subprocess.run(command, input=source, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
