"""Lower convolutions: those on memrefs, and poolings, become calls of vector kernels, made for their shapes.

Before:
    linalg.fill ins(%zero : f32) outs(%p : memref<1x64x58x58xf32>)
    memref.copy %x, %middle : memref<1x64x56x56xf32> to memref<1x64x56x56xf32, strided<...>>   // a subview of %p
    linalg.generic ins(%bias : memref<64xf32>) outs(%y : memref<1x64x56x56xf32>) { linalg.yield %in : f32 }
    linalg.conv_2d_nchw_fchw ins(%p, %w : ...) outs(%y : memref<1x64x56x56xf32>)
After:
    call @conv_filters_f32_64x56x56x64x3x3(%x, %w, %y, %bias, %buffer0, %buffer1)

What the sums start from (a constant, or the bias of each filter), padding by a constant, and one elementwise operation
on the result are folded into the kernel.
Kernels are shared by convolutions of equal shapes, layouts and forms. A convolution that adds to what its out holds, or
that no kernel fits, is left to mlirml-lower-loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.codegen.cpu.conv.epilogue import Epilogue
from mlirml.codegen.cpu.conv.filters import FilterKernel
from mlirml.codegen.cpu.conv.frame import Argument, Kernel
from mlirml.codegen.cpu.conv.neighbours import Start, last_writer, match_following, match_padding, match_start
from mlirml.codegen.cpu.conv.pixels import PixelKernel
from mlirml.codegen.cpu.conv.plan import Plan, plan
from mlirml.codegen.cpu.conv.problem import Problem, match_convolution, match_form, static_strides, terms
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations, parse
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_WINDOW

_CONCURRENT = ("scf.parallel", "scf.forall")
FEW_FILTERS = 8
"""From so many filters on, kernels whose vectors hold filters are taken whatever the width of vectors."""


@register(when=ANY_WINDOW)
@dataclass(frozen=True)
class LowerConvPass(Pass):
    """Replace convolutions and poolings on memrefs by calls of kernels. `vector_bits` is the width of a register."""

    name = "mlirml-lower-conv"
    vector_bits: int = 256

    def run(self, module: mlir.Operation) -> None:
        library = Library(module)
        ops = [op for op in operations(module) if op.name.startswith("linalg.") and op.regions]
        gone: set[int] = set()
        for number, op in enumerate(ops):
            if number in gone:
                continue
            try:
                match_form(op)
                check_place(op)
                with op.location:
                    straighten(op)
                match = match_call(op, self.vector_bits)
            except NoMatch:
                continue
            erased = (op, match.start.op, *match.dead)
            gone.update(i for i, other in enumerate(ops) if i not in gone and other in erased)
            with op.location:
                build_call(op, match, library)


def straighten(op: mlir.Operation) -> None:
    """Copy operands whose layout no kernel takes: those at dynamic places, and outs whose rows are not in one piece.

    The rows of an out are along the last dimension that a window slides along, which need not be its last one: channels
    are in layouts such as NHWC.
    """
    out = op.operands[2]
    writer = last_writer(op, out)
    if writer is None or writer.name not in ("linalg.fill", "linalg.generic"):
        raise NoMatch("it is not known what the out holds")
    for position, value in enumerate(list(op.operands)):
        kind = value.type
        rows = row_axes(op) if position == 2 else []
        if is_straight(kind, rows):
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
    """The innermost dimensions of the out: the elements of the last one must lie in one piece.

    Where vectors hold filters, they are those that windows are placed along; where they hold pixels, copying the out
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


def is_straight(kind: mlir.MemRefType, rows: Sequence[int]) -> bool:
    """True if a layout is static and the last one of the dimensions `rows` in one piece."""
    try:
        strides = static_strides(kind)
    except NoMatch:
        return False
    return not rows or strides[rows[-1]] == 1


def in_order(buffer: mlir.Value, order: Sequence[int]) -> mlir.Value:
    """A view of a new buffer, dimension d of which is dimension `order[d]` of the view."""
    shape = list(buffer.type.shape)
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    places = [order.index(d) for d in range(len(order))]
    sizes, steps = [shape[place] for place in places], [strides[place] for place in places]
    layout = mlir.StridedLayoutAttr.get(0, steps)
    attributes = {
        "static_offsets": mlir.DenseI64ArrayAttr.get([0]),
        "static_sizes": mlir.DenseI64ArrayAttr.get(sizes),
        "static_strides": mlir.DenseI64ArrayAttr.get(steps),
        "operandSegmentSizes": emit.segments(1, 0, 0, 0),
    }
    kind = mlir.MemRefType.get(sizes, buffer.type.element_type, layout)
    with mlir.InsertionPoint.after(buffer.owner.operation):
        return emit.create("memref.reinterpret_cast", [buffer], [kind], attributes).results[0]


