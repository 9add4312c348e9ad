"""Lower contractions: contractions on memrefs become calls of vector kernels, generated for their shapes.

Before:
    linalg.fill ins(%zero : f32) outs(%c : memref<360x40xf32>)
    linalg.matmul {mlirml.schedule = {kernel = "direct", ...}}
        ins(%a, %b : memref<360x64xf32>, memref<64x40xf32>) outs(%c : memref<360x40xf32>)
After:
    call @contract_direct_f32_360x40x64(%a, %b, %c)

    func.func private @contract_direct_f32_360x40x64(%a: memref<360x64xf32>, %b: memref<64x40xf32>, ...) {
      ... vector.fma ...
    }

A fill with zero right before is dropped: the kernel overwrites instead. The elementwise consumer of a product runs on
the register tile (`consumer.py`), and its inits are written instead of the product, or with the last block of k if the
output has the partial sums of those before. The elementwise producer of an operand that a kernel reads once is computed
as it is read (`producer.py`). Contractions of equal shapes, layouts, schedules and consumers share a kernel, and others
parts of kernels (`shared.py`). Small ones are emitted inline (`small.py`).
Packing buffers are allocated at the top level of the calling function, for mlirml-plan-buffers. A contraction with the
schedule "loops", or that no kernel fits, is left to mlirml-lower-loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TypeVar

from mlirml.analysis.memory import Effects, effects
from mlirml.analysis.traits import PARALLEL_LOOPS
from mlirml.codegen.cpu.contract.attribute import NAME, read_fields
from mlirml.codegen.cpu.contract.consumer import Consumer, match_consumer
from mlirml.codegen.cpu.contract.kernel import Argument, Buffer, Job, Kernel, Prologue
from mlirml.codegen.cpu.contract.plan import BITS, MASK_REGISTER_BITS, Schedule, check, plan
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, Contraction, Problem, build_problem, match_contraction
from mlirml.codegen.cpu.contract.producer import Producer, check_prologues, erase_buffer, match_producer
from mlirml.codegen.cpu.contract.small import build_small, check_small
from mlirml.codegen.cpu.contract.write import fits
from mlirml.codegen.cpu.structured import last_fill
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations, parse
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, ANY_WINDOW
from mlirml.passes.report import remark
from mlirml.targets.machine import Processor

T = TypeVar("T")
_DYNAMIC = mlir.ShapedType.get_dynamic_stride_or_offset()
_SMALL_SHARE = 16
"""A product is small if it has at most this fraction of the elements of its factors."""


@register(when=(*ANY_CONTRACTION, *ANY_WINDOW), optional=True)
class LowerContractPass(Pass):
    """Replace contractions on memrefs by calls of kernels for a processor."""

    processor: Processor = Processor()
    libraries: tuple[str, ...] = ()

    def run(self, module: mlir.Operation) -> None:
        library = Library(module)
        matches: list[tuple[mlir.Operation, CallMatch]] = []
        small: list[tuple[mlir.Operation, Contraction]] = []
        taken: list[mlir.Operation] = []
        # All are matched before one is changed: a consumer may come after several contractions.
        look = cache(effects)
        for op in named_operations(module, CONTRACTIONS):
            try:
                if read_fields(op).get("kernel") == "small":
                    small.append((op, match_small(op)))
                    continue
                matches.append((op, match_call(op, self.processor, taken, look, libraries=bool(self.libraries))))
            except NoMatch:
                if NAME in op.attributes:
                    del op.attributes[NAME]
        for op, match in matches:
            with op.location:
                build_call(op, match, library)
        for op, contraction in small:
            build_small(op, contraction, _zero_fill(op))
        library.finish()


def match_small(op: mlir.Operation) -> Contraction:
    """Match a contraction that is emitted inline; raises `NoMatch`."""
    if not all(isinstance(value.type, mlir.MemRefType) for value in op.operands):
        raise NoMatch("an operand is no memref")
    contraction = match_contraction(op)
    check_small(contraction)
    return contraction


@dataclass(frozen=True)
class CallMatch:
    """A contraction to replace by a call of the kernel for `job` on `operands`, inserted before `at`.

    `replaced` are operations that the kernel includes: the zero fill of the init, and the consumer.
    """

    job: Job
    operands: tuple[mlir.Value, ...]
    at: mlir.Operation
    replaced: tuple[mlir.Operation, ...]


def match_call(
    op: mlir.Operation,
    machine: Processor,
    taken: list[mlir.Operation],
    look: Callable[[mlir.Operation], Effects] = effects,
    *,
    libraries: bool = False,
) -> CallMatch:
    """Match a contraction; raises `NoMatch` if it must be lowered to loops.

    Schedules that call a library do so with `libraries`, and outside of parallel loops only.
    `taken` are the consumers and producers that other contractions compute, to which its own are added. `look` returns
    the memory effects of an operation.
    """
    if not all(isinstance(value.type, mlir.MemRefType) for value in op.operands):
        raise NoMatch("an operand is no memref")
    given = read_fields(op)
    if given.get("kernel") == "loops":
        raise NoMatch("its schedule says so")
    form = Form(op, match_contraction(op), tuple(op.operands), tuple(_layout(value.type) for value in op.operands))
    contraction, layouts = form.contraction, form.layouts
    problem = build_problem(contraction, [strides for strides, _ in layouts])
    schedule = Schedule(**given) if "kernel" in given else plan(problem, machine)
    try:
        check(problem, schedule)
        if schedule.tiles and not machine.has_tiles:
            raise NoMatch("this process has no tile registers")
        if schedule.kernel == "library" and not (libraries and outside_parallel_loops(op)):
            raise NoMatch("no library may be called")
    except NoMatch:
        # The layouts, or the machine, differ from those for which the schedule was chosen.
        schedule = plan(problem, machine)
    if schedule.kernel == "symmetric" and _zero_fill(op) is None:
        # The old contents of the init need not be symmetric.
        schedule = plan(replace(problem, same=False), machine)
    if schedule.kernel in ("loops", "small"):
        raise NoMatch("no kernel fits")
    consumer: Consumer | None = None
    with suppress(NoMatch):
        consumer = _consumer(form, schedule, taken, look)
    match = _call(form, schedule, consumer, {})
    producers: dict[int, Producer] = {}
    # The symmetric kernel reads both operands as one array.
    pairs = ((0, 1),) if schedule.kernel == "symmetric" else ((0,), (1,))
    for numbers in () if schedule.kernel == "library" else pairs:
        try:
            producer = match_producer(op, numbers[0], match.at, len(numbers))
            if producer.op in taken:
                raise NoMatch("another kernel computes the operand")
            found = {**producers, **dict.fromkeys(numbers, producer)}
            match = _call(form, match.job.schedule, consumer, found)
            producers = found
        except NoMatch:
            continue
    taken += [producer.op for producer in producers.values()]
    taken += [consumer.op] if consumer is not None else []
    return match


def outside_parallel_loops(op: mlir.Operation) -> bool:
    """True if an operation is in no parallel loop: a library has threads of its own."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        if parent.name in PARALLEL_LOOPS or "mlirml.parallel" in parent.operation.attributes:
            return False
        parent = parent.operation.parent
    return True


