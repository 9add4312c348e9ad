"""Lower convolutions: convolutions and poolings on memrefs become calls of vector kernels, generated for their shapes.

Before:
    linalg.fill ins(%zero : f32) outs(%p : memref<1x64x58x58xf32>)
    memref.copy %x, %middle : memref<1x64x56x56xf32> to memref<1x64x56x56xf32, strided<...>>   // a subview of %p
    linalg.generic ins(%bias : memref<64xf32>) outs(%y : memref<1x64x56x56xf32>) { linalg.yield %in : f32 }
    linalg.conv_2d_nchw_fchw ins(%p, %w : ...) outs(%y : memref<1x64x56x56xf32>)
After:
    call @conv_filters_f32_64x56x56x64x3x3(%x, %w, %y, %bias, %buffer0, %buffer1)

The initial value of the sums (a constant, or the bias of each filter), padding by a constant, and one elementwise
operation on the result are fused into the kernel. Kernels are shared by convolutions of equal shapes, layouts and
forms. A convolution that accumulates into its init, or that no kernel fits, is left to mlirml-lower-loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.traits import PARALLEL_LOOPS
from mlirml.codegen.cpu.conv.epilogue import Epilogue
from mlirml.codegen.cpu.conv.filters import FilterKernel
from mlirml.codegen.cpu.conv.frame import Argument, Kernel
from mlirml.codegen.cpu.conv.neighbours import Start, last_writer, match_following, match_padding, match_start
from mlirml.codegen.cpu.conv.pixels import PixelKernel
from mlirml.codegen.cpu.conv.plan import Plan, plan, plans
from mlirml.codegen.cpu.conv.problem import Problem, match_convolution, match_form, static_strides, terms
from mlirml.codegen.cpu.conv.schedule import to_words, words_of
from mlirml.codegen.cpu.conv.separable import SeparableKernel
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations, parse
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_WINDOW
from mlirml.targets.machine import Processor

FEW_FILTERS = 8
"""From this number of filters on, the lanes of vectors are filters, whatever the vector width."""


@register(when=ANY_WINDOW, optional=True)
class LowerConvPass(Pass):
    """Replace convolutions and poolings on memrefs by calls of kernels for a processor."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        library = Library(module)
        ops = [op for op in operations(module) if op.name.startswith("linalg.") and op.regions]
        skipped: set[int] = set()
        for number, op in enumerate(ops):
            if number in skipped:
                continue
            try:
                check_static(op)
                match_form(op)
                check_scratch_allowed(op)
                with op.location:
                    copy_unsupported_layouts(op)
                match = match_call(op, self.processor)
            except NoMatch:
                continue
            erased = (op, match.start.op, *match.dead)
            skipped.update(i for i, other in enumerate(ops) if i not in skipped and other in erased)
            with op.location:
                build_call(op, match, library)


def check_static(op: mlir.Operation) -> None:
    """Raise `NoMatch` for arrays of dynamic sizes."""
    if not all(value.type.has_static_shape for value in op.operands if isinstance(value.type, mlir.MemRefType)):
        raise NoMatch("sizes are dynamic")


def copy_unsupported_layouts(op: mlir.Operation) -> None:
    """Copy operands whose layout no kernel accepts: dynamic offsets or strides, and inits without contiguous rows.

    The rows of an init are along the last dimension that a window slides along, which need not be the last one: layouts
    such as NHWC end with the channels.
    """
    out = op.operands[2]
    writer = last_writer(op, out)
    if writer is None or writer.name not in ("linalg.fill", "linalg.generic"):
        raise NoMatch("it is not known what the out holds")
    for position, value in enumerate(list(op.operands)):
        kind = value.type
        rows = row_axes(op) if position == 2 else []
        if has_supported_layout(kind, rows):
            continue
        order = [d for d in range(len(kind.shape)) if d not in rows] + rows
        (copy,) = allocate(writer, [mlir.MemRefType.get([kind.shape[d] for d in order], kind.element_type)])
        if order != sorted(order):
            copy = in_order(copy, order)
        op.operands[position] = copy
        if position == 2:
            writer.operands[len(writer.operands) - 1] = copy
            with mlir.InsertionPoint.after(op):
                emit.create("memref.copy", [copy, value])
        else:
            with mlir.InsertionPoint(op):
                emit.create("memref.copy", [value, copy])


