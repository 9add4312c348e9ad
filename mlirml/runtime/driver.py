"""The interface of a device: the few operations that pools, arrays and programs are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Driver(Protocol):
    """An open device. All work is executed in the order of the calls; methods do not wait for it unless documented.

    A copy from the host or to it may run earlier: concurrently with kernels, after the work up to the mark `after`.
    Later work sees the copied data.

    Addresses are device addresses: the memory is accessible only through the driver. A method raises `MemoryError` when
    the device is out of memory and `LaunchError` when it was lost.
    """

    name: str
    memory: int
    """Size of the device memory in bytes; 0 if the driver does not report it."""
    capabilities: Mapping[str, Any]

    def alloc(self, nbytes: int) -> int:
        """The address of new memory, aligned to 256 bytes."""
        ...

    def free(self, address: int) -> None:
        """Free memory once the work that uses it is done."""
        ...

    def copy_in(self, address: int, source: Bytes, after: int | None = None) -> None:
        """Copy from the host; `source` may change as soon as this returns."""
        ...

    def copy_out(self, target: Bytes, address: int, after: int | None = None) -> None:
        """Copy to the host; waits for the work before it, or up to a mark."""
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device."""
        ...

    def mark(self) -> int:
        """A mark of the work so far; a larger mark is later."""
        ...

    def wait(self, mark: int, timeout: float | None = None) -> bool:
        """Wait until the work up to a mark is done, for at most `timeout` seconds; returns True if it is done."""
        ...


class NativeDriver:
    """A device opened by the native runtime: implements `Driver`, and `load` and `run` for compiled programs."""

    def __init__(self, native: Any, memory: int, capabilities: Mapping[str, Any]) -> None:
        self.native = native
        self.name: str = native.name
        self.memory = memory
        self.capabilities = capabilities
        self.alloc = native.alloc
        self.free = native.free
        self.copy = native.copy
        self.mark = native.mark
        self.wait = native.wait
        self.load = native.load

    def run(self, entry: int, pointers: Sequence[int], module: Any, waits: bool = False, host: Any = None) -> None:
        """Run the host code of a program; `waits` for each kernel, to know which one fails."""
        self.native.run(entry, pointers, module, waits, host)

    def copy_in(self, address: int, source: Bytes, after: int | None = None) -> None:
        """As in `Driver`; on a device with one queue every copy waits for all work before it."""
        self.native.copy_in(address, source)

    def copy_out(self, target: Bytes, address: int, after: int | None = None) -> None:
        """As in `Driver`; waits for all work before it."""
        self.native.copy_out(target, address)
