"""Code generation: check a module, translate it to LLVM IR, and compile the IR to machine code with llvmlite.

The MLIR bindings contain LLVM 24 and llvmlite LLVM 22, so modules are passed as text, of which only float literals
differ (`literals.py`). Objects are position independent, and contain no time stamps and no names from outside the
module: the same text, options, CPU and features give the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import cache, partial
from typing import Any, NamedTuple

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.errors import InternalError, LoweringError, TargetError
from mlirml.ir.bindings import mlir, operations
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.runtime.cache_entries import Entries, digest
from mlirml.targets.llvm import code_cache
from mlirml.targets.llvm.add_chains import cut_sums, may_have_long_sums
from mlirml.targets.llvm.bf16 import move_bf16_as_integers
from mlirml.targets.llvm.elf import join, undefined_symbols
from mlirml.targets.llvm.job_pool import Job, JobPool, thread_count
from mlirml.targets.llvm.library import Context, LLVMError, Machine, Module, host_cpu, host_features, machine_for
from mlirml.targets.llvm.literals import rewrite_float_literals
from mlirml.targets.llvm.parts import Parts, drivers, longest_block, split
from mlirml.targets.llvm.translation import translate
from mlirml.targets.llvm.units import Unit, units_to_emit, units_to_optimise, whole
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
    "mlirml_product", "mlirml_sort", "mlirml_argsort",
    *(name.replace(".", "_") for name in (*LIBRARY_CALLS, *COMPACTIONS)),
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


def _processor(options: CodegenOptions) -> tuple[str, str, str]:
    """LLVM's name of a processor, its features, and the triple, which is empty for this machine."""
    cpu, features = options.processor.llvm_cpu, options.processor.llvm_features
    if not cpu:
        cpu = host_cpu()
        tuning = [features for name, features in _TUNING.items() if cpu.startswith(name)]
        features = ",".join([host_features(), *tuning])
    architecture = options.processor.architecture
    return cpu, features, "" if architecture == os.uname().machine else f"{architecture}-unknown-linux-gnu"


def _machine(options: CodegenOptions) -> AbstractContextManager[Machine]:
    cpu, features, triple = _processor(options)
    return machine_for(cpu, features, options.level, triple)


def _checked_text(source: Any, options: CodegenOptions) -> str:
    if not 0 <= options.level <= 3:
        raise TargetError(f"the optimisation level is 0, 1, 2 or 3, not {options.level}")
    text = source if isinstance(source, str) else to_llvm_ir(source)
    return _with_function_attributes(move_bf16_as_integers(text), options)


@dataclass(frozen=True)
class _Part:
    """A module, and the passes for it: by `is_vector_code` those that vector code needs, or else LLVM's own."""

    text: str
    is_vector_code: bool

    def run_passes(self, module: Module, options: CodegenOptions) -> None:
        """Run the passes over the module of the text."""
        if self.is_vector_code:
            _tidy(module, options, drivers=drivers(self.text))
        elif longest_block(self.text) > _LONGEST_BLOCK:
            _tidy(module, options)
        else:
            _optimise(module, options)

    @property
    def work(self) -> int:
        """Estimate of LLVM's time, relative to others: vector code takes half the time."""
        return len(self.text) * (1 if self.is_vector_code else 2)


def _parts(text: str, options: CodegenOptions) -> list[_Part]:
    """The parts of a module."""
    parts = split(text) if options.level == 3 else Parts("", text)
    found = _Part(parts.others, is_vector_code=False), _Part(parts.vectors, is_vector_code=True)
    return [part for part in found if part.text]


_LONGEST_BLOCK = 5000
"""Basic blocks of more lines skip LLVM's own passes, whose time is quadratic in the loads and stores of a block."""
_LONG = 10_000
"""LLVM takes 15 ms for text of so many characters: less is not worth a thread, nor to be split into units."""