def row_axes(op: mlir.Operation) -> list[int]:
    """The innermost dimensions of the init: the elements along the last one must be contiguous.

    If vectors hold filters, they are the dimensions that windows slide along; if vectors hold pixels, copying the init
    alone would not help.
    """
    maps, _, product = match_form(op)
    image = [terms(expression) for expression in maps[0].results]
    loops = {loop for pair in image for loop in pair}
    out = [expression.position for expression in maps[2].results]
    sizes = op.operands[2].type.shape
    if product and any(loop not in loops and size >= FEW_FILTERS for loop, size in zip(out, sizes, strict=True)):
        slid = [pair for pair in image if len(pair) > 1]
        return [axis for pair in slid for axis, loop in enumerate(out) if loop in pair]
    return [len(out) - 1]


def has_supported_layout(memref_type: mlir.MemRefType, rows: Sequence[int]) -> bool:
    """True if a layout is static and the last one of the dimensions `rows` is contiguous."""
    try:
        strides = static_strides(memref_type)
    except NoMatch:
        return False
    return not rows or strides[rows[-1]] == 1


def in_order(buffer: mlir.Value, order: Sequence[int]) -> mlir.Value:
    """A transposed view of a new buffer: dimension d of the buffer is dimension `order[d]` of the view."""
    shape = list(buffer.type.shape)
    strides = [math.prod(shape[position + 1 :]) for position in range(len(shape))]
    positions = [order.index(d) for d in range(len(order))]
    sizes, steps = [shape[position] for position in positions], [strides[position] for position in positions]
    layout = mlir.StridedLayoutAttr.get(0, steps)
    kind = mlir.MemRefType.get(sizes, buffer.type.element_type, layout)
    with mlir.InsertionPoint.after(buffer.owner.operation):
        return emit.slice_op("memref.reinterpret_cast", [buffer], kind, [0], sizes, steps)


@dataclass(frozen=True)
class CallMatch:
    """A convolution to replace by a kernel call, with its folded neighbours."""

    problem: Problem
    plan: Plan
    operands: tuple[tuple[str, mlir.Value], ...]
    start: Start
    filler: str
    dead: tuple[mlir.Operation, ...]
    epilogue: Epilogue | None
    insertion: mlir.Operation


def match_call(op: mlir.Operation, machine: Processor) -> CallMatch:
    """Match an operation; raises `NoMatch` if it must be lowered to loops."""
    problem = match_convolution(op)
    check_scratch_allowed(op)
    start = match_start(op, problem)
    x, w, out = op.operands
    padding = match_padding(op, x)
    filler = "0"
    dead: tuple[mlir.Operation, ...] = ()
    if padding is not None and problem.slides[2].x == 1:
        with suppress(NoMatch):  # rows of the source that do not lie in one piece do so in the padded copy
            unpadded = match_convolution(op, padding.source, padding.low)
            plan(unpadded, machine)
            problem, x, filler, dead = unpadded, padding.source, padding.filler, padding.ops
    following = match_following(op, problem, (x, w, *([start.bias] if start.bias is not None else [])))
    if following is not None:
        out, dead = following.out, (*dead, following.op)
    operands = [("x", x), *([("w", w)] if problem.product else []), ("out", out)]
    if start.bias is not None:
        operands.append(("bias", start.bias))
    epilogue = None
    if following is not None:
        operands += [(f"input{number}", value) for number, value in enumerate(following.inputs)]
        epilogue = following.epilogue
    insertion = following.op if following is not None and following.late else op
    return CallMatch(problem, plan_of(op, problem, machine), tuple(operands), start, filler, dead, epilogue, insertion)


