"""The target `cpu`: code for the processor of this process, by way of LLVM."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from mlirml.config import config
from mlirml.errors import TargetError
from mlirml.raising import PASSES as RAISING_PASSES
from mlirml.raising import RAISE
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.targets.ahead import Ahead, Kernels
from mlirml.targets.target import Target

if TYPE_CHECKING:
    from mlirml.ir import mlir
    from mlirml.passes import Pipeline
    from mlirml.targets.llvm import ObjectBuilder

FUSE = (
    "canonicalize,cse,mlirml-promote-elements,mlirml-fold-contract,mlirml-fuse-shifts,mlirml-move-reshapes,"
    "mlirml-hoist,mlirml-fuse"
)
OPTIMIZE = f"{FUSE},canonicalize,cse"
BLOCK = "mlirml-block-examples{{l2-bytes={l2} vector-bits={bits}}},canonicalize,cse"
OPTIMIZE_HOST = f"mlirml-unroll-windows,{FUSE},mlirml-recompute-elements,{BLOCK}"
SCHEDULE = (
    "mlirml-double-buffer,mlirml-rotate-buffers,"
    "mlirml-fuse-attention{{l2-bytes={l2}}},mlirml-schedule-contract{{{contract}}},mlirml-scalarize,"
    "mlirml-buffer-stores,mlirml-align-while,mlirml-bufferize,"
    "mlirml-elide-copies,mlirml-relax-floats,mlirml-prove-parallel,mlirml-split-loops,"
    "mlirml-shorten-recurrences,mlirml-widen-bools,"
    "mlirml-lower-contract{{{contract}}},"
    "mlirml-lower-conv{{vector-bits={bits}}},mlirml-tile-sweeps{{l2-bytes={l2} least-bytes={l2}}},"
    "mlirml-lower-loops{{vector-bits={bits}}},mlirml-parallelize-loops,{stream}"
    "mlirml-share-buffers,mlirml-plan-buffers{{places=true}},"
    "mlirml-outline-parallel,mlirml-split-function"
)
TO_LLVM = (
    "expand-strided-metadata,convert-scf-to-cf,lower-affine,convert-vector-to-llvm,"
    "convert-math-to-funcs,convert-math-to-llvm,convert-math-to-libm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-to-llvm,reconcile-unrealized-casts,"
    "canonicalize{max-iterations=1},mlirml-scope-buffers,mlirml-lower-parallel,mlirml-emit-entry"
)
"""Index arithmetic of views is expanded while loops are one block each, not the many of `convert-scf-to-cf`. Memrefs
are left to `convert-to-llvm`: a pass for them alone would put casts around each, for the next to meet. What a second
round of canonicalize would find is less than it takes to look, and LLVM finds it, too."""
LOWER = f"mlirml-lower-sort,{TO_LLVM}"
PASSES = (
    "unroll_windows", "hoist", "fold_contract", "fuse_shifts", "move_reshapes", "fuse", "recompute_elements",
    "block_examples", "double_buffer", "rotate_buffers", "fuse_attention", "schedule_contract", "scalarize",
    "buffer_stores", "align_while", "bufferize", "elide_copies", "relax_floats", "prove_parallel",
    "split_loops", "shorten_recurrences", "widen_bools", "lower_contract", "lower_conv", "tile_sweeps",
    "lower_loops", "parallelize_loops", "stream_stores", "share_buffers", "plan_buffers", "outline_parallel",
    "split_function", "lower_sort", "lower_asserts", "expand_math", "scope_buffers", "lower_parallel", "emit_entry",
    "flush_denormals",
)  # fmt: skip
_KERNEL_PASSES = (
    "outline_parallel", "expand_math", "scope_buffers", "lower_parallel", "emit_entry", "flush_denormals",
)  # fmt: skip

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Of Linux: the number of the system call, ARCH_REQ_XCOMP_PERM, and the state that it is for (asm/prctl.h, 5.16)."""

_FAR = 8 << 20
"""Results of so many bytes are stored past the cache, at least: smaller ones are read from it faster by who comes next
than the reading of lines costs, which are written as a whole."""