class ObjectBuilder:
    """Compiles several modules into one object: threads start on the first while the others are being lowered.

    Long modules are split into units, whose code is taken from the cache where it has been compiled before. Neither the
    number of threads and their timing nor what is in the cache changes the object.
    """

    def __init__(self) -> None:
        self._pool = JobPool()
        self._modules: list[tuple[CodegenOptions, _Objects]] = []
        self._lowered: list[tuple[Entries, _Objects]] = []
        self._new: list[tuple[Entries, bytes]] = []  # for the cache; lists may be appended to by several threads
        self._counts = code_cache.current_counts()

    def add(self, source: Any, options: CodegenOptions | None = None) -> None:
        """Start to compile a module in the llvm dialect, or LLVM IR text. Other modules see its `options.exports`."""
        options = options or CodegenOptions()
        text = _checked_text(source, options)
        objects: _Objects = {}
        self._modules.append((options, objects))
        work: list[tuple[int, Job]] = []
        for number, part in enumerate(_parts(text, options)):
            work += self._jobs(objects, number, part, options, is_long=len(text) > _LONG and options.level == 3)
        work.sort(key=lambda each: -each[0])  # the longest first
        others = min(thread_count() - 1, 2 * len(work)) if len(text) > _LONG else 0
        self._pool.add([job for _, job in work], others)

    def add_on_demand(self, text: Callable[[], str], lowered: Callable[[], Any], options: CodegenOptions) -> None:
        """As `add`, of the module that `lowered()` returns, unless the cache has the code of all of its units.

        `text()` is what the module depends on: that before it is lowered, and the passes.
        """
        if not config.cache:
            self.add(lowered(), options)
            return
        entries = _entries(f"{options.exports}\n{text()}", "module", options)
        found = code_cache.load_index(entries)
        if found is None:
            self.add(lowered(), options)
            self._lowered.append((entries, self._modules[-1][1]))
            return
        self._counts.add(len(found), 0)
        self._modules.append((options, {(0, slot): _Code(*each) for slot, each in enumerate(found)}))

    def _jobs(
        self, objects: _Objects, number: int, part: _Part, options: CodegenOptions, *, is_long: bool
    ) -> Iterator[tuple[int, Job]]:
        """The jobs that compile a part, with estimates of their work."""
        keeps = EXTERNALS | options.externals
        if is_long and part.is_vector_code and (unit := whole(part.text, keeps)) is not None:
            vectors = _Part(unit.text, is_vector_code=True)
            yield part.work, partial(self._compile_vectors, objects, number, vectors, unit, options)
            return
        units = units_to_optimise(part.text, keeps) if is_long and not part.is_vector_code else None
        if units is None:
            yield part.work, partial(self._compile, objects, (number, 0), part, options)
            return
        for slots, unit in _equal_units(units):
            own = _Part(unit.text, is_vector_code=False)
            yield own.work, partial(self._compile_unit, objects, number, slots, own, options)

    def _compile(self, objects: _Objects, slot: tuple[int, int], part: _Part, options: CodegenOptions) -> list[Job]:
        """Compile a part whose code is not kept."""
        objects[slot] = _Code(_compiled(part, options), {})
        return []

    def _compile_unit(
        self, objects: _Objects, number: int, slots: _Slots, part: _Part, options: CodegenOptions
    ) -> list[Job]:
        """Compile a unit, or take it from the cache."""
        entries = _entries(part.text, "default", options)
        data = self._known(entries, slots) or self._made(entries, _compiled(part, options))
        objects.update({(number, slot): _Code(data, names, entries) for slot, names in slots})
        return []

    def _compile_vectors(
        self, objects: _Objects, number: int, part: _Part, unit: Unit, options: CodegenOptions
    ) -> list[Job]:
        """Optimise vector code as a whole, and return jobs for its units, unless the cache has all of them."""
        entries = _entries(part.text, "vectors", options)
        found = code_cache.load_index(entries)
        if found is not None:
            self._counts.add(len(found), 0)
            for slot, (data, names, key) in enumerate(found):
                objects[number, slot] = _Code(data, _through(names, unit), key)
            return []
        with _machine(options) as machine, Context() as context:
            module = _parse(part.text, context, machine)
            part.run_passes(module, options)
            units = units_to_emit(str(module), EXTERNALS | options.externals)
            if units is None:
                objects[number, 0] = _Code(module.emit(), unit.names)
                return []
        keys = [_entries(each.text, "none", options) for each in units]
        self._new.append((entries, code_cache.index_of([(key, own.names) for key, own in zip(keys, units)])))
        named = [([(slot, _through(names, unit)) for slot, names in slots], own) for slots, own in _equal_units(units)]
        return [partial(self._emit_unit, objects, number, slots, own, options) for slots, own in named]

    def _emit_unit(
        self, objects: _Objects, number: int, slots: _Slots, unit: Unit, options: CodegenOptions
    ) -> list[Job]:
        """Make the code of a unit that is optimised, or take it from the cache."""
        entries = _entries(unit.text, "none", options)
        data = self._known(entries, slots)
        if data is None:
            with _machine(options) as machine, Context() as context:
                data = self._made(entries, _parse(unit.text, context, machine, verify=False).emit())
        objects.update({(number, slot): _Code(data, names, entries) for slot, names in slots})
        return []

    def _known(self, entries: Entries, slots: _Slots) -> bytes | None:
        data = code_cache.load(entries)
        self._counts.add(len(slots), data is None)
        return data

    def _made(self, entries: Entries, data: bytes) -> bytes:
        self._new.append((entries, data))
        return data

    def finish(self, options: CodegenOptions | None = None) -> bytes:
        """The object of all modules, in which only `options.exports` are global; see `compile_to_object`."""
        options = options or CodegenOptions()
        self._pool.finish()
        data = _joined([_Code(_linked(objects, own.exports), {}) for own, objects in self._modules], options.exports)
        missing = [name for name in undefined_symbols(data) if name not in EXTERNALS | options.externals]
        if missing:
            raise LoweringError(
                f"the generated code calls functions that do not exist at run time: {', '.join(missing)}",
                stage="codegen",
                help="an operation must be expanded before it reaches LLVM; see the table EXTERNALS in targets/llvm.py",
            )
        for entries, objects in self._lowered:
            parts = [(code.entries, code.names) for _, code in sorted(objects.items())]
            kept = [(key, names) for key, names in parts if key is not None]
            if len(kept) == len(parts):
                self._new.append((entries, code_cache.index_of(kept)))
        code_cache.store(self._new)
        return data

    def abandon(self) -> None:
        """Cancel the compilation."""
        self._pool.abandon()


