"""NVIDIA devices, through the library of NVIDIA's driver, which is opened when it is needed first."""

from __future__ import annotations

from functools import cache

from mlirml.runtime import _native
from mlirml.runtime.driver import NativeDriver

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76
_ATTRIBUTES = {
    "workgroup_threads": 1,
    "workgroup_bytes": 97,
    "subgroup": 10,
    "multiprocessors": 16,
}
"""Facts that code depends on, by the numbers of the driver's `CUdevice_attribute`."""


def count() -> int:
    """The number of CUDA devices; raises `TargetError` that says what is missing."""
    return int(library().count)


@cache
def open_device(index: int) -> NativeDriver:
    """A device by its number; raises `TargetError` that says what is missing."""
    native = _native.CudaDevice(library(), index)
    facts = {name: native.attribute(number) for name, number in _ATTRIBUTES.items()}
    architecture = f"sm_{native.attribute(_MAJOR)}{native.attribute(_MINOR)}"
    return NativeDriver(native, native.memory, {"architecture": architecture, **facts})


@cache
def library() -> _native.CudaLibrary:
    """The driver's library."""
    return _native.CudaLibrary(LIBRARY)