def plan_of(op: mlir.Operation, problem: Problem, machine: Processor) -> Plan:
    """The plan that a tuner has found for an operation, if it is one of the problem's; else the default one."""
    words = words_of(op)
    found = (each for each in plans(problem, machine) if to_words(each) == words) if words else iter(())
    return next(found, None) or plan(problem, machine)


def check_scratch_allowed(op: mlir.Operation) -> None:
    """Raise `NoMatch` if scratch buffers cannot be allocated: outside of @main, or in a parallel loop."""
    around = op.parent.operation
    while around.name != "func.func":
        if around.name in PARALLEL_LOOPS:
            raise NoMatch("it is in a parallel loop")
        around = around.parent.operation
    if mlir.StringAttr(around.attributes["sym_name"]).value != "main":
        raise NoMatch("it is outside of @main")


class Library:
    """The kernels of a module, one for each distinct convolution."""

    def __init__(self, module: mlir.Operation) -> None:
        self.block = module.regions[0].blocks[0]
        symbols = [op.attributes["sym_name"] for op in block_ops(self.block) if "sym_name" in op.attributes]
        self._names = {mlir.StringAttr(symbol).value for symbol in symbols}
        self._kernels: dict[object, tuple[str, tuple[str, ...]]] = {}

    def kernel(self, match: CallMatch, location: mlir.Location) -> tuple[str, tuple[str, ...]]:
        """The name of the kernel for `match`, and the types of its buffers."""
        arguments = {name: argument(value) for name, value in match.operands}
        key = (match.problem, match.plan, tuple(arguments.items()), match.filler, match.start.scalar, match.epilogue)
        if key not in self._kernels:
            name = self._fresh(match)
            kernel: Kernel
            shared = match.problem, match.plan, arguments, match.filler, match.epilogue
            if match.plan.kernel == "filters":
                kernel = FilterKernel(*shared).build(name)
            else:
                kernel_type = SeparableKernel if match.plan.kernel == "separable" else PixelKernel
                kernel = kernel_type(*shared, match.start.scalar).build(name)
            parsed = parse(kernel.text, location.context)
            function = block_ops(parsed.body)[0]
            for op in operations(function):
                op.location = location
            function.detach_from_parent()
            self.block.append(function)
            self._kernels[key] = name, kernel.buffers
        return self._kernels[key]

    def _fresh(self, match: CallMatch) -> str:
        p = match.problem
        sizes = [p.filters.size, *(s.count for s in p.slides), p.channels.size, *(s.kernel for s in p.slides)]
        base = f"conv_{match.plan.kernel}_{p.element}_{'x'.join(map(str, sizes))}"
        names = (base if number == 0 else f"{base}_{number}" for number in range(len(self._names) + 1))
        name = next(name for name in names if name not in self._names)
        self._names.add(name)
        return name


def argument(value: mlir.Value) -> Argument:
    """The kernel argument for a memref: its type, element type, offset and extent."""
    memref_type = value.type
    strides, offset = memref_type.get_strides_and_offset()
    span = 1 + sum((size - 1) * stride for size, stride in zip(memref_type.shape, strides, strict=True))
    return Argument(str(memref_type), str(memref_type.element_type), offset, span)


def build_call(op: mlir.Operation, match: CallMatch, library: Library) -> None:
    """Replace `op` by a call of its kernel."""
    name, buffers = library.kernel(match, op.location)
    scratch = allocate(op, [mlir.Type.parse(buffer_type) for buffer_type in buffers])
    with mlir.InsertionPoint(match.insertion):
        operands = [value for _, value in match.operands]
        emit.create("func.call", [*operands, *scratch], (), {"callee": mlir.FlatSymbolRefAttr.get(name)})
    op.erase()
    match.start.op.erase()
    for dead in match.dead:
        dead.erase()


def allocate(op: mlir.Operation, types: Sequence[mlir.Type]) -> list[mlir.Value]:
    """Allocate scratch buffers at the top level of the function, for mlirml-plan-buffers."""
    statement = op
    while statement.parent.operation.name != "func.func":
        statement = statement.parent.operation
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
    with mlir.InsertionPoint(statement):
        return [emit.value("memref.alloc", (), buffer_type, **attributes) for buffer_type in types]