def _ordered(problem: Problem, operands: Sequence[T]) -> tuple[T, ...]:
    """Operands of a contraction in the order of its kernel."""
    first, second, *others = operands
    return (second, first, *others) if problem.swapped else (first, second, *others)


@dataclass(frozen=True)
class Form:
    """A contraction, its operands and their layouts: strides, and the offset or None when it is dynamic."""

    op: mlir.Operation
    contraction: Contraction
    operands: tuple[mlir.Value, ...]
    layouts: tuple[tuple[list[int], int | None], ...]


def _consumer(
    form: Form, schedule: Schedule, taken: Sequence[mlir.Operation], look: Callable[[mlir.Operation], Effects]
) -> Consumer:
    """The elementwise consumer that runs on the register tiles of a contraction; raises `NoMatch`."""
    if schedule.kernel not in ("packed", "symmetric", "direct"):
        raise NoMatch("only register tiles take an epilogue")
    consumer = match_consumer(form.op, taken, look)
    _call(form, schedule, consumer, {})
    return consumer


def is_long(problem: Problem, schedule: Schedule) -> bool:
    """True if sums span several blocks of the reduction dimension, and the product is much smaller than its factors."""
    m, n, k = problem.m.size, problem.n.size, problem.k_size
    return k > 2 * schedule.kc and _SMALL_SHARE * m * n <= k * (m + n)


