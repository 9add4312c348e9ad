"""Code generation: check a module, translate it to LLVM IR, and compile the IR to machine code with llvmlite.

The MLIR bindings contain LLVM 24 and llvmlite LLVM 22, so modules are passed as text, of which only float literals
differ (`literals.py`). Objects are position independent, and contain no time stamps and no names from outside the
module: the same text, options, CPU and features give the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import partial
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.errors import InternalError, LoweringError, TargetError
from mlirml.ir.bindings import mlir, operations
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.targets.llvm.bf16 import move_bf16_as_integers
from mlirml.targets.llvm.elf import join, undefined_symbols
from mlirml.targets.llvm.job_pool import Job, JobPool, thread_count
from mlirml.targets.llvm.library import Context, LLVMError, Machine, Module, host_cpu, host_features, machine_for
from mlirml.targets.llvm.literals import rewrite_float_literals
from mlirml.targets.llvm.parts import Parts, drivers, longest_block, pieces, split
from mlirml.targets.llvm.translation import translate
from mlirml.targets.machine import Processor, named

__all__ = [
    "EXTERNALS", "CodegenOptions", "ObjectBuilder", "compile_to_object", "optimised_ir", "to_assembly",
    "to_llvm_ir", "undefined_symbols",
]  # fmt: skip

_TRANSLATABLE_DIALECTS = frozenset(["llvm", "nvvm", "rocdl", "omp"])
_TRANSLATABLE_OPS = frozenset(["builtin.module", "gpu.module", "gpu.binary", "gpu.launch_func"])

_LIBM = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh",
    "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod",
    "frexp", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "modf", "nearbyint", "pow", "remainder",
    "rint", "round", "roundeven", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
]  # fmt: skip
_RUNTIME = [
    "mlirml_parallel_for", "mlirml_parallel_for_long", "mlirml_check_failed", "mlirml_poll", "mlirml_threads",
    "mlirml_kernel_begins", "mlirml_kernel_ends",
    "mlirml_sort", "mlirml_argsort", *(name.replace(".", "_") for name in (*LIBRARY_CALLS, *COMPACTIONS)),
    "mlirml_host_word", "mlirml_host_bytes", "mlirml_host_call", "memcpy", "memset", "memmove", "bcmp", "memcmp",
]  # fmt: skip
EXTERNALS = frozenset([*_RUNTIME, *_LIBM, *(f"{name}f" for name in _LIBM)])
"""Symbols that an object may leave undefined: the native loader resolves exactly these."""


_TUNING = {"znver": "+prefer-no-gather,+prefer-no-scatter"}
"""Features that say what is slow, for names of processors that begin so; LLVM's own tuning leaves them out.

A gather of eight doubles is 40 operations or more on AMD's processors, and takes three times as long as eight loads.
"""


@dataclass(frozen=True)
class CodegenOptions:
    """Options of LLVM. `level` is 0 to 3; code is for `processor`.

    `vector_width` is the preferred width in bits for loops that LLVM vectorises; 0 means the widest of the processor.
    When the module defines one of `exports`, every other function becomes internal. `externals` are more symbols that
    the object may leave undefined.
    """

    level: int = 3
    processor: Processor = field(default_factory=partial(named, "host"))
    loop_vectorise: bool = True
    slp_vectorise: bool = True
    unroll: bool = False
    vector_width: int = 0
    exports: tuple[str, ...] = ("entry",)
    externals: frozenset[str] = field(default=frozenset())


def to_llvm_ir(module: Any) -> str:
    """LLVM IR text, as llvmlite parses it, of a module in the llvm dialect or of a lowered `gpu.module`.

    Raises `LoweringError` if an operation has no LLVM form.
    """
    operation = getattr(module, "operation", module)
    _guard(operation)
    return rewrite_float_literals(_keep_vector_variants(translate(operation)))


_VARIANTS = re.compile(r'"vector-function-abi-variant"="([^"]*)"')


def _keep_vector_variants(text: str) -> str:
    """Keep vector variants of scalar functions: nothing else uses them until loops are vectorised."""
    names = dict.fromkeys(re.findall(r"\(([^)]*)\)", ",".join(_VARIANTS.findall(text))))
    if not names:
        return text
    used = ", ".join(f"ptr @{name}" for name in names)
    head = f"@llvm.compiler.used = appending global [{len(names)} x ptr]"
    return f'{text}\n{head} [{used}], section "llvm.metadata"\n'


def _guard(operation: mlir.Operation) -> None:
    """Reject operations without an LLVM form: translating them would end the process with a segmentation fault."""
    left = [
        op
        for op in operations(operation)
        if (name := op.name).partition(".")[0] not in _TRANSLATABLE_DIALECTS and name not in _TRANSLATABLE_OPS
    ]
    if left:
        names = sorted({op.name for op in left})
        error = LoweringError(
            f"operations without an LLVM form are left in the module: {', '.join(names)}",
            stage="codegen",
            notes=tuple(f"{op.name} at {op.location}" for op in left[:5]),
        )
        error.op = left[0].name
        raise error


def compile_to_object(source: Any, options: CodegenOptions | None = None) -> bytes:
    """An ELF relocatable object of a module in the llvm dialect, or of LLVM IR text.

    Raises `LoweringError` when the object would need a symbol that the native loader does not know.
    """
    builder = ObjectBuilder()
    builder.add(source, options)
    return builder.finish(options)


def to_assembly(source: Any, options: CodegenOptions | None = None) -> str:
    """The assembly text of the code that `compile_to_object` generates."""
    with _optimised(source, options or CodegenOptions()) as module:
        return module.emit(assembly=True).decode()


def optimised_ir(source: Any, options: CodegenOptions | None = None) -> str:
    """LLVM IR text after LLVM's optimisation passes."""
    with _optimised(source, options or CodegenOptions()) as module:
        return str(module)


