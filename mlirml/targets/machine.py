"""What code is compiled for: the processor of the host, and the device, each one record that passes take as an option.

The processor is that of this machine, or the one that `config.processor` names. Code for a named processor is the same
on every machine, so tests of the structure of code pass everywhere, and code for older processors can be read and run.

The text of a record in a pipeline is a name with what differs from it: `processor=avx512+avx512_bf16,l2=2M` and
`device=vulkan,buffers=16,dtypes=f32+i32`. Imports neither MLIR nor llvmlite.
"""

from __future__ import annotations

import dataclasses
import os
import re
from functools import cache, cached_property
from typing import Any, ClassVar

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass, replace
from mlirml.errors import TargetError

_SSE41 = ("sse2", "ssse3", "sse4_1")
_AVX2 = (*_SSE41, "sse4_2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_AMX = ("amx_tile", "amx_bf16")
_NEON = ("fp", "asimd")
_SVE = (*_NEON, "fphp", "asimdhp", "sve")
_LEVELS = {
    "scalar": ("", ()),
    "generic": ("", ()),
    "sse4.1": ("x86-64", _SSE41),
    "avx2": ("x86-64-v3", _AVX2),
    "avx512": ("x86-64-v4", _AVX512),
    "amx": ("x86-64-v4", (*_AVX512, "avx512_bf16", *_AMX)),
    "neon": ("generic", _NEON),
    "sve": ("generic", _SVE),
    "sve256": ("generic", (*_SVE, "sve256")),
    "sve512": ("generic", (*_SVE, "sve512")),
}
"""For each processor that can be named, lowest first: LLVM's name, and the features as Linux lists them.

"scalar" has no vectors, as the thread of a GPU and a language without them; "generic" has those of 128 bits. Those from
"neon" on are of AArch64; SVE has registers of at least 128 bits, or of 256 and 512, which the programs then rely on.
"""
_OTHER_NAMES = {
    "x86-64": ("x86-64", ("sse2",)),
    "x86-64-v2": ("x86-64-v2", (*_SSE41, "sse4_2", "popcnt")),
    "x86-64-v3": _LEVELS["avx2"],
    "x86-64-v4": _LEVELS["avx512"],
}
"""The levels of x86-64's ABI, for which passes make what they make for one of `_LEVELS`."""
NAMES = ("host", *_OTHER_NAMES, *[name for name, (cpu, _) in _LEVELS.items() if cpu])
"""The names that `config.processor` takes."""
_FEATURES = (
    "asimd", "avx", "avx512_bf16", "avx512bw", "avx512dq", "avx512f", "avx512vl", "f16c", "fma", "ptx", "slow_bf16",
    "sve", "sve256", "sve512", *_AMX,
)  # fmt: skip
"""The features that passes depend on. "ptx" are the instructions of NVIDIA's devices."""
_NOT_OF_LLVM = ("slow_bf16", "sve256", "sve512")
"""The features that Linux and LLVM do not list. "slow_bf16": products of pairs of bf16 take Intel's processors four
times as long as products of f32 (measured on Emerald Rapids), and so twice as long for each number; AMD's as long."""
_LLVM_NAMES = {
    "sse4_1": "sse4.1", "sse4_2": "sse4.2", "bmi1": "bmi", "abm": "lzcnt", "avx512_bf16": "avx512bf16",
    "amx_tile": "amx-tile", "amx_bf16": "amx-bf16", "fp": "fp-armv8", "asimd": "neon", "asimdhp": "fullfp16",
    "fphp": "fullfp16",
}  # fmt: skip
"""The features whose names in Linux and LLVM differ."""
_DEFAULT_L2 = 1 << 20
_MOST_BUFFERS = 24
_TEXT = re.compile(
    r"(?P<level>[a-z][a-z0-9.-]*)(?P<more>(\+\w+)*)(,l2=(?P<size>[1-9]\d{0,5})(?P<unit>[KM]))?(,cores=(?P<cores>\d+))?"
)

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Linux: the system call `arch_prctl`, its ARCH_REQ_XCOMP_PERM, and the state component (asm/prctl.h, 5.16)."""


@dataclass(frozen=True)
class Processor:
    """A processor: its features as Linux lists them, and the size of the second-level cache of a core in bytes.

    `level` is "host" or a name that `config.processor` takes; `llvm_cpu` is LLVM's name, empty for the host. With one
    of the `cores` no loop is split among threads; 0 if their number is not known. The default is any x86-64 processor
    with AVX2.
    """

    expects: ClassVar[str] = "a processor, such as avx512,l2=1M"
    l1_bytes: ClassVar[int] = 32 << 10

    level: str = "avx2"
    features: frozenset[str] = frozenset(_AVX2)
    l2_bytes: int = _DEFAULT_L2
    llvm_cpu: str = "x86-64-v3"
    cores: int = 0

    @cached_property
    def vector_bits(self) -> int:
        """The width of the widest vector register in bits: 512, 256 or 128; 0 if there are none."""
        if self.level == "scalar":
            return 0
        if self.features >= {"avx512f", "avx512vl", "avx512bw", "avx512dq"}:
            return 512
        if "sve" in self.features:
            return next((bits for bits in (512, 256) if f"sve{bits}" in self.features), 128)
        return 256 if "avx" in self.features else 128

    @cached_property
    def vector_registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.vector_bits == 512 or "asimd" in self.features else 16

    @property
    def architecture(self) -> str:
        """The name of the architecture as Linux has it; that of this machine if no other is named."""
        if not self.llvm_cpu:
            return host_facts()["machine"]
        return "aarch64" if "asimd" in self.features else "x86_64"

    @property
    def has_fma(self) -> bool:
        """True if an instruction multiplies and adds with one rounding."""
        return not self.features.isdisjoint(("fma", "asimd"))

    @property
    def has_ex2(self) -> bool:
        """True if an instruction computes powers of two of f32 to 22 bits, as on NVIDIA's devices."""
        return "ptx" in self.features

    @property
    def rounds_to_bf16(self) -> bool:
        """True if an instruction converts f32 to bf16."""
        return "ptx" in self.features

    @property
    def converts_f16(self) -> bool:
        """True if instructions convert f16 to f32 and back (F16C, and all of AArch64)."""
        return not self.features.isdisjoint(("f16c", "asimd"))

    @property
    def has_avx512(self) -> bool:
        """True for AVX-512: with its vectors come x * 2^n, and conversions of 64-bit integers (AVX512DQ)."""
        return self.vector_bits == 512 and "avx512f" in self.features

    @cached_property
    def has_bf16_pairs(self) -> bool:
        """True if an instruction adds products of pairs of bf16 (AVX512_BF16) in less time than those of f32 take."""
        return self.has_avx512 and "avx512_bf16" in self.features and "slow_bf16" not in self.features

    @cached_property
    def has_tiles(self) -> bool:
        """True if the processor has tile registers for bf16 (AMX), which this process may use."""
        return self.has_avx512 and self.features >= {*_AMX}

    @property
    def llvm_features(self) -> str:
        """LLVM's list of features; empty for the host."""
        names = sorted({_LLVM_NAMES.get(name, name) for name in self.features.difference(_NOT_OF_LLVM)})
        return ",".join(f"+{name}" for name in names) if self.llvm_cpu else ""

    def lanes(self, bits: int) -> int:
        """The number of elements of this width in a vector register."""
        return self.vector_bits // bits

    def without(self, *features: str) -> Processor:
        """The processor without these features."""
        return replace(self, features=self.features.difference(features))

    @classmethod
    def parse(cls, text: str) -> Processor:
        """The processor of a text; raises `ValueError`."""
        return named(text)

    def __str__(self) -> str:
        """The text of an option of a pass: the highest level with no other features, those beyond it, and the cache.

        It names what passes depend on alone, so that it is one text for a named processor and a host that equals it.
        """
        known = {level: {*features} & {*_FEATURES} for level, (_, features) in _LEVELS.items()}
        if not self.features.issuperset(_SSE41):
            del known["sse4.1"]
        of_arm = "asimd" in self.features
        found = [
            level
            for level, features in known.items()
            if features <= self.features and (not of_arm or level in ("scalar", "generic") or "asimd" in features)
        ]
        level = found[0 if self.vector_bits == 0 else -1]
        more = [feature for feature in _FEATURES if feature in self.features and feature not in known[level]]
        text = "+".join([level, *more])
        if self.l2_bytes != _DEFAULT_L2:
            whole = self.l2_bytes % (1 << 20) == 0
            text += f",l2={self.l2_bytes >> 20}M" if whole else f",l2={self.l2_bytes >> 10}K"
        return text + (f",cores={self.cores}" if self.cores else "")

    def key_entries(self) -> tuple[tuple[str, str], ...]:
        """Named entries of a cache key: the properties that code for this processor depends on."""
        host = host_facts()
        if not self.llvm_cpu:
            return tuple(host.items())
        return (("machine", self.architecture), ("cpu", self.llvm_cpu), ("cpu.flags", self.llvm_features))

    def check_runs_here(self) -> None:
        """Raise `TargetError` if code for this processor has instructions that this machine's does not have."""
        missing = sorted(self.features.difference(host_features(), ("slow_bf16",))) if self.llvm_cpu else []
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
    shared memory and `threads` threads, of which `subgroup` run together (0: not relied on), and a grid has up to
    `blocks` of them along its first dimension. With `tensor_cores` come asynchronous copies to shared memory.
    `processors` are as many as have work when the device is full. `tile` is the architecture that kernels of tiles are
    assembled for, empty where there is no assembler. `most_shared_bytes` are those that a block may have if its launch
    asks for them, 0 if it cannot.
    """

    expects: ClassVar[str] = "a device, such as vulkan,buffers=16"

    name: str = "gpu"
    threads: int = 256
    blocks: int = (1 << 16) - 1
    shared_bytes: int = 32 << 10
    atomics: tuple[str, ...] = ()
    host_ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    buffers: int = 0
    array_bytes: int = 0
    array_elements: int = 0
    subgroup: int = 0
    tensor_cores: bool = False
    processors: int = 0
    tile: str = ""
    most_shared_bytes: int = 0

    @property
    def kernel_buffers(self) -> int:
        """The number of arrays that a kernel takes at most, for it to stay small."""
        return min(self.buffers or _MOST_BUFFERS, _MOST_BUFFERS)

    @classmethod
    def parse(cls, text: str) -> Device:
        """The device of a text; raises `ValueError`."""
        return _device(text)

    def __str__(self) -> str:
        """The text of an option of a pass: the name, and each field that a device of that name does not have so."""
        base = DEVICES.get(self.name) or Device(self.name)
        fields = [
            field.name for field in dataclasses.fields(self) if getattr(self, field.name) != getattr(base, field.name)
        ]
        return ",".join([self.name, *(f"{name.replace('_', '-')}={_shown(getattr(self, name))}" for name in fields)])


_SHADER = Device(
    threads=256,
    shared_bytes=16 << 10,
    atomics=("bf16", "f16", "f32", "i16", "i32", "i8"),
    host_ops=("math.ipowi", *(f"{name}:f64" for name in ("math.sin", "math.cos", "math.tan", "arith.remf"))),
    dtypes=("bf16", "f16", "f32", "i16", "i32", "i8"),
    buffers=8,
    array_bytes=128 << 20,
)
"""The least that a device of Vulkan or WebGPU may be.

Half floats and small integers are computed in 32 bits. Operations without a shader instruction stay on the host; those
on f64 would need one for the range reduction of large arguments.
"""
_CUDA = Device(
    "cuda",
    threads=1024,
    blocks=(1 << 31) - 1,
    shared_bytes=48 << 10,
    atomics=("bf16", "f16", "f32", "f64", "i16", "i32", "i64", "i8"),
    host_ops=("math.ipowi",),
    array_elements=(1 << 31) - 1024,
    subgroup=32,
    tensor_cores=True,
    processors=132,
    most_shared_bytes=99 << 10,
)
"""What every processor of NVIDIA from compute capability 8.0 on has; `processors` are those of the largest. Those of
8.6, 8.9 and 12.0 have the least shared memory for launches that ask for it.

Kernels compute with signed indices of 32 bits, and the last block of an array has up to 1023 threads beyond its end.
"""
DEVICES = {"cuda": _CUDA, **{name: replace(_SHADER, name=name) for name in ("metal", "vulkan", "webgpu")}}
"""The devices that a text may name; one of another name is described in full."""


@cache
def _device(text: str) -> Device:
    name, *changes = text.split(",")
    if not re.fullmatch(r"[a-z][\w-]*", name):
        raise ValueError(f"no device is {text!r}")
    base = DEVICES.get(name) or Device(name)
    values: dict[str, Any] = {}
    for change in changes:
        key, _, value = change.partition("=")
        field = key.replace("-", "_")
        default = getattr(base, field) if field in Device.__dataclass_fields__ else None
        if isinstance(default, bool):
            values[field] = {"true": True, "false": False}[value] if value in ("true", "false") else None
        elif isinstance(default, int):
            values[field] = int(value)
        elif isinstance(default, tuple):
            values[field] = tuple(filter(None, value.split("+")))
        elif isinstance(default, str):
            values[field] = value
        if values.get(field) is None or field == "name":
            raise ValueError(f"a device has no {change}")
    return replace(base, **values)


def _shown(value: bool | int | tuple[str, ...]) -> str:
    """The value of a field of a device as text."""
    return "+".join(value) if isinstance(value, tuple) else str(value).lower()


def processor() -> Processor:
    """The processor that `config.processor` names."""
    return named(config.processor)


@cache
def named(text: str) -> Processor:
    """The processor of a text: "host", "avx2", "avx512+avx512_bf16,l2=512K,cores=1"; raises `ValueError` for others."""
    match = _TEXT.fullmatch(text)
    level = match["level"] if match is not None else ""
    more = match["more"].split("+")[1:] if match is not None else []
    levels = {**_LEVELS, **_OTHER_NAMES}
    if match is None or (level != "host" and level not in levels) or not {*more} <= {*_FEATURES}:
        raise ValueError(f"no processor is {text!r}")
    size = int(match["size"]) << {"K": 10, "M": 20}[match["unit"]] if match["size"] else 0
    if level == "host":
        return Processor(level, host_features().union(more), size or host_l2_bytes(), "", int(match["cores"] or 0))
    cpu, features = levels[level]
    return Processor(level, frozenset((*features, *more)), size or _DEFAULT_L2, cpu, int(match["cores"] or 0))


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
    """The features of this machine's processor, as Linux lists them, without tile registers that Linux withholds.

    Those that Linux does not list are among them.
    """
    features = frozenset(host_facts()["cpu.flags"].split())
    if "avx512_bf16" in features and "GenuineIntel" in host_facts()["cpu"]:
        features |= {"slow_bf16"}
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
