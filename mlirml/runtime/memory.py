"""Device memory that is used again: freed blocks are kept by size, because asking the driver is slow."""

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
    """Bytes of a device's memory, and how often it was asked for.

    `in_use` are held by arrays and running programs, `cached` are kept for later, `peak` is the most that was in use;
    `limit` is the most that `in_use` and `cached` may come to, None for no limit. `allocations` counts requests,
    `reused` those that a kept block served.
    """

    in_use: int
    cached: int
    peak: int
    limit: int | None
    allocations: int
    reused: int


class Block:
    """Memory of a device that goes back to its pool when nobody holds the block any more.

    `after` is the mark of the last work on what it held before.
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
    """Memory of another library, which it gets back when nobody holds the block any more."""

    __slots__ = ("memory",)

    def __init__(self, pool: Pool, memory: Any) -> None:
        super().__init__(pool, memory.address, 0)
        self.memory = memory

    def __del__(self) -> None:
        """The memory is given back by its own object."""


class Pool:
    """The caching allocator of one device; safe to use from many threads.

    A block that was given back may be handed out at once, while the device still works on what it held: kernels of the
    next holder come later on the same queue, and copies from the host, which may be made beside them, wait for the mark
    that was reached when it came back.
    """

    def __init__(self, driver: Driver, device: str) -> None:
        self._driver = driver
        self._device = device
        # Blocks die wherever the garbage collector runs, in the middle of `take` too.
        self._lock = threading.RLock()
        self._free: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._in_use = self._cached = self._peak = self._allocations = self._reused = 0
        self.limit: int | None = None

    def take(self, nbytes: int) -> Block:
        """Memory of at least this size; raises `LaunchError` when the device has none left, or the limit is reached."""
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
        """Keep the memory of a block for later."""
        try:
            after = self._driver.mark()
        except LaunchError:  # the device is lost, and nobody works on the memory any more
            after = 0
        with self._lock:
            self._in_use -= size
            self._cached += size
            self._free[size].append((address, after))

    def release(self) -> None:
        """Give what is kept back to the driver."""
        with self._lock:
            for kept in self._free.values():
                while kept:
                    self._driver.free(kept.pop()[0])
            self._cached = 0

    def statistics(self) -> MemoryStatistics:
        """What is in use and kept now."""
        with self._lock:
            return MemoryStatistics(self._in_use, self._cached, self._peak, self.limit, self._allocations, self._reused)

    def reset_peak(self) -> None:
        """Count the peak from now on."""
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
    """The size of the block for a request: a power of two, or whole MiB above one, so that blocks fit again."""
    if nbytes > _LARGE:
        return -(-nbytes // _LARGE) * _LARGE
    return max(_SMALLEST, 1 << max(0, nbytes - 1).bit_length())


def _shown(nbytes: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024  # type: ignore[assignment]
    return f"{nbytes:.4g} GiB"