def _machine(options: CodegenOptions) -> AbstractContextManager[Machine]:
    cpu, features = options.processor.llvm_cpu, options.processor.llvm_features
    if not cpu:
        cpu = host_cpu()
        tuning = [features for name, features in _TUNING.items() if cpu.startswith(name)]
        features = ",".join([host_features(), *tuning])
    architecture = options.processor.architecture
    triple = "" if architecture == os.uname().machine else f"{architecture}-unknown-linux-gnu"
    return machine_for(cpu, features, options.level, triple)


def _checked_text(source: Any, options: CodegenOptions) -> str:
    if not 0 <= options.level <= 3:
        raise TargetError(f"the optimisation level is 0, 1, 2 or 3, not {options.level}")
    text = source if isinstance(source, str) else to_llvm_ir(source)
    return _with_function_attributes(move_bf16_as_integers(text), options)


def _parts(text: str, options: CodegenOptions) -> list[tuple[str, _Passes]]:
    """The parts of a module, and the passes for each."""
    parts = split(text) if options.level == 3 else Parts("", text)
    others = pieces(parts.others) if options.level == 3 else [parts.others]
    tidy: _Passes = partial(_tidy, drivers=drivers(parts.vectors))
    chosen = ((other, _tidy if longest_block(other) > _LONGEST_BLOCK else _optimise) for other in others)
    return [(part, run) for part, run in (*chosen, (parts.vectors, tidy)) if part]


_LONGEST_BLOCK = 5000
"""Basic blocks of more lines skip LLVM's own passes, whose time is quadratic in the loads and stores of a block."""


class ObjectBuilder:
    """Compiles several modules into one object: threads start on the first while the others are being lowered.

    The number of threads and their timing do not change the object.
    """

    def __init__(self) -> None:
        self._pool = JobPool()
        self._modules: list[tuple[CodegenOptions, _Objects]] = []

    def add(self, source: Any, options: CodegenOptions | None = None, *, is_last: bool = True) -> None:
        """Start to compile a module in the llvm dialect, or LLVM IR text. Other modules see its `options.exports`."""
        options = options or CodegenOptions()
        text = _checked_text(source, options)
        parts = _parts(text, options)
        objects: _Objects = {}
        self._modules.append((options, objects))
        longest_first = sorted(range(len(parts)), key=lambda number: -_work(*parts[number]))
        jobs = [partial(_optimise_part, objects, number, *parts[number], options) for number in longest_first]
        others = min(thread_count() - 1, 2 * len(parts)) if len(text) > _LONG else 0
        longest = _LONG if is_last and len(parts) < _MANY else _VERY_LONG
        self._pool.add([partial(job, longest=longest) for job in jobs], others)

    def finish(self, options: CodegenOptions | None = None) -> bytes:
        """The object of all modules, in which only `options.exports` are global; see `compile_to_object`."""
        options = options or CodegenOptions()
        self._pool.finish()
        data = _joined([_joined(_in_order(objects), own.exports) for own, objects in self._modules], options.exports)
        missing = [name for name in undefined_symbols(data) if name not in EXTERNALS | options.externals]
        if missing:
            raise LoweringError(
                f"the generated code calls functions that do not exist at run time: {', '.join(missing)}",
                stage="codegen",
                help="an operation must be expanded before it reaches LLVM; see the table EXTERNALS in targets/llvm.py",
            )
        return data

    def abandon(self) -> None:
        """Cancel the compilation."""
        self._pool.abandon()


_Objects = dict[tuple[int, int], bytes]
"""The objects of a module, by the indices of part and piece."""


def _in_order(objects: _Objects) -> list[bytes]:
    return [objects[key] for key in sorted(objects)]


def _joined(objects: Sequence[bytes], exports: Collection[str]) -> bytes:
    return objects[0] if len(objects) == 1 else join(objects, exports)


