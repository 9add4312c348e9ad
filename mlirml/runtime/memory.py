"""A caching allocator of device memory: freed blocks are kept by size, because the driver allocates slowly."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.errors import LaunchError
from mlirml.runtime.driver import Driver

_SMALLEST = 256
_LARGE = 1 << 20


@dataclass(frozen=True)
class MemoryStatistics:
    """The memory of a device in bytes, and the number of allocations.

    `in_use` is held by arrays and running programs, `cached` is free but kept, `peak` is the maximum of `in_use`;
    `limit` bounds the sum of `in_use` and `cached`, None for no limit. `allocations` counts requests, `reused` those
    that a cached block served.
    """

    in_use: int
    cached: int
    peak: int
    limit: int | None
    allocations: int
    reused: int


class Block:
    """A block of device memory that returns to its pool when the object is deleted.

    `after` is the mark of the last work on its previous contents.
    """

    __slots__ = ("__weakref__", "address", "after", "nbytes", "pool")

    def __init__(self, pool: Pool, address: int, nbytes: int, after: int = 0) -> None:
        self.pool = pool
        self.address = address
        self.nbytes = nbytes
        self.after = after

    def __del__(self) -> None:
        self.pool.give_back(self.address, self.nbytes)


class BorrowedBlock(Block):
    """Memory of another library, which is released when the object is deleted."""

    __slots__ = ("memory",)

    def __init__(self, pool: Pool, memory: Any) -> None:
        super().__init__(pool, memory.address, 0)
        self.memory = memory

    def __del__(self) -> None:
        """Nothing to do: the `BorrowedMemory` releases the memory."""


class Pool:
    """The caching allocator of one device; safe to use from many threads.

    A freed block may be allocated at once, while the device still works on its previous contents: kernels of the next
    owner come later on the same queue, and copies from the host, which may run concurrently with them, wait for the
    mark at which the block was freed.
    """

    def __init__(self, driver: Driver, device: str) -> None:
        self._driver = driver
        self._device = device
        # Blocks are freed whenever the garbage collector runs, even during `take`.
        self._lock = threading.RLock()
        self._free: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._in_use = self._cached = self._peak = self._allocations = self._reused = 0
        self.limit: int | None = None

    def take(self, nbytes: int) -> Block:
        """Memory of at least this size; raises `LaunchError` if the device is out of memory or the limit is reached."""
        size = rounded(nbytes)
        with self._lock:
            self._allocations += 1
            kept = self._free[size]
            if kept:
                address, after = kept.pop()
                self._cached -= size
                self._reused += 1
            else:
                address, after = self._new(size), 0
            self._in_use += size
            self._peak = max(self._peak, self._in_use)
            return Block(self, address, size, after)

    def give_back(self, address: int, size: int) -> None:
        """Cache the memory of a block."""
        try:
            after = self._driver.mark()
        except LaunchError:  # the device is lost, and nobody works on the memory any more
            after = 0
        with self._lock:
            self._in_use -= size
            self._cached += size
            self._free[size].append((address, after))

    def release(self) -> None:
        """Return the cached memory to the driver."""
        with self._lock:
            for kept in self._free.values():
                while kept:
                    self._driver.free(kept.pop()[0])
            self._cached = 0

    def statistics(self) -> MemoryStatistics:
        """The current statistics."""
        with self._lock:
            return MemoryStatistics(self._in_use, self._cached, self._peak, self.limit, self._allocations, self._reused)

    def reset_peak(self) -> None:
        """Restart the peak statistics."""
        with self._lock:
            self._peak = self._in_use

    def _new(self, size: int) -> int:
        if not self._fits(size):
            self.release()
        if not self._fits(size):
            raise self._full(size, f"the limit of {_shown(self.limit or 0)} is reached", "raise the limit")
        try:
            return self._driver.alloc(size)
        except MemoryError:
            self.release()
        try:
            return self._driver.alloc(size)
        except MemoryError:
            raise self._full(size, "the device has no memory left", "use smaller arrays") from None

    def _fits(self, size: int) -> bool:
        return self.limit is None or self._in_use + self._cached + size <= self.limit

    def _full(self, size: int, why: str, instead: str) -> LaunchError:
        return LaunchError(
            f"{self._device}: out of memory: {_shown(size)} were asked for and {why}",
            notes=(f"{_shown(self._in_use)} are in use by arrays and programs",),
            help=f"delete arrays that are not needed any more, or {instead}",
        )


def rounded(nbytes: int) -> int:
    """The size class of a request: a power of two, or whole MiB above one, so that freed blocks can be reused."""
    if nbytes > _LARGE:
        return -(-nbytes // _LARGE) * _LARGE
    return max(_SMALLEST, 1 << max(0, nbytes - 1).bit_length())


def _shown(nbytes: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024  # type: ignore[assignment]
    return f"{nbytes:.4g} GiB"
