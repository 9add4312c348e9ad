"""The measured machine: peaks of arithmetic, bandwidths of the levels of memory, costs of calls and forks.

`mlirml machine` measures them and keeps them in the cache folder, by processor and version; `measured_machine()` reads
them. They describe the machine to people, profiles and tuners. No pass reads them by itself: the code of a program
depends on the description in `mlirml.targets.machine` alone, which is the same in every run, unless `config.costs` is
"measured". Imports neither MLIR nor llvmlite.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from mlirml.core import private_folder
from mlirml.core.cache_folder import cache_folder
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.targets.machine import host_facts

VERSION = 1
"""The version of the measurements: a file of another one is measured anew."""
_FILE = "machine.json"
LEVELS = ("L1", "L2", "L3", "memory")
Pair = tuple[float, float]
"""A number for one thread and for all threads together."""


@dataclass(frozen=True)
class Level:
    """A level of memory: its bytes, of each core or shared by all, and bytes a second that are read, written, copied.

    The size of main memory is 0.

    A copy of n bytes moves 2n. Each rate is that of one thread and of all threads together.
    """

    size: int
    shared: bool
    read: Pair
    write: Pair
    copy: Pair


@dataclass(frozen=True)
class DeviceCosts:
    """A device: seconds of a launch and of the smallest copy, and bytes a second of large copies to it and from it."""

    name: str
    launch_seconds: float
    copy_seconds: float
    copy_in: float
    copy_out: float
    emulated: bool = False


@dataclass(frozen=True)
class MeasuredMachine:
    """A machine as it was measured.

    `peaks` are flops a second by dtype ("f32", "f64", and "bf16" and "i8" where the processor has instructions for
    them), `levels` the memory by name, each with one number for one thread and one for all `threads`. `call_seconds` is
    the time of a call of a compiled program from Python, `fork_seconds` that of a parallel loop beyond its work.
    """

    cpu: str
    threads: int
    peaks: Mapping[str, Pair]
    levels: Mapping[str, Level]
    call_seconds: float
    fork_seconds: float
    devices: tuple[DeviceCosts, ...] = ()
    key: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def peak(self, dtype: str, threads: int = 1) -> float:
        """Flops a second of a dtype with so many threads; 0 where it was not measured."""
        pair = self.peaks.get(dtype) or self.peaks.get("f32" if dtype in ("f16", "bf16") else dtype)
        return self._of_threads(pair, threads) if pair else 0.0

    def bandwidth_for(self, size: int, threads: int = 1) -> tuple[str, float]:
        """The level that holds so many bytes, and the most bytes a second that it reads or copies."""
        found = "memory"
        for name, level in self.levels.items():
            if level.size and size <= level.size * (1 if level.shared else threads):
                found = name
                break
        return found, self.rate_of(found, threads)

    @property
    def was_busy(self) -> bool:
        """True if all threads together computed less than three quarters of what they would one by one."""
        return any(together < 0.75 * self.threads * one for one, together in self.peaks.values())

    def rate_of(self, name: str, threads: int = 1) -> float:
        """The most bytes a second that a level reads, writes or copies; 0 for one that was not measured."""
        level = self.levels.get(name)
        if level is None:
            return 0.0
        return max(self._of_threads(pair, threads) for pair in (level.read, level.write, level.copy))

    def _of_threads(self, pair: Pair, threads: int) -> float:
        if threads <= 1 or self.threads <= 1:
            return pair[0]
        if threads >= self.threads:
            return max(pair)
        return min(max(pair), pair[0] * threads)

    def as_dict(self) -> dict[str, Any]:
        """The machine as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredMachine:
        """The machine of plain data; raises `KeyError`, `TypeError` or `ValueError` for others."""
        values = dict(data)
        values["peaks"] = {name: _pair(pair) for name, pair in values["peaks"].items()}
        values["levels"] = {name: _level(level) for name, level in values["levels"].items()}
        values["devices"] = tuple(DeviceCosts(**each) for each in values["devices"])
        return cls(**values)


def machine_key(threads: int) -> dict[str, Any]:
    """Properties that measurements depend on: the processor, the number of threads, and the version."""
    return {"version": VERSION, "threads": threads, **host_facts()}


def measured_machine(threads: int) -> MeasuredMachine | None:
    """The machine as it was measured with so many threads and kept; None where it was not."""
    if not config.cache:
        return None
    try:
        with private_folder.opened(cache_folder()) as folder:
            data = json.loads(folder.read(_FILE))
        found = MeasuredMachine.from_dict(data[str(threads)])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not there, not trusted, or of another version
        return None
    return found if dict(found.key) == machine_key(threads) else None


def keep(machine: MeasuredMachine) -> bool:
    """Keep measurements in the cache folder; False where it is switched off or cannot be written."""
    if not config.cache:
        return False
    try:
        private_folder.make(cache_folder())
        with private_folder.opened(cache_folder()) as folder:
            try:
                data = json.loads(folder.read(_FILE))
            except (OSError, ValueError):
                data = {}
            data = data if isinstance(data, dict) else {}
            content = json.dumps({**data, str(machine.threads): machine.as_dict()}, indent=1)
            folder.write(_FILE, content.encode())
    except OSError:
        return False
    return True


def _pair(value: Any) -> Pair:
    one, all_threads = value
    return float(one), float(all_threads)


def _level(data: Mapping[str, Any]) -> Level:
    rates = {name: _pair(data[name]) for name in ("read", "write", "copy")}
    return Level(int(data["size"]), bool(data["shared"]), **rates)