def adds_blocks(problem: Problem, schedule: Schedule) -> bool:
    """True if a product with a consumer is added up in its output, block by block of k, if there are more than two.

    Longer sums of tiles visit the output once, but small tiles then read both operands from beyond the L1 cache.
    """
    small = schedule.lanes * BITS[problem.compute] < MASK_REGISTER_BITS
    return schedule.kernel == "packed" and small and problem.n.c == 1 and problem.k_size > 2 * schedule.kc


def _call(form: Form, schedule: Schedule, consumer: Consumer | None, producers: Mapping[int, Producer]) -> CallMatch:
    """The kernel that includes this consumer and these producers of a contraction; raises `NoMatch`."""
    contraction, fill = form.contraction, _zero_fill(form.op)
    operands, layouts = list(form.operands), list(form.layouts)
    extra: list[mlir.Value] = []
    steps: list[dict[int, int]] = []
    if consumer is not None:
        extra += consumer.operands
        steps += [
            _steps(v, dims, contraction.maps[2]) for v, dims in zip(consumer.operands, consumer.dims, strict=True)
        ]
    firsts = {}
    for number, producer in producers.items():
        strides, offset = _layout(producer.main.type)
        operands[number] = producer.main
        layouts[number] = [strides[producer.order.index(d)] for d in range(len(strides))], offset
        firsts[number] = len(extra)
        extra += producer.operands
        loops = contraction.maps[number]
        steps += [_steps(v, dims, loops) for v, dims in zip(producer.operands, producer.dims, strict=True)]
    problem = build_problem(contraction, [strides for strides, _ in layouts], steps)
    kept, in_blocks = consumer is None or consumer.keep or fill is None, False
    if consumer is not None:
        if kept and not fits(problem.n.c, problem.n.size, is_out=True):
            raise NoMatch("the product, which is kept, walks across memory")
        inputs = len(consumer.epilogue.inputs)
        for number, stride in enumerate(problem.n.more[: len(consumer.operands)]):
            if not fits(stride, problem.n.size, is_out=number >= inputs):
                raise NoMatch("the consumer walks across memory")
        if problem.k_size > schedule.kc and len(problem.k) == 1:
            in_blocks = adds_blocks(problem, schedule)
            if schedule.kernel in ("packed", "symmetric") and not in_blocks and is_long(problem, schedule):
                raise NoMatch("a pass over the small product takes less time than packing all of its factors at once")
            if schedule.kernel == "symmetric":
                panels = max(1, schedule.nc // schedule.nr * schedule.kc // problem.k_size)
                schedule = replace(schedule, nc=panels * schedule.nr)
            schedule = schedule if in_blocks else replace(schedule, kc=problem.k_size)
        check(problem, schedule)
    prologues = []
    for number, producer in producers.items():
        letter = "a" if (number == 0) != problem.swapped else "b"
        element = str(mlir.MemRefType(form.operands[number].type).element_type)
        prologues.append(Prologue(letter, firsts[number], element, producer.body))
    arguments: list[Argument | None] = [_argument(value.type, *_layout(value.type)) for value in (*operands, *extra)]
    if not kept and not in_blocks:
        arguments[2] = None
    epilogue = consumer.epilogue if consumer is not None else None
    job = Job(problem, schedule, _ordered(problem, arguments), fill is None, epilogue, tuple(prologues), not kept)
    if prologues:
        check(problem, schedule)
        check_prologues(job)
    replaced = [op for op in (fill, consumer.op if consumer else None) if op is not None]
    for producer in producers.values():
        if producer.op not in replaced:
            replaced.append(producer.op)
    at = consumer.op if consumer is not None else form.op
    return CallMatch(job, _ordered(problem, [*operands, *extra]), at, tuple(replaced))


def _steps(value: mlir.Value, dims: Sequence[int | None], loops: Sequence[int]) -> dict[int, int]:
    """The stride, in an operand of the consumer or producer, of each loop of the contraction."""
    strides, _ = _layout(value.type)
    steps: dict[int, int] = {}
    for dim, stride in zip(dims, strides, strict=True):
        if dim is not None:
            steps[loops[dim]] = steps.get(loops[dim], 0) + stride
    return steps


def _layout(memref_type: mlir.MemRefType) -> tuple[list[int], int | None]:
    """Strides, and the offset or None when it is dynamic."""
    if memref_type.memory_space is not None:
        raise NoMatch("a memref is in a memory space of its own")
    try:
        strides, offset = memref_type.get_strides_and_offset()
    except RuntimeError as error:
        raise NoMatch(f"{memref_type} has no strides") from error
    if _DYNAMIC in strides:
        raise NoMatch(f"{memref_type} has dynamic strides")
    return strides, None if offset == _DYNAMIC else offset


def _argument(memref_type: mlir.MemRefType, strides: Sequence[int], offset: int | None) -> Argument:
    """The kernel's static knowledge of an operand. Slices of one array, such as queries and keys, differ only in their
    offset, which is passed as an argument, so that they share a kernel."""
    offset = None if offset else offset
    element = str(memref_type.element_type)
    span = 1 + sum((size - 1) * stride for size, stride in zip(memref_type.shape, strides, strict=True))
    return Argument(f"memref<{element}>" if offset is None else str(memref_type), element, offset, span)


def _zero_fill(op: mlir.Operation) -> mlir.Operation | None:
    fill = last_fill(op, op.operands[2])
    constant = defining_op(fill.operands[0]) if fill else None
    if fill is None or constant is None or constant.name != "arith.constant":
        return None
    value = constant.attributes["value"].value
    return fill if value == 0 and math.copysign(1.0, value) > 0 else None


def _build_kernel(job: Job, name: str) -> Kernel:
    """The kernel for `job`. Its schedule's module is imported here: few programs use all schedules."""
    schedule = "panels" if job.panels else job.schedule.kernel
    if job.panels and job.schedule.tiles:
        from mlirml.codegen.cpu.contract.amx import AmxKernel

        return AmxKernel(job).build(name)
    if schedule == "panels":
        from mlirml.codegen.cpu.contract.panels import PanelKernel

        return PanelKernel(job).build(name)
    if schedule == "symmetric":
        from mlirml.codegen.cpu.contract.symmetric import SymmetricKernel

        return SymmetricKernel(job).build(name)
    if schedule == "dot":
        from mlirml.codegen.cpu.contract.dot import DotKernel

        return DotKernel(job).build(name)
    if schedule == "stream":
        from mlirml.codegen.cpu.contract.stream import StreamKernel

        return StreamKernel(job).build(name)
    if schedule == "library":
        from mlirml.codegen.cpu.contract.library_kernel import build_library

        return build_library(job, name)
    assert schedule in ("packed", "direct"), schedule
    from mlirml.codegen.cpu.contract.tile import TileKernel

    return TileKernel(job).build(name)


class Library:
    """The kernels of a module, one for each distinct contraction, and the functions that kernels share."""

    def __init__(self, module: mlir.Operation) -> None:
        self.block = module.regions[0].blocks[0]
        symbols = [op.attributes["sym_name"] for op in block_ops(self.block) if "sym_name" in op.attributes]
        self._names = {mlir.StringAttr(symbol).value for symbol in symbols}
        self._kernels: dict[Job, tuple[str, tuple[Buffer, ...]]] = {}
        self._texts: list[tuple[str, mlir.Location]] = []

    def kernel(self, job: Job, location: mlir.Location) -> tuple[str, tuple[Buffer, ...]]:
        """The name and the buffers of the kernel for `job`; it is built on first use."""
        if job not in self._kernels:
            name = self._fresh(job)
            kernel = _build_kernel(job, name)
            new = [(shared, text) for shared, text in kernel.functions if shared not in self._names]
            self._names.update(shared for shared, _ in new)
            self._texts += [(text, location) for text in (kernel.text, *(text for _, text in new))]
            self._kernels[job] = name, kernel.buffers
        return self._kernels[job]

    def _fresh(self, job: Job) -> str:
        p = job.problem
        base = f"contract_{job.schedule.kernel}_{p.compute}_{p.m.size}x{p.n.size}x{p.k_size}"
        names = (base if number == 0 else f"{base}_{number}" for number in range(len(self._names) + 1))
        name = next(name for name in names if name not in self._names)
        self._names.add(name)
        return name

    def finish(self) -> None:
        """Append all functions to the module."""
        if not self._texts:
            return
        parsed = parse("\n".join(text for text, _ in self._texts), self._texts[0][1].context)
        for function, (_, location) in zip(block_ops(parsed.body), self._texts, strict=True):
            for op in operations(function):
                op.location = location
            function.detach_from_parent()
            self.block.append(function)


def describe(job: Job, name: str) -> str:
    """The remark that explains the kernel of a contraction."""
    chosen = job.schedule
    if chosen.kernel == "library":
        return f"computed by OpenBLAS, called by @{name}"
    text = f"computed by @{name}, register tile {chosen.mr} x {chosen.nr}" + (" (AMX)" if chosen.tiles else "")
    if chosen.kernel == "packed":
        text += f", packs {' and '.join(chosen.pack)} in blocks of {chosen.kc} along k"
    if chosen.kernel == "symmetric":
        text += (
            f", packs its matrix once in blocks of {chosen.kc} along k, computes the tiles on and below the diagonal"
        )
    text += f", splits its {chosen.parallel} among threads" if chosen.parallel != "none" else ""
    text += ", computes an operand as it reads it" if job.prologues else ""
    return text + (", and its elementwise consumer runs on the tile" if job.epilogue else "")


def build_call(op: mlir.Operation, match: CallMatch, library: Library) -> None:
    """Replace `op` by a call of its kernel."""
    name, buffers = library.kernel(match.job, op.location)
    remark(op, describe(match.job, name))
    pairs = [(v, a) for v, a in zip(match.operands, match.job.arguments, strict=True) if a is not None]
    with mlir.InsertionPoint(match.at):
        bases, offsets = _pass_operands(pairs)
        scratch = _allocate(match.at, buffers)
        emit.create("func.call", [*bases, *offsets, *scratch], (), {"callee": mlir.FlatSymbolRefAttr.get(name)})
    factors = op.operands[:1] if op.operands[0] == op.operands[1] else op.operands[:2]
    unused = [operand for operand in factors if operand not in match.operands]
    for other in (*match.replaced, op):
        other.erase()
    for buffer in unused:
        erase_buffer(buffer)


def _pass_operands(pairs: Sequence[tuple[mlir.Value, Argument]]) -> tuple[list[mlir.Value], list[mlir.Value]]:
    """The memrefs to pass, and the offsets of those whose offset is dynamic."""
    bases, offsets = [], []
    for value, argument in pairs:
        if argument.offset is not None:
            bases.append(value)
            continue
        index, memref_type = mlir.IndexType.get(), mlir.MemRefType(value.type)
        results = [mlir.MemRefType.get([], memref_type.element_type), *[index] * (1 + 2 * memref_type.rank)]
        metadata = emit.create("memref.extract_strided_metadata", [value], results).results
        bases.append(metadata[0])
        offsets.append(metadata[1])
    return bases, offsets


def _allocate(op: mlir.Operation, buffers: Sequence[Buffer]) -> list[mlir.Value]:
    """Buffers for one call: slices of the workspace, the same ones in each iteration of a sequential loop.

    In a concurrent loop every iteration needs its own.
    """
    if not buffers:
        return []
    function, concurrent = op.parent, False
    while function.name != "func.func":
        concurrent = concurrent or function.name in PARALLEL_LOOPS
        function = function.parent
    types = [mlir.Type.parse(buffer.type) for buffer in buffers]
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
    with mlir.InsertionPoint(op):
        values = [emit.value("memref.alloc", (), buffer_type, **attributes) for buffer_type in types]
    if concurrent or mlir.StringAttr(function.attributes["sym_name"]).value != "main":
        following = mlir.InsertionPoint.after(op)
        with following:
            for value in values:
                emit.create("memref.dealloc", [value])
    return values
