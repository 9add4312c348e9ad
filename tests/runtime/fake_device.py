"""A device whose work is done when somebody waits for it, and which can be lost: what no real one does on demand."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.errors import LaunchError

Bytes = npt.NDArray[np.uint8]


class FakeDriver:
    """Memory is host memory; copies wait in a list until `wait`, `copy_out` or `finish`."""

    name = "a device for tests"

    def __init__(self, memory: int = 1 << 20) -> None:
        self.memory = memory
        self.capabilities: dict[str, Any] = {}
        self.lost = False
        self.blocks: dict[int, Bytes] = {}
        self.queue: list[tuple[int, Callable[[], None]]] = []
        self.marks = self.allocations = 0

    def alloc(self, nbytes: int) -> int:
        self.allocations += 1
        if sum(b.nbytes for b in self.blocks.values()) + nbytes > self.memory:
            raise MemoryError
        block = np.full(nbytes, 0xAB, np.uint8)
        self.blocks[block.ctypes.data] = block
        return int(block.ctypes.data)

    def free(self, address: int) -> None:
        self.finish()
        del self.blocks[address]

    def copy_in(self, address: int, source: Bytes, after: int | None = None) -> None:
        data = source.tobytes()
        self._later(lambda: ctypes.memmove(address, data, len(data)))

    def copy_out(self, target: Bytes, address: int, after: int | None = None) -> None:
        self._check()
        self.finish()
        ctypes.memmove(target.ctypes.data, address, target.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._later(lambda: ctypes.memmove(target, source, nbytes))

    def mark(self) -> int:
        return self.marks

    def wait(self, mark: int, timeout: float | None = None) -> bool:
        self._check()
        if timeout is None:
            self.finish()
        return all(number > mark for number, _ in self.queue)

    def finish(self) -> None:
        for _, work in self.queue:
            work()
        self.queue.clear()

    def _later(self, work: Callable[[], Any]) -> None:
        self._check()
        self.marks += 1
        self.queue.append((self.marks, work))

    def _check(self) -> None:
        if self.lost:
            raise LaunchError("the device fake:0 was lost")
