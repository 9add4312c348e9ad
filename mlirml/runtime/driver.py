"""What a device can do: the few operations that pools, arrays and programs are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Driver(Protocol):
    """An open device. All work is done in the order of the calls; only what says so waits for it.

    A copy from the host or to it may be made earlier: beside kernels, behind the work up to the mark `after`. Work that
    comes later sees what was copied.

    Addresses are the device's own numbers: what lies at one can only be reached through the driver. A method raises
    `MemoryError` when the device has no memory left and `LaunchError` when it was lost.
    """

    name: str
    memory: int
    """Bytes in all; 0 where the driver does not tell."""
    capabilities: Mapping[str, Any]

    def alloc(self, nbytes: int) -> int:
        """The address of new memory, aligned to 256 bytes."""
        ...

    def free(self, address: int) -> None:
        """Give memory back once the work that uses it is done."""
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
        """A number for the work so far; larger numbers are later."""
        ...

    def wait(self, mark: int, timeout: float | None = None) -> bool:
        """Wait until the work up to a mark is done, for at most `timeout` seconds; whether it is."""
        ...


class NativeDriver:
    """A device that the native runtime has opened: what `Driver` asks for, `load` and `run` for compiled programs."""

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
        self.run = native.run

    def copy_in(self, address: int, source: Bytes, after: int | None = None) -> None:
        """As `Driver` has it; where there is one queue every copy waits for all work before it."""
        self.native.copy_in(address, source)

    def copy_out(self, target: Bytes, address: int, after: int | None = None) -> None:
        """The same to the host."""
        self.native.copy_out(target, address)