_FILES = (
    ("raising", (*RAISING_PASSES, "lower_lengths", "promote_elements")),
    ("pipelines", PASSES),
    ("autodiff", ("stop_shifts", "checkpoint", "expand")),
)
_LOOPS = ("scf.for", "scf.while", "scf.parallel", "affine.")
_REQUESTS = "mlirml."
_CONTRACTIONS = ("linalg.contract", "linalg.mat", "linalg.batch_", "linalg.vecmat", "linalg.dot")
_WINDOWS = ("linalg.conv", "linalg.depthwise", "linalg.pooling", "linalg.window")
_NEEDS = (
    *((f"mlirml-{name.replace('_', '-')}", _LOOPS) for name in (*RAISING_PASSES, "lower_lengths")),
    ("mlirml-promote-elements", (*_LOOPS, _REQUESTS)),
    ("mlirml-stop-shifts", (_REQUESTS,)),
    ("mlirml-checkpoint", (_REQUESTS,)),
    ("mlirml-expand", (_REQUESTS,)),
    ("mlirml-flush-denormals", (_REQUESTS,)),
    *(
        (f"mlirml-{name}", (*_LOOPS, _REQUESTS))
        for name in ("hoist", "double-buffer", "rotate-buffers", "align-while", "tile-sweeps")
    ),
    ("mlirml-unroll-windows", (*_LOOPS, _REQUESTS, "linalg.window")),
    ("mlirml-lower-sort", (*_LOOPS, _REQUESTS)),
    ("mlirml-recompute-elements", (*_LOOPS, _REQUESTS)),
    ("mlirml-block-examples", (*_LOOPS, _REQUESTS, *_CONTRACTIONS)),
    ("mlirml-fuse-shifts", (*_LOOPS, _REQUESTS, "tensor.insert_slice", "tensor.pad")),
    ("mlirml-fold-contract", (_REQUESTS, *_CONTRACTIONS, *_WINDOWS)),
    ("mlirml-fuse-attention", (_REQUESTS, *_CONTRACTIONS, *_WINDOWS)),
    ("mlirml-schedule-contract", (_REQUESTS, *_CONTRACTIONS, *_WINDOWS)),
    ("mlirml-lower-contract", (_REQUESTS, *_CONTRACTIONS, *_WINDOWS)),
    ("mlirml-lower-conv", (_REQUESTS, *_WINDOWS)),
)
"""Which operations passes look for: many programs have none of them. Requests may become anything. So may loops until
they are raised, after which it is looked again what is there."""


def cpu_target() -> Target:
    """The target for this machine, with the elementary functions of `config.math`. Imports neither MLIR nor llvmlite.

    Raises `TargetError` where glibc's vector functions are asked for and not there.
    """
    if config.math == "libmvec" and not has_libmvec():
        raise TargetError(
            "config.math is 'libmvec', but this machine has no vector functions of glibc 2.35 or newer",
            help="leave `config.math` at 'builtin'",
        )
    return target_with(config.math, config.checkpoint_bytes)


@cache
def target_with(math: str, checkpoint_bytes: int) -> Target:
    """The target for this machine, a choice of `config.math`, and what loops may keep for gradients."""
    return Target(
        name="cpu",
        stages=(
            ("raise", RAISE),
            ("transform", f"mlirml-lower-lengths,mlirml-stop-shifts,{expand(checkpoint_bytes)}"),
            ("optimize", OPTIMIZE_HOST.format(bits=vector_bits(), l2=l2_bytes())),
            ("offload", ""),
            ("schedule", schedule()),
            ("lower", f"{expand_math(math)},mlirml-lower-asserts,{LOWER},mlirml-flush-denormals"),
        ),
        load_passes=load_passes,
        codegen=codegen,
        depends_on=tuple(host_facts().items()),
        needs=_NEEDS,
        ahead=Ahead("mlirml-lower-loops", lambda: kernel_pipeline(math), begin_kernels),
    )


@cache
def kernel_pipeline(math: str) -> Pipeline:
    """What remains to be done with kernels that go ahead of @main."""
    from mlirml.passes import Pipeline, stage

    for name in _KERNEL_PASSES:
        importlib.import_module(f"mlirml.pipelines.{name}")
    lower = f"{expand_math(math)},{TO_LLVM},mlirml-flush-denormals"
    return Pipeline((stage("schedule", "mlirml-outline-parallel"), stage("lower", lower)))


def schedule() -> str:
    """The passes that make loops for this machine."""
    l2 = l2_bytes()
    stream = f"mlirml-stream-stores{{least-bytes={max(4 * l2, _FAR)}}}," if os.uname().machine == "x86_64" else ""
    return SCHEDULE.format(contract=machine_options(), bits=vector_bits(), l2=l2, stream=stream)


def load_passes(without: Collection[str] = ()) -> None:
    """Import the passes of the pipeline, but for those of these flags."""
    for package, names in _FILES:
        for name in names:
            if f"mlirml-{name.replace('_', '-')}" not in without:
                importlib.import_module(f"mlirml.{package}.{name}")


def expand(checkpoint_bytes: int) -> str:
    """The passes that differentiate and batch."""
    return f"mlirml-checkpoint,mlirml-expand{{checkpoint-bytes={checkpoint_bytes}}}"


