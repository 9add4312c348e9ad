"""Outline parallel loops: the body of an `scf.parallel` becomes a function that is called over a range.

Before:
    func.func @main(%x: memref<4096xf32>) {
      scf.parallel (%i) = (%c0) to (%c4096) step (%c1) {
        memref.store %cst, %x[%i] : memref<4096xf32>
        scf.reduce
      } {mlirml.grain = 1024 : i64}
    }
After:
    func.func private @main.parallel0(%lo: index, %hi: index, %x: memref<4096xf32> {llvm.noalias}) {
      scf.for %i = %lo to %hi step %c1 {
        memref.store %cst, %x[%i] : memref<4096xf32>
      }
    }
    func.func @main(%x: memref<4096xf32>) {
      call @main.parallel0(%c0, %c4096, %x) {mlirml.parallel_for = 1024 : i64}
    }

Constants and views are cloned into the function, so that only buffers, sizes and loop variables are captured; of an
array of dynamic size the address. Buffers with different roots (arguments of @main, slices of the workspace) do not
overlap, which `llvm.noalias` tells LLVM. Nested parallel loops become `scf.for`, and stack buffers are hoisted out of
the loop.
"""

from __future__ import annotations

from mlirml.analysis.captures import Captures
from mlirml.analysis.constants import constant_of
from mlirml.codegen.cpu.loop_schedule import ANNOTATION
from mlirml.dialects.mlirml import LONG_CHUNKS, parallel_for
from mlirml.errors import InternalError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, replace_op
from mlirml.passes import Pass, register
from mlirml.pipelines.memref.nontemporal.build import STREAMS, fence

_ROOTS = ("memref.view", "memref.alloc", "memref.alloca")


@register(when=("scf.parallel",))
class OutlineParallelPass(Pass):
    """Outline parallel loops into functions that the native pool calls for chunks of the range."""

    def run(self, module: mlir.Operation) -> None:
        for op in [op for op in named_operations(module, ("scf.parallel",)) if is_nested(op)]:
            serialize(op)
        loops = list(named_operations(module, ("scf.parallel",)))
        for view in named_operations(module, ("memref.view",)) if loops else ():
            if not view.results[0].type.has_static_shape:
                split_view(view)
        for function in block_ops(module.regions[0].blocks[0]):
            if function.name == "func.func":
                for number, op in enumerate(named_operations(function, ("scf.parallel",))):
                    outline(op, function, number)


def split_view(view: mlir.Operation) -> None:
    """Make an array of dynamic size of its address, which a function takes, and its shape, which is cloned."""
    memory, offset, *sizes = view.operands
    kind = view.results[0].type
    with view.location, mlir.InsertionPoint(view):
        pointer = emit.value("memref.view", [memory, offset], mlir.MemRefType.get([], kind.element_type))
        given = iter(sizes)
        shape = [next(given) if kind.is_dynamic_dim(d) else int(n) for d, n in enumerate(kind.shape)]
        strides: list[mlir.Value | int] = [1]
        for n in shape[:0:-1]:
            strides.append(emit.times(strides[-1], n))
        cast = emit.slice_op("memref.reinterpret_cast", [pointer], kind, [0], shape, strides[: len(shape)][::-1])
    replace_op(view, cast)


def is_nested(op: mlir.Operation) -> bool:
    """True if a parallel loop is nested in another."""
    parent = op.parent
    while parent is not None:
        if parent.name == "scf.parallel":
            return True
        parent = parent.operation.parent
    return False


def bounds(op: mlir.Operation) -> list[mlir.Value]:
    """Lower bound, upper bound and step of a one-dimensional loop."""
    operands = list(op.operands)
    if len(operands) != 3 or len(op.results):
        raise InternalError(f"a parallel loop must have one dimension and no results: {op.location}")
    return operands


def serialize(op: mlir.Operation) -> mlir.Operation:
    """Replace a parallel loop by a sequential one."""
    with op.location, mlir.InsertionPoint(op):
        lower, upper, step = bounds(op)
        loop = build_for(lower, upper, step, op)
    move_body(op, loop)
    op.erase()
    return loop


def build_for(lower: mlir.Value, upper: mlir.Value, step: mlir.Value, source: mlir.Operation) -> mlir.Operation:
    """An empty `scf.for`, with the annotation of a parallel loop."""
    loop = emit.create("scf.for", [lower, upper, step], regions=1)
    if ANNOTATION in source.attributes:
        loop.attributes[ANNOTATION] = source.attributes[ANNOTATION]
    with mlir.InsertionPoint(emit.block(loop, [mlir.IndexType.get()])):
        emit.create("scf.yield")
    return loop


