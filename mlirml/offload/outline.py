"""Outline: each device dispatch becomes a function on tensors; the call passes the tensors that it writes as inits.

Before:
    %p = scf.execute_region -> tensor<4x3xf32> no_inline {
      %e = tensor.empty() : tensor<4x3xf32>
      %f = linalg.fill ins(%zero) outs(%e) -> tensor<4x3xf32>
      %q = linalg.matmul ins(%x, %w) outs(%f) -> tensor<4x3xf32>
      scf.yield %q : tensor<4x3xf32>
    } {mlirml.dispatch = "device"}
After:
    %e = tensor.empty() : tensor<4x3xf32>
    %p = func.call @k0_matmul(%x, %w, %e) {mlirml.kernel} : (...) -> tensor<4x3xf32>
    ...
    func.func private @k0_matmul(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>, %out: tensor<4x3xf32>) -> tensor<4x3xf32>
        attributes {mlirml.kernel} {
      %f = linalg.fill ins(%zero) outs(%out) -> tensor<4x3xf32>
      %q = linalg.matmul ins(%x, %w) outs(%f) -> tensor<4x3xf32>
      return %q : tensor<4x3xf32>
    }

The last arguments are the inits of the results, in their order. A tensor from outside that a result accumulates or
stores into is passed as the init itself, and then is read too. Dispatch regions of the host are inlined. Dispatches
with equal code, as of the iterations of an unrolled loop, call one function.
"""

from __future__ import annotations

import itertools
from typing import TypeAlias

from mlirml.analysis.bounds import dims_of_slice, size_operand
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.dialects.mlirml import DISPATCH, KERNEL, OF_DEVICES
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import (
    block_ops,
    callee_of,
    clone_with,
    defining_op,
    main_function,
    mlir,
    operations,
    replace_op,
)
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register

Made: TypeAlias = "dict[mlir.Value, mlir.Value]"
"""Indices of a dispatch, and their clones outside of it."""
_QUIET = frozenset(["linalg.yield", "linalg.index", "arith.constant", "scf.yield", "tensor.empty", "linalg.fill"])


