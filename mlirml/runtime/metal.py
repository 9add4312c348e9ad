"""Metal devices, through the same library as Vulkan devices."""

from __future__ import annotations

import os
from functools import cache

from mlirml.errors import TargetError
from mlirml.runtime import _native, vulkan
from mlirml.runtime.driver import NativeDriver

_BACKEND = 4


def count() -> int:
    """The number of Metal devices; raises `TargetError` that names the missing part of the installation."""
    return int(library().count)


@cache
def open_device(index: int) -> NativeDriver:
    """Open a device by its index; raises `TargetError` that names the missing part of the installation."""
    return vulkan.open_with(library(), index)


@cache
def library() -> _native.WgpuLibrary:
    """wgpu-native, restricted to Metal devices."""
    if os.uname().sysname != "Darwin":
        raise TargetError(
            "Metal is a part of macOS, and this is another system",
            help='target="webgpu" makes the same kernels, and runs them on Vulkan devices',
        )
    return _native.WgpuLibrary(vulkan.library_path(), _BACKEND)
