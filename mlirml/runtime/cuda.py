"""NVIDIA devices, through the driver's library."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NoReturn

from mlirml.errors import TargetError

_LIBRARY = "libcuda.so.1"


@cache
def count() -> int:
    """The number of NVIDIA devices; raises `TargetError` that says what is missing."""
    try:
        library: Any = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise TargetError(
            f"there is no NVIDIA driver here: {_LIBRARY} is not found",
            help='install the driver; kernels can be made without it: `ml.lower(..., target="cuda").emit("ptx")`',
        ) from None
    number = ctypes.c_int()
    if library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(number)):
        return 0
    return number.value


def open_device(index: int) -> NoReturn:
    """A device by its number; programs are only compiled for these devices so far, and run elsewhere."""
    raise TargetError(
        "programs are compiled for NVIDIA devices, but not loaded by this version",
        help='load what `ml.lower(..., target="cuda").emit("ptx")` gives, or use target="vulkan"',
    )
