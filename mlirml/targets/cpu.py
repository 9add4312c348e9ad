"""The target `cpu`: code for the processor of this process, by way of LLVM."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.raising import PASSES as RAISING_PASSES
from mlirml.raising import RAISE
from mlirml.runtime import HAS_LAPACK
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.targets.llvm.early_kernels import Ahead, Kernels
from mlirml.targets.machine import Processor, has_libmvec, host_facts, processor
from mlirml.targets.target import Target

if TYPE_CHECKING:
    from mlirml.ir.bindings import mlir
    from mlirml.passes import Pipeline
    from mlirml.targets.llvm.codegen import CodegenOptions, ObjectBuilder

_CLEAN = "canonicalize,cse,mlirml-forward-stores,mlirml-promote-elements"
_FUSE = "mlirml-fold-contract,mlirml-fuse-shifts,mlirml-move-reshapes,mlirml-hoist,mlirml-fuse"
FUSE = f"{_CLEAN},{_FUSE}"
OPTIMIZE = f"{FUSE},canonicalize,cse"
BLOCK = "mlirml-block-examples{{l2-bytes={l2} vector-bits={bits}}},canonicalize,cse"
OPTIMIZE_HOST = (
    f"mlirml-unroll-windows,mlirml-unroll-reductions,{_CLEAN},mlirml-expand-scalars,mlirml-jam-loops,{_FUSE}"
    "{{prologues=true}},"
    f"mlirml-recompute-elements,{BLOCK}"
)
SCHEDULE = (
    "mlirml-double-buffer,mlirml-rotate-buffers,"
    "mlirml-fuse-attention{{l2-bytes={l2}}},mlirml-schedule-contract{{{contract}}},mlirml-scalarize,"
    "mlirml-buffer-stores,mlirml-align-while,mlirml-bufferize,"
    "mlirml-elide-copies,mlirml-relax-floats,mlirml-prove-parallel,mlirml-split-loops,"
    "mlirml-peel-loops,mlirml-shorten-recurrences,mlirml-widen-bools,"
    "mlirml-lower-contract{{{contract}}},"
    "mlirml-lower-conv{{vector-bits={bits}}},mlirml-tile-sweeps{{l2-bytes={l2} least-bytes={l2}}},"
    "mlirml-tile-rows{{l2-bytes={l2}}},"
    "mlirml-lower-loops{{vector-bits={bits} copy-bytes=4096}},mlirml-parallelize-loops,{stream}"
    "mlirml-share-buffers,mlirml-plan-buffers{{places=true}},"
    "mlirml-outline-parallel,mlirml-exit-loops,mlirml-sink-operations,mlirml-split-function,mlirml-annotate-loops"
)
TO_LLVM = (
    "expand-strided-metadata,convert-scf-to-cf,mlirml-lower-asserts,lower-affine,convert-vector-to-llvm,"
    "convert-math-to-funcs,convert-math-to-llvm,convert-math-to-libm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-to-llvm,reconcile-unrealized-casts,"
    "canonicalize{max-iterations=1},mlirml-annotate-loops,mlirml-scope-buffers,mlirml-lower-parallel,mlirml-emit-entry"
)
"""Index arithmetic of views is expanded while loops are one block each, not the many of `convert-scf-to-cf`. Memrefs
are left to `convert-to-llvm`: a pass for them alone would put casts around each, for the next to meet. What a second
round of canonicalize would find is less than it takes to look, and LLVM finds it, too."""
HOST_CHECKS = (
    "mlirml-inspect-indices,mlirml-poll-signals,mlirml-version-checks,mlirml-collect-checks,mlirml-fold-clamps"
)
LOWER = f"mlirml-lower-sort,mlirml-lower-factorizations,mlirml-lower-host-calls,{TO_LLVM}"

_FAR = 8 << 20
"""Results of so many bytes are stored past the cache, at least: smaller ones are read from it faster by who comes next
than the reading of lines costs, which are written as a whole."""
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
        for name in (
            "expand-scalars",
            "jam-loops",
            "hoist",
            "double-buffer",
            "rotate-buffers",
            "align-while",
            "tile-sweeps",
            "tile-rows",
        )
    ),
    ("mlirml-forward-stores", (*_LOOPS, _REQUESTS, "tensor.insert_slice")),
    ("mlirml-lower-affine", ("affine.", _REQUESTS)),
    ("mlirml-unroll-reductions", (*_LOOPS, _REQUESTS)),
    ("mlirml-peel-loops", (*_LOOPS, _REQUESTS)),
    ("mlirml-unroll-windows", (*_LOOPS, _REQUESTS, "linalg.window")),
    ("mlirml-lower-sort", (*_LOOPS, _REQUESTS)),
    ("mlirml-choose-library", (_REQUESTS,)),
    ("mlirml-lower-factorizations", (_REQUESTS,)),
    ("mlirml-lower-host-calls", (*_LOOPS, _REQUESTS)),
    ("mlirml-poll-signals", (*_LOOPS, _REQUESTS)),
    ("mlirml-exit-loops", (*_LOOPS, _REQUESTS)),
    ("mlirml-sink-operations", (*_LOOPS, _REQUESTS)),
    ("mlirml-inspect-indices", (*_LOOPS, _REQUESTS)),
    ("mlirml-version-checks", (*_LOOPS, _REQUESTS)),
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
    return target_with(config.math, config.checkpoint_bytes, processor(), lapack=HAS_LAPACK)


@cache
def target_with(math: str, checkpoint_bytes: int, machine: Processor, *, lapack: bool = False) -> Target:
    """The target for a processor, a choice of `config.math`, and what loops may keep for gradients.

    With `lapack` programs call the LAPACK that NumPy is linked to; without, all code is our own.
    """
    return Target(
        name="cpu",
        stages=(
            ("raise", f"mlirml-choose-library{{lapack={str(lapack).lower()}}},{RAISE}"),
            ("transform", f"mlirml-lower-lengths,mlirml-stop-shifts,{expand(checkpoint_bytes)}"),
            ("optimize", OPTIMIZE_HOST.format(bits=machine.vector_bits, l2=machine.l2_bytes)),
            ("offload", ""),
            ("schedule", schedule(machine)),
            ("lower", f"{expand_math(math, machine)},{HOST_CHECKS},{LOWER},mlirml-flush-denormals"),
        ),
        codegen=partial(codegen, machine=machine),
        depends_on=machine.key_entries(),
        needs=_NEEDS,
        ahead=Ahead("mlirml-lower-loops", lambda: kernel_pipeline(math, machine), partial(begin_kernels, machine)),
        processor=machine,
    )


@cache
def kernel_pipeline(math: str, machine: Processor) -> Pipeline:
    """What remains to be done with kernels that go ahead of @main."""
    from mlirml.passes import Pipeline, stage

    lower = f"{expand_math(math, machine)},{TO_LLVM},mlirml-flush-denormals"
    return Pipeline((stage("schedule", "mlirml-outline-parallel"), stage("lower", lower)))


def schedule(machine: Processor) -> str:
    """The passes that make loops for a processor."""
    l2 = machine.l2_bytes
    x86 = host_facts()["machine"] == "x86_64"
    stream = f"mlirml-stream-stores{{least-bytes={max(4 * l2, _FAR)}}}," if x86 else ""
    return SCHEDULE.format(contract=machine_options(machine), bits=machine.vector_bits, l2=l2, stream=stream)


def expand(checkpoint_bytes: int) -> str:
    """The passes that differentiate and batch, and lower the affine maps of indices, which they and raising read."""
    return f"mlirml-checkpoint,mlirml-expand{{checkpoint-bytes={checkpoint_bytes}}},mlirml-lower-affine"


def expand_math(math: str, machine: Processor) -> str:
    """`mlirml-expand-math` with the options of a processor."""
    bits, flags = machine.vector_bits, machine.features
    values = {"fma": "fma" in flags, "scalef": bits == 512, "f16c": "f16c" in flags}
    options = [f"{name}={str(value).lower()}" for name, value in values.items()]
    options += [f"vector-bits={bits}", *(["libmvec=true"] if math == "libmvec" else [])]
    return f"mlirml-expand-math{{{' '.join(options)}}}"


def machine_options(machine: Processor) -> str:
    """The options of the contraction passes for a processor."""
    pairs = " bf16-pairs=true" if machine.has_bf16_pairs else ""
    tiles = " bf16-tiles=true" if machine.has_tiles else ""
    facts = f"vector-bits={machine.vector_bits} vector-registers={machine.vector_registers} l2-bytes={machine.l2_bytes}"
    return f"{facts}{pairs}{tiles}"


def codegen_options(machine: Processor, **options: Any) -> CodegenOptions:
    """What LLVM does for a processor."""
    from mlirml.targets.llvm.codegen import CodegenOptions

    return CodegenOptions(cpu=machine.llvm_cpu, features=machine.llvm_features, **options)


def begin_kernels(machine: Processor, modules: Iterable[Kernels]) -> ObjectBuilder:
    """Begin to make code of kernels after stage `lower`, module by module; `codegen` ends it."""
    from mlirml.targets.llvm.codegen import ObjectBuilder

    builder = ObjectBuilder()
    try:
        for kernels, exports in modules:
            builder.add(kernels, codegen_options(machine, exports=exports), is_last=False)
    except BaseException:
        builder.abandon()
        raise
    return builder


def codegen(module: Any, builder: ObjectBuilder | None = None, *, machine: Processor | None = None) -> Artifact:
    """Machine code of a module after stage `lower`, and of the kernels that `builder` has begun with.

    The code is for `machine`, or for the processor that `config.processor` names.
    """
    from mlirml.codegen.math.libmvec import SYMBOLS
    from mlirml.pipelines.llvm.emit_entry import ENTRY, entry_function
    from mlirml.targets.llvm.codegen import ObjectBuilder

    operation = getattr(module, "operation", module)
    attributes = entry_function(operation).attributes
    options = codegen_options(machine or processor(), externals=SYMBOLS)
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


def to_assembly(module: Any, machine: Processor | None = None) -> str:
    """The assembly text of a module after stage `lower`, for `machine` or the processor of `config.processor`."""
    from mlirml.targets.llvm.codegen import to_assembly

    return to_assembly(module, codegen_options(machine or processor()))


def buffer(attribute: mlir.Attribute) -> Buffer:
    """The record of a tensor type in `mlirml.inputs` or `mlirml.outputs`."""
    kind = attribute.value
    name = str(kind.element_type)
    return Buffer("bool" if name == "i1" else name, tuple(kind.shape))