class _Code(NamedTuple):
    """An object, new names of its symbols by their names, and its key in the cache, if it is kept."""

    data: bytes
    names: Mapping[str, str]
    entries: Entries | None = None


_Objects = dict[tuple[int, int], _Code]
"""The objects of a module, by the indices of part and unit."""
_Slots = Sequence[tuple[int, Mapping[str, str]]]
"""The indices of equal units in their part, with the names that their symbols have."""


def _equal_units(units: Sequence[Unit]) -> list[tuple[_Slots, Unit]]:
    """The units, each text once."""
    slots: dict[str, list[tuple[int, Mapping[str, str]]]] = {}
    for slot, unit in enumerate(units):
        slots.setdefault(unit.text, []).append((slot, unit.names))
    return [(slots[unit.text], unit) for unit in {unit.text: unit for unit in units}.values()]


def _through(names: Mapping[str, str], unit: Unit) -> dict[str, str]:
    """Names of symbols in the program, of symbols whose names are those of a unit."""
    return {new: unit.names.get(old, old) for new, old in names.items()}


def _entries(text: str, passes: str, options: CodegenOptions) -> Entries:
    """The key of code that passes and LLVM's code generator make of a text."""
    flags = options.level, options.loop_vectorise, options.slp_vectorise, options.unroll, options.vector_width
    chosen = ("passes", f"{passes} {flags}")
    return code_cache.entries_of(text, [chosen, *_processor_entries(*_processor(options))])


@cache
def _processor_entries(cpu: str, features: str, triple: str) -> Entries:
    return ("cpu", cpu), ("cpu.flags", digest(features.encode())), ("triple", triple)


def _compiled(part: _Part, options: CodegenOptions) -> bytes:
    # Own contexts: in a shared one, type names depend on what was compiled before.
    with _machine(options) as machine, Context() as context:
        module = _parse(part.text, context, machine)
        part.run_passes(module, options)
        return _object(module, part, options)


def _object(module: Module, part: _Part, options: CodegenOptions) -> bytes:
    """The object of the optimised module of a part."""
    if part.is_vector_code or not may_have_long_sums(part.text):
        return module.emit()
    text = str(module)
    cut = cut_sums(text)
    if cut == text:
        return module.emit()
    # The variants of functions for vectors are inlined or erased, and the parser refuses attributes that name them.
    cut = _VARIANTS.sub("", cut)
    with _machine(options) as machine, Context() as context:
        return _parse(cut, context, machine).emit()


def _linked(objects: _Objects, exports: Collection[str]) -> bytes:
    """The object of a module."""
    return _joined([objects[slot] for slot in sorted(objects)], exports)


def _joined(objects: Sequence[_Code], exports: Collection[str]) -> bytes:
    if len(objects) == 1 and not objects[0].names:
        return objects[0].data
    return join([code.data for code in objects], exports, [code.names for code in objects])


@contextmanager
def _optimised(source: Any, options: CodegenOptions) -> Iterator[Module]:
    """One optimised module, to be used inside of the `with`."""
    text = _checked_text(source, options)
    modules = []
    with _machine(options) as machine, Context() as context:
        for part in _parts(text, options):
            module = _parse(part.text, context, machine)
            part.run_passes(module, options)
            modules.append(module)
        for other in modules[1:]:
            modules[0].link_in(other)
        if len(modules) > 1:
            modules[0].hide(but=options.exports)
        yield modules[0]


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
