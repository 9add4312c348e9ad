"""The memory of an emulated device: accesses by all threads at once, inside of allocations, aligned, without races."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np

from tests.targets.emulation.ptx import UNSIGNED

_NEVER, _IN_FLIGHT = -2, -1


class Fault(Exception):
    """What a GPU would do wrong, or refuse."""


class GlobalMemory:
    """Allocations, each with its address on the device, that of its bytes in this process, and its size."""

    def __init__(self, allocations: Sequence[tuple[int, int, int]]) -> None:
        self.allocations = sorted(allocations)
        self.starts = np.array([start for start, _, _ in self.allocations], np.int64)
        self._constants: dict[str, np.ndarray] = {}

    def constant(self, name: str, data: np.ndarray) -> int:
        """The address of an array of the module."""
        if name not in self._constants:
            kept = self._constants[name] = np.ascontiguousarray(data)
            self.allocations = sorted([*self.allocations, (kept.ctypes.data, kept.ctypes.data, kept.nbytes)])
            self.starts = np.array([start for start, _, _ in self.allocations], np.int64)
        return int(self._constants[name].ctypes.data)

    def parts(self, address: np.ndarray, size: int, unit: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Accesses by the allocation that they are in: which of them, its elements, and where in these they begin."""
        if (address % size).any():
            raise Fault(f"a misaligned address of {size} bytes")
        numbers = np.searchsorted(self.starts, address, side="right") - 1
        for number in np.unique(numbers):
            chosen = numbers == number
            start, here, extent = self.allocations[number] if number >= 0 else (0, 0, 0)
            offset = address[chosen] - start
            if (offset + size > extent).any():
                raise Fault("an address outside of all allocations")
            raw = (ctypes.c_uint8 * (extent // unit * unit)).from_address(here)
            yield chosen, np.ctypeslib.as_array(raw).view(UNSIGNED[8 * unit]), offset // unit

    def load(self, address: np.ndarray, size: int, unit: int) -> np.ndarray:
        """The elements of `unit` bytes at each address."""
        found = np.empty((len(address), size // unit), UNSIGNED[8 * unit])
        for chosen, elements, first in self.parts(address, size, unit):
            found[chosen] = elements[first[:, None] + np.arange(size // unit)]
        return found

    def store(self, address: np.ndarray, values: np.ndarray, unit: int) -> None:
        """Store elements at each address; of threads that store to one address the last wins."""
        size = values.shape[1] * unit
        for chosen, elements, first in self.parts(address, size, unit):
            elements[first[:, None] + np.arange(size // unit)] = values[chosen]


class SharedMemory:
    """The shared memory of some blocks. Times are counted in barriers, for each byte and its last user."""

    def __init__(self, blocks: int, size: int) -> None:
        shape = (blocks, max(size, 16))
        self.data = np.full(shape, 0xFF, np.uint8)
        self.time = np.zeros(blocks, np.int32)
        self.written = np.full(shape, _NEVER, np.int32)
        self.read = np.full(shape, _NEVER, np.int32)
        self.writer = np.full(shape, -1, np.int32)
        self.reader = np.full(shape, -1, np.int32)  # -2 for several

    def place(self, block: np.ndarray, address: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of accesses, as indices."""
        if (address % size).any():
            raise Fault(f"a misaligned address of {size} bytes in shared memory")
        if ((address < 0) | (address + size > self.data.shape[1])).any():
            raise Fault("an address outside of shared memory")
        return block[:, None], address[:, None] + np.arange(size)

    def load(self, block: np.ndarray, thread: np.ndarray, address: np.ndarray, size: int) -> np.ndarray:
        """The bytes at each address."""
        at = self.place(block, address, size)
        now, own = self.time[block][:, None], thread[:, None]
        if (self.written[at] == _IN_FLIGHT).any():
            raise Fault("shared memory is read before its copy was waited for")
        if (self.written[at] == _NEVER).any():
            raise Fault("shared memory is read before it was written")
        if ((self.written[at] == now) & (self.writer[at] != own)).any():
            raise Fault("shared memory is read without a barrier after the store of another thread")
        several = (self.read[at] == now) & (self.reader[at] != own)
        self.read[at] = now
        self.reader[at] = own
        again = self.reader[at] != own  # threads of one load that read one byte
        mark = self.reader[at]
        mark[several | again] = -2
        self.reader[at] = mark
        return self.data[at]

    def store(self, block: np.ndarray, thread: np.ndarray, address: np.ndarray, values: np.ndarray) -> None:
        """Store bytes at each address."""
        at = self.place(block, address, values.shape[1])
        self.check_store(at, block, thread)
        self.data[at] = values
        self.written[at] = self.time[block][:, None]

    def check_store(self, at: tuple[np.ndarray, np.ndarray], block: np.ndarray, thread: np.ndarray) -> None:
        """Fail where another thread has used a byte since the last barrier."""
        now, own = self.time[block][:, None], thread[:, None]
        if ((self.read[at] == now) & (self.reader[at] != own)).any():
            raise Fault("shared memory is written without a barrier after the load of another thread")
        if ((self.written[at] == now) & (self.writer[at] != own)).any():
            raise Fault("two threads write to one place of shared memory")
        self.writer[at] = own
        if (self.writer[at] != own).any():
            raise Fault("two threads write to one place of shared memory at once")

    def begin_copy(self, block: np.ndarray, thread: np.ndarray, address: np.ndarray, size: int) -> None:
        """Note that bytes are being copied."""
        at = self.place(block, address, size)
        self.check_store(at, block, thread)
        self.written[at] = _IN_FLIGHT

    def end_copy(self, block: np.ndarray, address: np.ndarray, values: np.ndarray) -> None:
        """Store what was copied, which the thread that waited for it may read now."""
        at = block[:, None], address[:, None] + np.arange(values.shape[1])
        self.data[at] = values
        self.written[at] = self.time[block][:, None]
