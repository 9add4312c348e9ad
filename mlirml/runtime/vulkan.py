"""Vulkan devices, through the library in the package `wgpu`."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

from mlirml.errors import TargetError
from mlirml.runtime import _native
from mlirml.runtime.driver import NativeDriver

_LIBRARY = f"libwgpu_native-release.{'dylib' if os.uname().sysname == 'Darwin' else 'so'}"


def count() -> int:
    """The number of Vulkan devices; raises `TargetError` that names the missing part of the installation."""
    return int(library().count)


@cache
def open_device(index: int) -> NativeDriver:
    """Open a device by its index; raises `TargetError` that names the missing part of the installation."""
    return open_with(library(), index)


def open_with(library: _native.WgpuLibrary, index: int) -> NativeDriver:
    """Open a device that the library has found."""
    native = _native.WgpuDevice(library, index)
    capabilities = {"emulated": native.emulated, "features": tuple(sorted(native.features)), "driver": native.driver}
    # wgpu does not report the size of the memory.
    return NativeDriver(native, 0, {**capabilities, **native.limits})


@cache
def library() -> _native.WgpuLibrary:
    """wgpu-native. Its Python package is not imported, which would take a tenth of a second."""
    return _native.WgpuLibrary(library_path())


def library_path() -> str:
    """The path of the library; raises `TargetError` if its package is not installed."""
    found = importlib.util.find_spec("wgpu")
    if found is None or not found.submodule_search_locations:
        raise TargetError("the package `wgpu` is not installed", help="`pip install wgpu` (or `mlirml[vulkan]`)")
    path = os.path.join(next(iter(found.submodule_search_locations)), "resources", _LIBRARY)
    if not os.path.exists(path):
        raise TargetError(f"the package `wgpu` has no {_LIBRARY} for this machine", help="install it again")
    return path