@dataclass(frozen=True)
class CallMatch:
    """What a convolution is replaced by."""

    problem: Problem
    plan: Plan
    operands: tuple[tuple[str, mlir.Value], ...]
    start: Start
    filler: str
    dead: tuple[mlir.Operation, ...]
    epilogue: Epilogue | None
    place: mlir.Operation


def match_call(op: mlir.Operation, vector_bits: int) -> CallMatch:
    """Look at an operation; raises `NoMatch` when it is to be lowered to loops."""
    problem = match_convolution(op)
    check_place(op)
    start = match_start(op, problem)
    x, w, out = op.operands
    padding = match_padding(op, x)
    filler = "0"
    dead: tuple[mlir.Operation, ...] = ()
    if padding is not None and problem.slides[2].x == 1:
        problem = match_convolution(op, padding.source, padding.low)
        x, filler, dead = padding.source, padding.filler, padding.ops
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
    place = following.op if following is not None and following.late else op
    return CallMatch(problem, plan(problem, vector_bits), tuple(operands), start, filler, dead, epilogue, place)


def check_place(op: mlir.Operation) -> None:
    """`NoMatch` where there is no room for scratch buffers: outside of @main, or in a parallel loop."""
    around = op.parent.operation
    while around.name != "func.func":
        if around.name in _CONCURRENT:
            raise NoMatch("it stands in a parallel loop")
        around = around.parent.operation
    if mlir.StringAttr(around.attributes["sym_name"]).value != "main":
        raise NoMatch("it stands outside of @main")


class Library:
    """The kernels of a module, one for each distinct convolution."""

    def __init__(self, module: mlir.Operation) -> None:
        self.block = module.regions[0].blocks[0]
        symbols = [op.attributes["sym_name"] for op in block_ops(self.block) if "sym_name" in op.attributes]
        self._names = {mlir.StringAttr(symbol).value for symbol in symbols}
        self._kernels: dict[object, tuple[str, tuple[str, ...]]] = {}

    def kernel(self, match: CallMatch, location: mlir.Location) -> tuple[str, tuple[str, ...]]:
        """The name and the types of the buffers of the kernel that does what `match` asks."""
        arguments = {name: argument(value) for name, value in match.operands}
        key = (match.problem, match.plan, tuple(arguments.items()), match.filler, match.start.scalar, match.epilogue)
        if key not in self._kernels:
            name = self._fresh(match)
            kernel: Kernel
            shared = match.problem, match.plan, arguments, match.filler, match.epilogue
            if match.plan.kernel == "filters":
                kernel = FilterKernel(*shared).build(name)
            else:
                initial = match.start.scalar
                kernel = PixelKernel(*shared, initial).build(name)
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
    """How a kernel takes a memref."""
    kind = value.type
    strides, offset = kind.get_strides_and_offset()
    span = 1 + sum((size - 1) * stride for size, stride in zip(kind.shape, strides, strict=True))
    return Argument(str(kind), str(kind.element_type), offset, span)


def build_call(op: mlir.Operation, match: CallMatch, library: Library) -> None:
    """Replace `op` by a call of its kernel."""
    name, buffers = library.kernel(match, op.location)
    scratch = allocate(op, [mlir.Type.parse(kind) for kind in buffers])
    with mlir.InsertionPoint(match.place):
        operands = [value for _, value in match.operands]
        emit.create("func.call", [*operands, *scratch], (), {"callee": mlir.FlatSymbolRefAttr.get(name)})
    op.erase()
    match.start.op.erase()
    for dead in match.dead:
        dead.erase()


def allocate(op: mlir.Operation, kinds: Sequence[mlir.Type]) -> list[mlir.Value]:
    """Scratch buffers at the top level of the function, for mlirml-plan-buffers."""
    place = op
    while place.parent.operation.name != "func.func":
        place = place.parent.operation
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
    with mlir.InsertionPoint(place):
        return [emit.value("memref.alloc", (), kind, **attributes) for kind in kinds]