@cache
def host_facts() -> dict[str, str]:
    """What code depends on: the machine, the processor's name and its features, as the kernel lists them."""
    facts = {"machine": os.uname().machine, "cpu": "", "cpu.flags": ""}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n")[0].splitlines()
    except OSError:
        return facts
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = [fields.get(key, "") for key in ("vendor_id", "cpu family", "model", "stepping")]
    facts["cpu"] = " ".join([fields.get("model name", ""), *numbers])
    facts["cpu.flags"] = " ".join(sorted(fields.get("flags", fields.get("Features", "")).split()))
    return facts


@cache
def vector_bits() -> int:
    """The width of the widest vector register in bits: 512, 256 or 128."""
    flags = set(host_facts()["cpu.flags"].split())
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags:
        return 512
    return 256 if "avx" in flags else 128


@cache
def has_libmvec() -> bool:
    """Whether libmvec.so.1 has all functions that may be called."""
    import ctypes

    if os.uname().machine != "x86_64":
        return False
    try:
        return hasattr(ctypes.CDLL("libmvec.so.1"), "_ZGVbN4v_tanhf")
    except OSError:
        return False


def expand_math(math: str) -> str:
    """`mlirml-expand-math` with the options of this processor."""
    flags = set(host_facts()["cpu.flags"].split())
    values = {"fma": "fma" in flags, "scalef": vector_bits() == 512, "f16c": "f16c" in flags}
    options = [f"{name}={str(value).lower()}" for name, value in values.items()]
    options += [f"vector-bits={vector_bits()}", *(["libmvec=true"] if math == "libmvec" else [])]
    return f"mlirml-expand-math{{{' '.join(options)}}}"


def machine_options() -> str:
    """The options of the contraction passes for this processor."""
    bits = vector_bits()
    pairs = " bf16-pairs=true" if bits == 512 and "avx512_bf16" in host_facts()["cpu.flags"].split() else ""
    tiles = " bf16-tiles=true" if bits == 512 and may_use_tiles() else ""
    return f"vector-bits={bits} vector-registers={32 if bits == 512 else 16} l2-bytes={l2_bytes()}{pairs}{tiles}"


@cache
def may_use_tiles() -> bool:
    """Whether the processor has tile registers for bf16 (AMX), and Linux lets this process use them: it asks for that.

    The permission holds for all threads, and for processes that are forked later. Linux refuses it where a signal stack
    is too small for eight kilobytes of registers. The answer is part of the pipeline, so that it is part of the key
    under which programs are kept, too.
    """
    import ctypes

    if os.uname().machine != "x86_64" or not {"amx_tile", "amx_bf16"} <= set(host_facts()["cpu.flags"].split()):
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 3
    return bool(call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)


@cache
def l2_bytes() -> int:
    """The size of the second-level cache of one core; 1 MiB where the kernel does not tell."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index2/size", encoding="ascii") as file:
            return int(file.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 1 << 20


def begin_kernels(modules: Iterable[Kernels]) -> ObjectBuilder:
    """Begin to make code of kernels after stage `lower`, module by module; `codegen` ends it."""
    from mlirml.targets.llvm import CodegenOptions, ObjectBuilder

    builder = ObjectBuilder()
    try:
        for kernels, exports in modules:
            builder.add(kernels, CodegenOptions(exports=exports), is_last=False)
    except BaseException:
        builder.abandon()
        raise
    return builder


def codegen(module: Any, builder: ObjectBuilder | None = None) -> Artifact:
    """Machine code of a module after stage `lower`, and of the kernels that `builder` has begun with."""
    from mlirml.pipelines.emit_entry import ENTRY, entry_function
    from mlirml.pipelines.polynomials.libmvec import SYMBOLS
    from mlirml.targets.llvm import CodegenOptions, ObjectBuilder

    operation = getattr(module, "operation", module)
    attributes = entry_function(operation).attributes
    options = CodegenOptions(externals=SYMBOLS)
    builder = builder or ObjectBuilder()
    builder.add(operation, options)
    return Artifact(
        object=builder.finish(options),
        entry=ENTRY,
        inputs=tuple(map(buffer, attributes["mlirml.inputs"])),
        outputs=tuple(map(buffer, attributes["mlirml.outputs"])),
        workspace_bytes=attributes["mlirml.workspace"].value,
        in_place=tuple(attributes["mlirml.in_place"]) if "mlirml.in_place" in attributes else (),
    )


def buffer(attribute: mlir.Attribute) -> Buffer:
    """The record of a tensor type in `mlirml.inputs` or `mlirml.outputs`."""
    kind = attribute.value
    name = str(kind.element_type)
    return Buffer("bool" if name == "i1" else name, tuple(kind.shape))
