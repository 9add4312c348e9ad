"""`python -m benchmarks.devices.pools`: what memory of a CUDA device costs, from mlirml's pool, from the driver's
(`cuMemAllocAsync`, whose pool keeps all that it has), and from `cuMemAlloc`. Microseconds for a block that is taken and
given back, medians, as JSON."""

from __future__ import annotations

import ctypes
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import mlirml as ml
from mlirml.runtime import cuda

SIZES = {"4 KiB": 1 << 12, "1 MiB": 1 << 20, "64 MiB": 1 << 26}
_SAMPLES = 7
_SECONDS = 0.02
_KEEPS_ALL = 2**64 - 1
_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


class Allocator:
    """The driver's functions for memory, in the context and on the stream of mlirml's device."""

    def __init__(self, where: Any) -> None:
        self.library = ctypes.CDLL(cuda.LIBRARY)
        self.stream = ctypes.c_void_p(where.driver.stream)
        self.address = ctypes.c_uint64()
        device, context, pool = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        keeps = ctypes.c_uint64(_KEEPS_ALL)
        self._need(self.library.cuDeviceGet(ctypes.byref(device), 0))
        self._need(self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self._need(self.library.cuCtxPushCurrent_v2(context))
        self._need(self.library.cuDeviceGetDefaultMemPool(ctypes.byref(pool), device))
        self._need(self.library.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, ctypes.byref(keeps)))

    def _need(self, result: int) -> None:
        if result:
            raise RuntimeError(f"CUDA error {result}")

    def in_stream_order(self, nbytes: int) -> None:
        """Take a block and give it back, by the driver's pool."""
        size = ctypes.c_size_t(nbytes)
        self._need(self.library.cuMemAllocAsync(ctypes.byref(self.address), size, self.stream))
        self._need(self.library.cuMemFreeAsync(self.address, self.stream))

    def at_once(self, nbytes: int) -> None:
        """Take a block and give it back, without a pool."""
        self._need(self.library.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(nbytes)))
        self._need(self.library.cuMemFree_v2(self.address))


def median(call: Callable[[int], object], nbytes: int) -> float:
    """The microseconds of a call."""
    call(nbytes)
    samples = []
    for _ in range(_SAMPLES):
        count, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < _SECONDS or not count:
            call(nbytes)
            count += 1
        samples.append(passed / count)
    return statistics.median(samples) * 1e6


def measure() -> dict[str, dict[str, float]]:
    """The figures by size, then by allocator."""
    where = ml.device("cuda")
    driver = Allocator(where)
    ways = {"mlirml": where.pool.take, "cuMemAllocAsync": driver.in_stream_order, "cuMemAlloc": driver.at_once}
    return {name: {way: round(median(call, nbytes), 3) for way, call in ways.items()} for name, nbytes in SIZES.items()}


if __name__ == "__main__":
    print(json.dumps(measure()))
