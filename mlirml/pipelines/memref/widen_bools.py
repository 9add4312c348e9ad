"""Widen bools: every memref of i1 becomes a memref of i8 that holds 0 or 1.

Before:
    linalg.generic {...} ins(%x : memref<8xi1>) outs(%y : memref<8xi1>) {
    ^bb0(%a: i1, %out: i1):
      %n = arith.xori %a, %true : i1
      linalg.yield %n : i1
    }
After:
    linalg.generic {...} ins(%x : memref<8xi8>) outs(%y : memref<8xi8>) {
    ^bb0(%w: i8, %out: i8):
      %a = arith.cmpi ne, %w, %c0 : i8
      %n = arith.xori %a, %true : i1
      %b = arith.extui %n : i1 to i8
      linalg.yield %b : i8
    }

LLVM stores an i1 as a byte but cannot vectorise loads and stores of it. A reduction of bools combines bytes.
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Callable

from mlirml.analysis.values import has_one_use
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, set_function_type
from mlirml.ir.erase import erase_unused
from mlirml.passes import Pass, register


@register(when=("!memref<i1>",), optional=True)
class WidenBoolsPass(Pass):
    """Store bools in memory as bytes."""

    def run(self, module: mlir.Operation) -> None:
        found = list(operations(module))[1:]
        with module.location:
            for op in found:
                for region in op.regions:
                    for block in region.blocks:
                        for argument in block.arguments:
                            widen(argument)
                for result in op.results:
                    widen(result)
        for op, convert in [(op, convert) for op in found if (convert := converter(op)) is not None]:
            with op.location, mlir.InsertionPoint(op):
                convert(op)


def converter(op: mlir.Operation) -> Callable[[mlir.Operation], None] | None:
    """The function that converts an operation, beyond its types; None if there is nothing to convert."""
    if op.name in _CONVERTERS:
        return _CONVERTERS[op.name]
    return widen_structured if op.name.startswith("linalg.") and op.regions else None


def is_bool(element: mlir.Type) -> bool:
    return isinstance(element, mlir.IntegerType) and mlir.IntegerType(element).width == 1


def widened(value_type: mlir.Type) -> mlir.Type | None:
    """The memref of bytes for a memref of bools, else None."""
    if not isinstance(value_type, mlir.MemRefType):
        return None
    memref = mlir.MemRefType(value_type)
    if not is_bool(memref.element_type):
        return None
    return mlir.MemRefType.get(memref.shape, mlir.IntegerType.get_signless(8), memref.layout, memref.memory_space)


def widen(value: mlir.Value) -> None:
    kind = widened(value.type)
    if kind is not None:
        value.set_type(kind)


def to_bool(byte: mlir.Value) -> mlir.Operation:
    """The comparison that is true for a nonzero byte."""
    op = defining_op(emit.compare("ne", byte, emit.zero(byte.type)))
    assert op is not None
    return op


def to_byte(bit: mlir.Value) -> mlir.Value:
    return emit.value("arith.extui", [bit], mlir.IntegerType.get_signless(8))


def element_type(value: mlir.Value) -> mlir.Type:
    """The type of the body argument for an operand of a linalg operation."""
    value_type = value.type
    return mlir.ShapedType(value_type).element_type if isinstance(value_type, mlir.ShapedType) else value_type


def widen_structured(op: mlir.Operation) -> None:
    """Convert the arguments of a body to bools, and its yielded values to bytes."""
    block = op.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        kind = element_type(operand)
        if argument.type == kind:
            continue
        argument.set_type(kind)
        if any(True for _ in argument.uses):
            with mlir.InsertionPoint.at_block_begin(block):
                compare = to_bool(argument)
            argument.replace_all_uses_except(compare.results[0], compare)
    final = block_ops(block)[-1]
    with mlir.InsertionPoint(final):
        inits = list(op.operands)[len(op.operands) - len(final.operands) :]
        for position, (value, out) in enumerate(zip(final.operands, inits, strict=True)):
            if value.type != element_type(out):
                argument = block.arguments[len(block.arguments) - len(inits) + position]
                final.operands[position] = accumulated(value, argument) or to_byte(value)
                erase_unused([value], lambda op: op.name.startswith("arith."))


def accumulated(value: mlir.Value, argument: mlir.Value) -> mlir.Value | None:
    """`argument OP x` as one operation on bytes, so that it matches as an accumulation; None for any other value."""
    op = defining_op(value)
    if op is None or op.name not in ("arith.ori", "arith.andi", "arith.xori") or not has_one_use(value):
        return None
    tests = [defining_op(operand) for operand in op.operands]
    mine = [n for n, test in enumerate(tests) if test is not None and list(test.operands)[:1] == [argument]]
    if len(mine) != 1 or not has_one_use(argument) or not has_one_use(op.operands[mine[0]]):
        return None
    combined = emit.same_type(op.name, to_byte(op.operands[1 - mine[0]]), argument)
    return combined


def widen_fill(op: mlir.Operation) -> None:
    """Convert the scalar of a fill to a byte."""
    scalar, out = op.operands
    if scalar.type != element_type(out):
        emit.fill(to_byte(scalar), out)
        op.erase()


def widen_access(op: mlir.Operation) -> None:
    """Convert after a load and before a store."""
    if op.name == "memref.store":
        if op.operands[0].type != element_type(op.operands[1]):
            op.operands[0] = to_byte(op.operands[0])
        return
    result, kind = op.results[0], element_type(op.operands[0])
    if result.type != kind:
        result.set_type(kind)
        compare = to_bool(result)
        compare.move_after(op)
        result.replace_all_uses_except(compare.results[0], compare)


def widen_global(op: mlir.Operation) -> None:
    """Replace a constant of bools by one of bytes."""
    kind = widened(mlir.TypeAttr(op.attributes["type"]).value)
    if kind is None:
        return
    op.attributes["type"] = mlir.TypeAttr.get(kind)
    initial = op.attributes["initial_value"]
    if isinstance(initial, mlir.DenseElementsAttr):
        op.attributes["initial_value"] = byte_constant(mlir.DenseElementsAttr(initial))


def byte_constant(bits: mlir.DenseElementsAttr) -> mlir.DenseElementsAttr:
    """The same constant with bytes as elements."""
    byte = mlir.IntegerType.get_signless(8)
    kind = mlir.RankedTensorType.get(mlir.ShapedType(bits.type).shape, byte)
    if bits.is_splat:
        one = mlir.BoolAttr(bits.get_splat_value()).value
        return mlir.DenseElementsAttr.get_splat(kind, mlir.IntegerAttr.get(byte, int(one)))
    values = [mlir.IntegerAttr.get(byte, int(bit)) for bit in mlir.DenseIntElementsAttr(bits)]
    return mlir.DenseElementsAttr.get(values, kind)


def widen_function(op: mlir.Operation) -> None:
    """Update a function's type to that of its arguments."""
    if len(op.regions[0].blocks):
        set_function_type(op)


def widen_kernel(op: mlir.Operation) -> None:
    """Update a kernel's type to that of its arguments; it has no results."""
    types = [argument.type for argument in op.regions[0].blocks[0].arguments]
    op.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


_CONVERTERS = {
    "linalg.fill": widen_fill,
    "memref.load": widen_access,
    "memref.store": widen_access,
    "memref.global": widen_global,
    "func.func": widen_function,
    "gpu.func": widen_kernel,
}
