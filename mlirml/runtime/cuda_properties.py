"""All attributes of a CUDA device, read through cuda-python if it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

_NATIVE = {
    "MAX_THREADS_PER_BLOCK": 1, "MAX_SHARED_MEMORY_PER_BLOCK": 8, "WARP_SIZE": 10, "MAX_REGISTERS_PER_BLOCK": 12,
    "CLOCK_RATE": 13, "MULTIPROCESSOR_COUNT": 16, "INTEGRATED": 18, "MEMORY_CLOCK_RATE": 36,
    "GLOBAL_MEMORY_BUS_WIDTH": 37, "L2_CACHE_SIZE": 38, "MAX_THREADS_PER_MULTIPROCESSOR": 39,
    "COMPUTE_CAPABILITY_MAJOR": 75, "COMPUTE_CAPABILITY_MINOR": 76, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
}  # fmt: skip
"""Some of the driver's `CUdevice_attribute`s, for installations without cuda-python."""
_PREFIX = "CU_DEVICE_ATTRIBUTE_"


def properties(native: Any, index: int) -> Mapping[str, Any]:
    """The attributes of a device by the driver's names without their prefix; with cuda-python all, and its UUID."""
    try:
        driver = importlib.import_module("cuda.bindings.driver")
        device = _result(driver.cuDeviceGet(index))
    except (ImportError, RuntimeError):  # it is not installed, or does not find the driver's library
        return {name: native.attribute(number) for name, number in _NATIVE.items()}
    found: dict[str, Any] = {}
    for attribute in driver.CUdevice_attribute:
        name = attribute.name.removeprefix(_PREFIX)
        value = None if name == "MAX" else _result(driver.cuDeviceGetAttribute(attribute, device))
        if value is not None:
            found[name] = value
    uuid = _result(driver.cuDeviceGetUuid(device))
    if uuid is not None:
        found["UUID"] = bytes(uuid.bytes).hex()
    return found


def _result(answer: tuple[Any, ...]) -> Any:
    """The result of a call of cuda-python; None if it failed, as older drivers do for newer attributes."""
    status, *values = answer
    return values[0] if int(status) == 0 else None
