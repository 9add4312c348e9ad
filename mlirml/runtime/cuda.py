"""NVIDIA devices, through the library of NVIDIA's driver, which is opened when it is needed first."""

from __future__ import annotations

from functools import cache
from typing import Any

from mlirml.runtime import _native

LIBRARY = "libcuda.so.1"
_ATTRIBUTES = {
    "workgroup_threads": 1,
    "workgroup_bytes": 97,
    "subgroup": 10,
    "multiprocessors": 16,
}
"""Facts that code depends on, by the numbers of the driver's `CUdevice_attribute`."""


class CudaDriver:
    """An open CUDA device: what `Driver` asks for, and `load` and `run` for compiled programs."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.name: str = native.name
        self.memory: int = native.memory
        major, minor = native.attribute(75), native.attribute(76)
        self.capabilities = {
            "architecture": f"sm_{major}{minor}",
            **{name: native.attribute(number) for name, number in _ATTRIBUTES.items()},
        }
        self.alloc = native.alloc
        self.free = native.free
        self.copy_in = native.copy_in
        self.copy_out = native.copy_out
        self.copy = native.copy
        self.mark = native.mark
        self.wait = native.wait
        self.load = native.load
        self.run = native.run


def count() -> int:
    """The number of CUDA devices; raises `TargetError` that says what is missing."""
    return int(library().count)


@cache
def open_device(index: int) -> CudaDriver:
    """A device by its number; raises `TargetError` that says what is missing."""
    return CudaDriver(_native.CudaDevice(library(), index))


@cache
def library() -> _native.CudaLibrary:
    """The driver's library."""
    return _native.CudaLibrary(LIBRARY)
