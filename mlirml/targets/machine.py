"""The processor that host code is compiled for: that of this machine, or the one that `config.processor` names.

Code for a named processor is the same on every machine, so tests of the structure of code pass everywhere, and code for
older processors can be read and run. Imports neither MLIR nor llvmlite.
"""

from __future__ import annotations

import os
import re
from functools import cache

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.errors import TargetError

_SSE41 = ("sse2", "ssse3", "sse4_1")
_AVX2 = (*_SSE41, "sse4_2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_AMX = ("amx_tile", "amx_bf16")
_LEVELS = {
    "sse4.1": ("x86-64", _SSE41),
    "avx2": ("x86-64-v3", _AVX2),
    "avx512": ("x86-64-v4", _AVX512),
    "amx": ("x86-64-v4", (*_AVX512, "avx512_bf16", *_AMX)),
}
"""For each processor that can be named: LLVM's name, and the features as Linux lists them."""
_LLVM_NAMES = {
    "sse4_1": "sse4.1", "sse4_2": "sse4.2", "bmi1": "bmi", "abm": "lzcnt", "avx512_bf16": "avx512bf16",
    "amx_tile": "amx-tile", "amx_bf16": "amx-bf16",
}  # fmt: skip
"""The features whose names in Linux and LLVM differ."""
_DEFAULT_L2 = 1 << 20

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Linux: the system call `arch_prctl`, its ARCH_REQ_XCOMP_PERM, and the state component (asm/prctl.h, 5.16)."""


@dataclass(frozen=True)
class Processor:
    """A processor: its features as Linux lists them, and the size of the second-level cache of a core in bytes.

    `level` is "host" or a name that `config.processor` takes; `llvm_cpu` is LLVM's name, empty for the host.
    """

    level: str
    features: frozenset[str]
    l2_bytes: int
    llvm_cpu: str = ""

    @property
    def vector_bits(self) -> int:
        """The width of the widest vector register in bits: 512, 256 or 128."""
        if self.features >= {"avx512f", "avx512vl", "avx512bw", "avx512dq"}:
            return 512
        return 256 if "avx" in self.features else 128

    @property
    def vector_registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.vector_bits == 512 else 16

    @property
    def converts_long_vectors(self) -> bool:
        """True if instructions convert vectors of 64-bit integers to floats and back (AVX512DQ)."""
        return self.vector_bits == 512

    @property
    def has_bf16_pairs(self) -> bool:
        """True if an instruction adds products of pairs of bf16 (AVX512_BF16)."""
        return self.vector_bits == 512 and "avx512_bf16" in self.features

    @property
    def has_tiles(self) -> bool:
        """True if the processor has tile registers for bf16 (AMX), which this process may use."""
        return self.vector_bits == 512 and self.features >= {*_AMX}

    @property
    def llvm_features(self) -> str:
        """LLVM's list of features; empty for the host."""
        names = sorted(_LLVM_NAMES.get(feature, feature) for feature in self.features)
        return ",".join(f"+{name}" for name in names) if self.llvm_cpu else ""

    def key_entries(self) -> tuple[tuple[str, str], ...]:
        """Named entries of a cache key: the properties that code for this processor depends on."""
        host = host_facts()
        if not self.llvm_cpu:
            return tuple(host.items())
        return (("machine", host["machine"]), ("cpu", self.llvm_cpu), ("cpu.flags", self.llvm_features))

    def check_runs_here(self) -> None:
        """Raise `TargetError` if code for this processor has instructions that this machine's does not have."""
        missing = sorted(self.features - host_features()) if self.llvm_cpu else []
        if missing:
            raise TargetError(
                f"config.processor is {self.level!r}, and this machine's processor does not have {', '.join(missing)}",
                help="leave `config.processor` at 'host'; `.lower(...)` and `.ir(...)` show the code all the same",
            )


@dataclass(frozen=True)
class Device:
    """A device: the features of its processors, what it lacks, and its limits; 0 means no limit.

    `dtypes` are the element types that it computes with, all if there are none; `atomics` those that it adds to memory
    atomically. Operations of `host_ops` (also "name:f64", for one element type) have no instruction on it. A kernel
    takes up to `buffers` arrays of `array_bytes` or `array_elements` each, a block of threads up to `shared_bytes` of
    shared memory and `threads` threads, of which `subgroup` run together. `processors` are as many as have work when
    the device is full.
    """

    target: str
    threads: int
    shared_bytes: int
    atomics: tuple[str, ...]
    host_ops: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    buffers: int = 0
    array_bytes: int = 0
    array_elements: int = 0
    subgroup: int = 0
    tensor_cores: bool = False
    processors: int = 0


def processor() -> Processor:
    """The processor that `config.processor` names."""
    return named(config.processor)


@cache
def named(text: str) -> Processor:
    """The processor of a text that `config.processor` takes: "host", "avx2", "avx512,l2=512K"."""
    level, _, l2 = text.partition(",l2=")
    size = int(l2[:-1]) << {"K": 10, "M": 20}[l2[-1]] if l2 else None
    if level == "host":
        return Processor(level, host_features(), host_l2_bytes() if size is None else size)
    cpu, flags = _LEVELS[level]
    return Processor(level, frozenset(flags), _DEFAULT_L2 if size is None else size, cpu)


@cache
def host_facts() -> dict[str, str]:
    """The properties of this machine that code depends on: architecture, processor and features, as in Linux."""
    properties = {"machine": os.uname().machine, "cpu": "", "cpu.flags": ""}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n")[0].splitlines()
    except OSError:
        return properties
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = [fields.get(key, "") for key in ("vendor_id", "cpu family", "model", "stepping")]
    properties["cpu"] = " ".join([fields.get("model name", ""), *numbers])
    properties["cpu.flags"] = " ".join(sorted(fields.get("flags", fields.get("Features", "")).split()))
    return properties


@cache
def host_features() -> frozenset[str]:
    """The features of this machine's processor, as Linux lists them, without tile registers that Linux withholds."""
    features = frozenset(host_facts()["cpu.flags"].split())
    return features if not features >= {*_AMX} or may_use_tiles() else features - {*_AMX}


@cache
def host_l2_bytes() -> int:
    """The size of the second-level cache of one core of this machine; 1 MiB if the kernel does not report it."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index2/size", encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return _DEFAULT_L2
    found = re.fullmatch(r"(\d+)([KM])", text)
    return int(found[1]) << {"K": 10, "M": 20}[found[2]] if found else _DEFAULT_L2


@cache
def may_use_tiles() -> bool:
    """True if Linux grants this process the use of AMX tile registers; requests the permission.

    The permission holds for all threads, and for processes that are forked later. Linux refuses it if a signal stack is
    too small for eight kilobytes of registers. The answer is part of the pipeline, and so of the cache key of compiled
    programs.
    """
    import ctypes

    if os.uname().machine != "x86_64":
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 3
    return bool(call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)


@cache
def has_libmvec() -> bool:
    """True if libmvec.so.1 has all vector functions that generated code may call."""
    import ctypes

    if os.uname().machine != "x86_64":
        return False
    try:
        return hasattr(ctypes.CDLL("libmvec.so.1"), "_ZGVbN4v_tanhf")
    except OSError:
        return False