@register
class OutlinePass(Pass):
    """Outline each device dispatch into a function on tensors."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        number = itertools.count()
        for op in [op for op in operations(main) if DISPATCH in op.attributes]:
            if op.attributes[DISPATCH].value == "device":
                outline(op, module, next(number))
            else:
                dissolve(op)
        share(module)


def share(module: mlir.Operation) -> None:
    """Deduplicate: calls of equal functions call the first of them."""
    kernels = [
        op for op in block_ops(module.regions[0].blocks[0]) if op.name == "func.func" and KERNEL in op.attributes
    ]
    names = [mlir.StringAttr(function.attributes["sym_name"]).value for function in kernels]
    # In local scope: otherwise the printer walks the whole module for each function.
    printed = [function.get_asm(use_local_scope=True, assume_verified=True) for function in kernels]
    texts = [text.replace(f"@{name}(", "@(", 1) for text, name in zip(printed, names)]
    first = dict(reversed(list(zip(texts, names))))
    same = {name: first[text] for text, name in zip(texts, names)}
    for call in [op for op in operations(main_function(module)) if op.name == "func.call" and KERNEL in op.attributes]:
        call.attributes["callee"] = mlir.FlatSymbolRefAttr.get(same[callee_of(call)])
    for function, name in zip(kernels, names):
        if same[name] != name:
            function.erase()


def dissolve(region: mlir.Operation) -> None:
    """Inline the body of a region before it, and erase the region."""
    *body, end = block_ops(region.regions[0].blocks[0])
    for op in body:
        op.move_before(region)
    replace_op(region, *end.operands)


def outline(region: mlir.Operation, module: mlir.Operation, number: int) -> None:
    """Replace a device dispatch by a call of a new function at the end of the module."""
    body = region.regions[0].blocks[0]
    sink_constants(body)
    name = f"k{number}_{describe(block_ops(body))}"
    results = list(block_ops(body)[-1].operands)
    widen_numbers(region)
    with region.location, mlir.InsertionPoint(region):
        inits = [destination(result, body) for result in results]
        captured = [v for v in captures(body) if v not in inits]
        attributes = {"callee": mlir.FlatSymbolRefAttr.get(name), KERNEL: mlir.UnitAttr.get()}
        call = emit.create("func.call", [*captured, *inits], [r.type for r in results], attributes)
    function = make_function(module, name, [*captured, *inits], results, region.location)
    entry = function.regions[0].blocks[0]
    *ops, end = block_ops(body)
    for op in ops:
        entry.append(op)
    for outside, argument in zip([*captured, *inits], entry.arguments):
        replace_inside(ops, outside, argument)
    with end.location, mlir.InsertionPoint(entry):
        emit.create("func.return", results)
    replace_op(region, *call.results)


def sink_constants(body: mlir.Block) -> None:
    """Clone scalar constants from outside into a region."""
    made: dict[mlir.Value, mlir.Value] = {}
    ops = nested(body)
    made_inside = {result for op in ops for result in op.results}
    for op in ops:
        for position, operand in enumerate(op.operands):
            owner = defining_op(operand)
            if owner is None or operand in made_inside or owner.name != "arith.constant":
                continue
            if isinstance(operand.type, mlir.RankedTensorType):
                continue
            if operand not in made:
                with mlir.InsertionPoint.at_block_begin(body):
                    clone_with(owner, made)
            op.operands[position] = made[operand]


def widen_numbers(region: mlir.Operation) -> None:
    """Pass integers of less than 32 bits as 32-bit ones: kernels accept no narrower arguments."""
    body = region.regions[0].blocks[0]
    for value in captures(body):
        if not isinstance(value.type, (mlir.IntegerType, mlir.FloatType)) or value.type.width >= 32:
            continue
        floats = isinstance(value.type, mlir.FloatType)
        wide = mlir.F32Type.get() if floats else mlir.IntegerType.get_signless(32)
        ops = block_ops(body)
        with region.location:
            with mlir.InsertionPoint(region):
                passed = emit.value("arith.extf" if floats else "arith.extui", [value], wide)
            with mlir.InsertionPoint.at_block_begin(body):
                narrow = emit.value("arith.truncf" if floats else "arith.trunci", [passed], value.type)
        replace_inside(ops, value, narrow)


def nested(body: mlir.Block) -> list[mlir.Operation]:
    """All operations of a block, those in nested regions included."""
    return [inner for op in block_ops(body) for inner in operations(op)]


def captures(body: mlir.Block) -> list[mlir.Value]:
    """The values that a block captures, in the order of their first use."""
    ops = nested(body)
    blocks = {body, *(block for op in ops for region in op.regions for block in region.blocks)}
    made = {result for op in ops for result in op.results}
    made |= {argument for block in blocks for argument in block.arguments}
    return list(dict.fromkeys(operand for op in ops for operand in op.operands if operand not in made))


def destination(result: mlir.Value, body: mlir.Block) -> mlir.Value:
    """The init outside of a dispatch that `result` is written into; inside, it replaces the `tensor.empty`.

    Builds an empty tensor, unless the result stores or accumulates into a captured tensor. An accumulating operation
    must not read the tensor through another operand: another thread may have written there.
    """
    value, owner, accumulates = result, defining_op(result), False
    while owner is not None and owner.block == body:
        if owner.name == "tensor.empty":
            new = empty_like(owner, result, body)
            if value.type == result.type and sum(1 for _ in value.uses) == 1:
                value.replace_all_uses_with(new)
                owner.erase()
            return new
        if owner.name in ("tensor.insert_slice", "tensor.insert", *OF_DEVICES):
            value = owner.operands[1]
        elif owner.name.startswith("linalg."):
            accumulates = True
            value = owner.operands[len(owner.operands) - len(owner.results) + list(owner.results).index(value)]
        else:
            return empty_like(None, result, body)
        owner = defining_op(value)
    reads = sum(operand == value for op in nested(body) for operand in op.operands)
    if value.type != result.type or value == result or (accumulates and reads > 1):
        return empty_like(None, result, body)
    return value


def empty_like(owner: mlir.Operation | None, result: mlir.Value, body: mlir.Block) -> mlir.Value:
    """A `tensor.empty` outside of a dispatch, with the sizes of the one inside, or of what is computed there."""
    if result.type.has_static_shape:
        return emit.empty(result.type)
    made: Made = {}
    if owner is None:
        dims = [d for d in range(result.type.rank) if result.type.is_dynamic_dim(d)]
        found = [size_outside(result, d, body, made) for d in dims]
        sizes = [emit.index(size) if isinstance(size, int) else size for size in found]
    else:
        sizes = [number_outside(operand, body, made) for operand in owner.operands]
    return emit.value("tensor.empty", sizes, result.type)


def size_outside(tensor: mlir.Value, d: int, body: mlir.Block, made: Made) -> mlir.Value | int:
    """A size of a tensor of a dispatch as a value outside of it; `made` has the numbers there already are."""
    if not tensor.type.is_dynamic_dim(d):
        return int(tensor.type.shape[d])
    op = defining_op(tensor)
    if op is None or op.block != body:
        return emit.value("tensor.dim", [tensor, emit.index(d)], mlir.IndexType.get())
    before = sum(tensor.type.is_dynamic_dim(i) for i in range(d))
    if op.name == "tensor.empty":
        return number_outside(op.operands[before], body, made)
    if op.name == "tensor.expand_shape":
        return number_outside(op.operands[1 + before], body, made)
    if op.name == "tensor.extract_slice":
        size = size_operand(op, dims_of_slice(op)[d], 1)
        return size if isinstance(size, int) else number_outside(size, body, made)
    if op.name == "tensor.collapse_shape":
        group = [int(i.value) for i in op.attributes["reassociation"][d]]
        parts = [size_outside(op.operands[0], i, body, made) for i in group]
        total, *others = [emit.index(part) if isinstance(part, int) else part for part in parts]
        for other in others:
            total = emit.same_type("arith.muli", total, other)
        return total
    source = init_of(op, list(op.results).index(tensor))
    if source is None:
        raise no_size(tensor)
    return size_outside(source, d, body, made)


def init_of(op: mlir.Operation, number: int) -> mlir.Value | None:
    """The operand that has the sizes of a result; None where there is none."""
    if op.name.startswith("linalg."):
        return op.operands[len(op.operands) - len(op.results) + number]
    if op.name == "scf.for":
        return op.operands[3 + number]
    if op.name in (*TENSOR_STORES, *OF_DEVICES, "arith.select"):
        return op.operands[1]
    return op.operands[0] if op.name == "tensor.cast" else None


def number_outside(number: mlir.Value, body: mlir.Block, made: Made) -> mlir.Value:
    """An index of a dispatch outside of it: itself, or a clone of what computes it."""
    op = defining_op(number)
    if op is None or op.block != body:
        return number
    if not op.name.startswith("arith.") or op.regions:
        raise no_size(number)
    if number not in made:
        operands = {operand: number_outside(operand, body, made) for operand in op.operands}
        made[number] = clone_with(op, operands).results[0]
    return made[number]


def no_size(result: mlir.Value) -> LoweringError:
    error = LoweringError(
        "the size of a result is not known outside of its kernel", location=source_location(result.owner.location)
    )
    error.op = result.owner.name
    return error


def make_function(
    module: mlir.Operation, name: str, operands: list[mlir.Value], results: list[mlir.Value], location: mlir.Location
) -> mlir.Operation:
    """A private function of these operand and result types, with an empty body, inserted at the module's start."""
    types = [v.type for v in operands]
    attributes = {
        "sym_name": mlir.StringAttr.get(name),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(mlir.FunctionType.get(types, [r.type for r in results])),
        KERNEL: mlir.UnitAttr.get(),
    }
    with location, mlir.InsertionPoint(module.regions[0].blocks[0]):
        function = emit.create("func.func", (), (), attributes, regions=1)
        emit.block(function, types)
    return function


def replace_inside(ops: list[mlir.Operation], old: mlir.Value, new: mlir.Value) -> None:
    for op in ops:
        for inner in operations(op):
            for position, operand in enumerate(inner.operands):
                if operand == old:
                    inner.operands[position] = new


def describe(ops: list[mlir.Operation]) -> str:
    """A symbol name made of the names of the operations: `matmul_addf_tanh`."""
    words: list[str] = []
    for op in ops:
        for inner in operations(op):
            generic = inner.name == "linalg.generic"
            within = inner.parent is not None and inner.parent.name.startswith("linalg.")
            if inner.name in _QUIET or generic or (within and inner.parent.name != "linalg.generic"):
                continue
            words.append(inner.name.partition(".")[2])
    words = list(dict.fromkeys(words))
    return "_".join(words[:4]) or ("fill" if any(op.name == "linalg.fill" for op in ops) else "copy")
