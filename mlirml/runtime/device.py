"""The devices of this machine, opened at first use."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.runtime.deferred import Pending
from mlirml.runtime.driver import Driver
from mlirml.runtime.memory import MemoryStatistics, Pool

_DRIVERS = {
    "cuda": "mlirml.runtime.cuda",
    "metal": "mlirml.runtime.metal",
    "vulkan": "mlirml.runtime.vulkan",
}
"""The modules of the backends other than the CPU, the preferred first; each has `count()` and `open_device(index)`.

Both raise `TargetError` that names the missing part of the installation; `count()` returns 0 if only a device is
missing.
"""


class Device:
    """A device by its name, `cpu`, `vulkan:0`, `cuda:1`. There is one object for each; open it by using it.

    `id` is the name, `kind` the part before the colon, which is a target's name too.
    """

    def __init__(self, backend: str, index: int) -> None:
        self.kind = backend
        self.index = index
        self.id = backend if backend == "cpu" else f"{backend}:{index}"
        self._lock = threading.RLock()
        self._pending: list[Pending] = []

    def __repr__(self) -> str:
        return f"Device({self.id!r})"

    def __reduce__(self) -> Any:
        return device, (self.id,)

    @cached_property
    def driver(self) -> Driver:
        """The open device; raises `TargetError` that names the missing part of the installation. The CPU has none."""
        if self.kind == "cpu":
            raise TargetError("the CPU needs no driver")
        with self._lock:
            known = self.__dict__.get("driver")
            return known if known is not None else _module(self.kind).open_device(self.index)

    @cached_property
    def pool(self) -> Pool:
        """The memory of the device."""
        return Pool(self.driver, self.id)

    @property
    def name(self) -> str:
        """The name that the vendor gives the device."""
        return _processor() if self.kind == "cpu" else self.driver.name

    @property
    def memory(self) -> int:
        """Size of the device memory in bytes; 0 if the driver does not report it."""
        if self.kind == "cpu":
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return self.driver.memory

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The features and limits that generated code depends on: dtypes, sizes, extensions."""
        return {} if self.kind == "cpu" else self.driver.capabilities

    @cached_property
    def properties(self) -> Mapping[str, Any]:
        """All attributes that the driver of a CUDA device reports, by its own names; more with cuda-python."""
        tell = getattr(self.driver, "properties", None) if self.kind == "cuda" else None
        return {} if tell is None else dict(tell())

    def synchronize(self) -> None:
        """Wait until all work is done; raises the error of a check that has failed."""
        if self.kind != "cpu":
            self.driver.wait(self.driver.mark())
            self.settle()

    def watch(self, pending: Pending) -> None:
        """Make the deferred checks of a call when the host next waits for the device."""
        with self._lock:
            self._pending.append(pending)
            if len(self._pending) > _MOST_PENDING:
                self.settle()

    def settle(self) -> None:
        """Wait for the checks of the calls so far; raises the error of the first failed one, once."""
        if not self._pending:
            return
        with self._lock:
            while self._pending:
                failure = self._pending.pop(0).failure(self.driver)
                if failure is not None:
                    raise failure from None

    def statistics(self) -> MemoryStatistics:
        """The memory in use by arrays and programs, and the memory cached for later."""
        return MemoryStatistics(0, 0, 0, None, 0, 0) if self.kind == "cpu" else self.pool.statistics()

    def set_memory_limit(self, nbytes: int | None) -> None:
        """Limit the memory in use to `nbytes`; None for no limit."""
        if nbytes is not None and nbytes < 0:
            raise ValueError(f"a number of bytes cannot be negative, got {nbytes}")
        if self.kind == "cpu":
            raise TargetError("the memory of the CPU has no limit of its own")
        self.pool.limit = nbytes

    def reset(self) -> None:
        """Free the cached memory, and restart the peak statistics."""
        if self.kind != "cpu":
            self.synchronize()
            self.pool.release()
            self.pool.reset_peak()


_MOST_PENDING = 256
_KNOWN: dict[str, Device] = {}
_LOCK = threading.Lock()


def devices() -> list[Device]:
    """All devices of this machine, the CPU first. Backends whose driver is not installed are left out.

    >>> import mlirml as ml
    >>> ml.devices()[0].id
    'cpu'
    """
    return [_known("cpu", 0), *(_known(kind, i) for kind in _DRIVERS for i in range(_count(kind)))]


def device(name: str | Device = "auto") -> Device:
    """The device of a name.

    Parameters:
        name: "cpu", or the name of a backend and an index, such as "cuda:1" and "vulkan:0"; without an index the first
            device of the backend. "auto" is `config.device`, the first GPU, or the CPU if there is none.

    Returns the one object for this device. It has `id`, its name; `kind`, which is a target's name too; `name`, what
    the maker calls it; `memory` in bytes; `synchronize()`, which waits until all work is done; `statistics()`,
    `set_memory_limit(nbytes)` and `reset()` for its memory.

    Raises `TargetError` if there is no such device, with the reason, and `TypeError` if `name` is not a string.

    >>> import mlirml as ml
    >>> ml.device("cpu").kind
    'cpu'
    """
    if isinstance(name, Device):
        return name
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a device, got {name!r}")
    if name == "auto":
        return device(config.device) if config.device is not None else next(_best())
    kind, colon, number = name.partition(":")
    if kind not in ("cpu", *_DRIVERS) or (colon and not number.isdecimal()) or (kind == "cpu" and colon):
        known = ", ".join(f'"{d.id}"' for d in devices())
        raise TargetError(f"there is no device {name!r}", help=f'the devices here are {known}, and "auto"')
    index = int(number or 0)
    if kind != "cpu":
        there = _module(kind).count()
        if index >= there:
            have = f"there are {there}, counted from 0" if there else "there is none"
            raise TargetError(f"there is no device {name!r}: of type {kind!r} {have}")
    return _known(kind, index)


def _best() -> Iterator[Device]:
    for kind in _DRIVERS:
        for index in range(_count(kind)):
            found = _known(kind, index)
            if not found.capabilities.get("emulated"):
                yield found
    yield _known("cpu", 0)


def _known(backend: str, index: int) -> Device:
    with _LOCK:
        new = Device(backend, index)
        return _KNOWN.setdefault(new.id, new)


def _count(backend: str) -> int:
    try:
        return int(_module(backend).count())
    except TargetError:
        return 0


def _module(backend: str) -> Any:
    return importlib.import_module(_DRIVERS[backend])


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return os.uname().machine
