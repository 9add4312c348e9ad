"""Metal's devices, through the same library as Vulkan's."""

from __future__ import annotations

import os
from functools import cache

from mlirml.errors import TargetError
from mlirml.runtime import _native, vulkan
from mlirml.runtime.driver import NativeDriver

_BACKEND = 4


def count() -> int:
    """The number of Metal's devices; raises `TargetError` that says what is missing."""
    return int(library().count)


@cache
def open_device(index: int) -> NativeDriver:
    """A device by its number; raises `TargetError` that says what is missing."""
    return vulkan.open_with(library(), index)


@cache
def library() -> _native.WgpuLibrary:
    """wgpu-native, asked for Metal's devices alone."""
    if os.uname().sysname != "Darwin":
        raise TargetError(
            "Metal is a part of macOS, and this is another system",
            help='target="webgpu" makes the same kernels, and runs them on Vulkan devices',
        )
    return _native.WgpuLibrary(vulkan.library_path(), _BACKEND)