def move_body(source: mlir.Operation, loop: mlir.Operation) -> None:
    """Move the operations of a parallel loop into a sequential one."""
    old, new = source.regions[0].blocks[0], loop.regions[0].blocks[0]
    old.arguments[0].replace_all_uses_with(new.arguments[0])
    terminator = block_ops(new)[0]
    for inner in block_ops(old)[:-1]:
        inner.move_before(terminator)


def outline(op: mlir.Operation, function: mlir.Operation, number: int) -> None:
    """Replace a parallel loop by a call of a new function, inserted before `function`."""
    name = f"{mlir.StringAttr(function.attributes['sym_name']).value}.parallel{number}"
    lower, upper, step = bounds(op)
    grain = mlir.IntegerAttr(op.attributes["mlirml.grain"]).value if "mlirml.grain" in op.attributes else 1
    block = op.regions[0].blocks[0]
    captures = Captures(block_ops(block), list(block.arguments))
    if constant_of(step) != 1:
        captures.add(lower)
    captures.add(step)
    captured = list(captures.values)
    with op.location:
        body = build_function(name, function, [v.type for v in captured], noalias(captured, function))
        with mlir.InsertionPoint(body):
            environment = captures.rebuild(list(body.arguments)[2:])
            lo, hi = body.arguments[:2]
            first, stride = environment.get(lower, lower), environment.get(step, step)
            unit = constant_of(step) == 1
            loop = build_for(lo, hi, stride if unit else emit.index(1), op)
            if STREAMS in op.attributes:
                fence()
            emit.create("func.return")
        variable = loop.regions[0].blocks[0].arguments[0]
        captures.replace(environment)
        move_body(op, loop)
        if not unit:
            with mlir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]):
                offset = emit.same_type("arith.muli", variable, stride)
                place = emit.same_type("arith.addi", first, offset)
            variable.replace_all_uses_except(place, offset.owner.operation)
        else:
            set_spans(loop, variable, lo, hi)
        for inner in named_operations(loop, ("memref.alloca",)):
            inner.move_before(loop)
        with mlir.InsertionPoint(op):
            if not unit:
                span = emit.same_type("arith.subi", upper, lower)
                lower, upper = emit.index(0), emit.same_type("arith.ceildivsi", span, step)
            parallel_for(name, lower, upper, captured, grain=grain, long=LONG_CHUNKS in op.attributes)
    op.erase()


def set_spans(loop: mlir.Operation, variable: mlir.Value, lower: mlir.Value, upper: mlir.Value) -> None:
    """Replace queries of the loop's bounds in its body by the bounds of the function's chunk.

    `arith.minsi %i, %c0 {mlirml.span = "start"}` is the start of the loop of %i, `arith.maxsi %i, %c64 {mlirml.span =
    "end"}` its end: a body may pass values from iteration to iteration within a chunk. A chunk has at least as many
    iterations as the grain.
    """
    for op in named_operations(loop, ("arith.minsi", "arith.maxsi")):
        if "mlirml.span" not in op.attributes or op.operands[0] != variable:
            continue
        end = mlir.StringAttr(op.attributes["mlirml.span"]).value
        replace_op(op, lower if end == "start" else upper)


def noalias(captured: list[mlir.Value], function: mlir.Operation) -> list[bool]:
    """For each captured value: True if it is a buffer that overlaps no other captured one."""
    is_main = mlir.StringAttr(function.attributes["sym_name"]).value == "main"
    flags = []
    for value in captured:
        owner = defining_op(value)
        if owner is not None:
            separate = owner.name in _ROOTS
        else:
            separate = is_main and value.owner == function.regions[0].blocks[0]
        flags.append(separate and isinstance(value.type, mlir.MemRefType))
    workspace = any(owner is not None and owner.name == "memref.view" for owner in map(defining_op, captured))
    for position, value in enumerate(captured):
        if workspace and defining_op(value) is None and is_workspace(value):
            flags[position] = False
    return flags


def is_workspace(argument: mlir.Value) -> bool:
    """True if an argument has views, which only the workspace has."""
    return any(use.owner.operation.name == "memref.view" for use in argument.uses)


def build_function(name: str, before: mlir.Operation, types: list[mlir.Type], separate: list[bool]) -> mlir.Block:
    """Create a private function `(index, index, captures...)`; returns its entry block."""
    index = mlir.IndexType.get()
    arguments = [index, index, *types]
    flag, none = mlir.DictAttr.get({"llvm.noalias": mlir.UnitAttr.get()}), mlir.DictAttr.get({})
    attributes = {
        "sym_name": mlir.StringAttr.get(name),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(mlir.FunctionType.get(arguments, [])),
        "arg_attrs": mlir.ArrayAttr.get([none, none, *(flag if alone else none for alone in separate)]),
    }
    with mlir.InsertionPoint(before):
        function = emit.create("func.func", (), (), attributes, regions=1)
    return emit.block(function, arguments)