def _optimise_part(
    objects: _Objects, part: int, text: str, run_passes: _Passes, options: CodegenOptions, *, longest: int
) -> list[Job]:
    """Compile a part to an object, or return jobs that compile its pieces if it has more than `longest` characters."""
    # Own contexts: in a shared one, type names depend on what was compiled before.
    with _machine(options) as machine, Context() as context:
        module = _parse(text, context, machine)
        run_passes(module, options)
        shares = pieces(str(module), optimised=True) if len(text) > longest else [""]
        if len(shares) == 1:
            objects[part, 0] = module.emit()
            return []
    return [partial(_emit_piece, objects, (part, number), share, options) for number, share in enumerate(shares)]


def _emit_piece(objects: _Objects, key: tuple[int, int], text: str, options: CodegenOptions) -> list[Job]:
    with _machine(options) as machine, Context() as context:
        objects[key] = _parse(text, context, machine, verify=False).emit()
    return []


def _work(text: str, run_passes: _Passes) -> int:
    """Estimate of LLVM's time for a part, relative to others: vector code takes half the time."""
    return len(text) * (2 if run_passes is _optimise else 1)


_LONG, _VERY_LONG, _MANY = 10_000, 100_000, 3
"""LLVM takes 15 ms for text of `_LONG` characters: less is not worth a thread. `_MANY` parts keep the threads busy, as
do further modules, except for a `_VERY_LONG` one, with which one thread would be left alone at the end."""


@contextmanager
def _optimised(source: Any, options: CodegenOptions) -> Iterator[Module]:
    """One optimised module, to be used inside of the `with`."""
    text = _checked_text(source, options)
    modules = []
    with _machine(options) as machine, Context() as context:
        for part, run_passes in _parts(text, options):
            module = _parse(part, context, machine)
            run_passes(module, options)
            modules.append(module)
        for other in modules[1:]:
            modules[0].link_in(other)
        if len(modules) > 1:
            modules[0].hide(but=options.exports)
        yield modules[0]


_Passes = Callable[[Module, CodegenOptions], None]


def _optimise(module: Module, options: CodegenOptions) -> None:
    """LLVM's own passes."""
    module.run_default_passes(
        vectorise_loops=options.loop_vectorise, vectorise_blocks=options.slp_vectorise, unroll=options.unroll
    )


# The few passes that vector code needs, in a sixth of the time. The first ones specialize functions that kernels share
# to the sizes that all their callers pass.
_TIDYING = (
    "IPSCCP", "DeadArgumentElimination", "AlwaysInliner", "GlobalDCE", "SimplifyCFG", "SROA", "InstCombine",
    "LoopRotate", "NewGVN", "SimplifyCFG",
)  # fmt: skip


def _tidy(module: Module, options: CodegenOptions, *, drivers: Collection[str] = ()) -> None:
    module.run_passes(_TIDYING)
    module.hurry(drivers)


def _parse(text: str, context: Context, machine: Machine, *, verify: bool = True) -> Module:
    message = "LLVM cannot read the generated module"
    try:
        module = context.parse(text, machine)
        message = "LLVM's verifier refuses the generated module"
        if verify:
            module.verify()
    except LLVMError as error:
        raise _internal_error(message, error, text) from None
    return module


def _internal_error(message: str, error: Exception, text: str) -> InternalError:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="mlirml-", suffix=".ll")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    reason = [line for line in str(error).splitlines() if line.strip()]
    return InternalError(message, stage="codegen", notes=(*reason[:6], f"the module is in {path}"))


_DEFINE = re.compile(
    r"^define (?P<linkage>(?:(?:internal|private|external|linkonce|linkonce_odr|weak|weak_odr) )?)"
    r"(?P<type>[^@\n]*)@\"?(?P<name>[\w.$-]+)\"?\(",
    re.MULTILINE,
)
_AFTER_ARGUMENTS = re.compile(r"(?: (?:local_)?unnamed_addr)?(?: addrspace\(\d+\))?")


def _with_function_attributes(text: str, options: CodegenOptions) -> str:
    """Every defined function gets `nounwind` (so no unwind tables), the vector width and the right linkage."""
    width = options.vector_width or options.processor.vector_bits
    attributes = f' nounwind "prefer-vector-width"="{width}"'
    if "sve" in options.processor.features:
        attributes += f" vscale_range({max(1, options.processor.vector_bits // 128)},16)"
    if _VARIANTS.search(text):
        # Vectors are spilled around calls of vector functions, and LLVM does not align their stack slots by itself.
        attributes += ' "stackrealign"'
    definitions = list(_DEFINE.finditer(text))
    hide = any(match["name"] in options.exports for match in definitions)
    pieces, position = [], 0
    for match in definitions:
        depth, end = 1, match.end()
        while depth:  # attributes of arguments contain parentheses too: `range(i32 0, 4)`
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        after = _AFTER_ARGUMENTS.match(text, end)
        end = after.end() if after else end
        linkage = "internal " if hide and match["name"] not in options.exports else match["linkage"]
        pieces += [text[position : match.start()], "define ", linkage, text[match.start("type") : end], attributes]
        position = end
    return "".join([*pieces, text[position:]])
