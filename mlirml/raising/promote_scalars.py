"""Promote scalars: in functions with loops, tensors of rank 0 become scalars and indices are computed as `index`.

Before:
    scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %y0) -> (tensor<4xf32>) {
      %n = arith.index_cast %i : index to i64
      %p = arith.index_castui %n : i64 to index
      %s = tensor.extract_slice %x[%p, 2] [1, 1] [1, 1] : tensor<4x4xf32> to tensor<f32>
      %r = linalg.generic {maps = [() -> (), () -> ()], []} ins(%s : tensor<f32>) outs(%e : tensor<f32>) {
      ^bb0(%a: f32, %out: f32):
        %0 = math.sqrt %a : f32
        linalg.yield %0 : f32
      } -> tensor<f32>
      %y1 = tensor.insert_slice %r into %y[%p] [1] [1] : tensor<f32> into tensor<4xf32>
      scf.yield %y1
    }
After:
    scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %y0) -> (tensor<4xf32>) {
      %a = tensor.extract %x[%i, %c2] : tensor<4x4xf32>
      %0 = math.sqrt %a : f32
      %y1 = tensor.insert %0 into %y[%i] : tensor<4xf32>
      scf.yield %y1
    }

Only computations that end in a scalar are changed: the value stored to an element, an index, a condition, a
loop-carried scalar, and all their operands. A scalar that only operations on arrays read stays a tensor of rank 0.
Elements of rows are read from the source of the row, and stored there. A counting `while` becomes a `for`.
"""

from __future__ import annotations

from mlirml.analysis.traits import CONTROL
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.ir.rank_zero import Scalars, element_place, insertion_point_after, is_number, is_scalar
from mlirml.passes import Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.counted_while import count_loops
from mlirml.raising.nests.counters import close_counters
from mlirml.raising.nests.find_loops import loop_functions
from mlirml.raising.nests.plain_indices import decide, make_indices_plain
from mlirml.raising.nests.rows import read_in_place, store_in_place

_CLEAN = "canonicalize,cse"


@register(when=ANY_LOOP, optional=True)
class PromoteScalarsPass(Pass):
    """Compute scalars and indices in functions with loops as scalars, and read and store elements on their own."""

    def run(self, module: mlir.Operation) -> None:
        functions = loop_functions(module)
        for function in functions:
            if len(function.regions[0].blocks) == 1:
                carry_scalars(function)
                promote(function)
        if functions:
            # The operations that computed the tensors are dead now, and casts of constants fold.
            run_upstream(module, _CLEAN)
        for function in functions:
            count_loops(function)
            close_counters(function)
            make_indices_plain(function)
            decide(function)
            read_in_place(list(operations(function)))
            store_in_place(list(operations(function)))
        if functions:
            run_upstream(module, _CLEAN)


def carry_scalars(function: mlir.Operation) -> None:
    """Let tensors of rank 0 enter and leave the regions of structured control flow as scalars."""
    for op in [op for op in operations(function) if op.name in CONTROL]:
        with op.location:
            for region in op.regions:
                for block in region.blocks:
                    carry_in_block(block)
            for number, operand in enumerate(op.operands):
                if is_number(operand):
                    with mlir.InsertionPoint(op):
                        op.operands[number] = emit.only_element(operand)
            for result in op.results:
                if is_number(result):
                    received(result)


def carry_in_block(block: mlir.Block) -> None:
    """Turn the arguments of a block and the operands of its terminator into scalars."""
    for argument in block.arguments:
        if is_number(argument):
            received(argument)
    final = block_ops(block)[-1]
    for number, operand in enumerate(final.operands):
        if is_number(operand):
            with mlir.InsertionPoint(final):
                final.operands[number] = emit.only_element(operand)


def received(value: mlir.Value) -> None:
    """Turn a value into a scalar, which becomes a tensor where it is read."""
    kind = value.type
    uses = [(use.owner, use.operand_number) for use in value.uses]
    value.set_type(kind.element_type)
    if uses:
        with insertion_point_after(value):
            tensor = emit.value("tensor.from_elements", [value], kind)
        for owner, number in uses:
            owner.operands[number] = tensor


def promote(function: mlir.Operation) -> None:
    """Turn computations that end in a scalar into scalar operations."""
    ops = list(operations(function))
    wanted = wanted_numbers(ops)
    scalars = Scalars(function.regions[0].blocks[0])
    done = []
    for op in ops:
        with op.location, mlir.InsertionPoint(op):
            if op.name == "tensor.insert_slice":
                scalars.store(op)
            elif op.results and op.results[0] in wanted:
                if is_scalar(op):
                    scalars.inline(op)
                    done.append(op)
                elif op.name == "tensor.extract_slice" and scalars.read(op):
                    done.append(op)
    for op in reversed(done):
        scalars.replace(op)


def wanted_numbers(ops: list[mlir.Operation]) -> set[mlir.Value]:
    """The tensors of rank 0 whose elements are needed as scalars."""
    wanted: set[mlir.Value] = set()
    todo = []
    for op in ops:
        reads = op.name == "tensor.extract" and is_number(op.operands[0])
        if reads or (op.name == "tensor.insert_slice" and element_place(op, op.operands[0].type) is not None):
            todo.append(op.operands[0])
    while todo:
        value = todo.pop()
        if value in wanted:
            continue
        wanted.add(value)
        owner = defining_op(value)
        if owner is not None and is_scalar(owner):
            wanted.update(owner.results)
            body = owner.regions[0].blocks[0]
            todo += [
                operand
                for operand, argument in zip(owner.operands, body.arguments, strict=True)
                if is_number(operand) and any(True for _ in argument.uses)
            ]
    return wanted
