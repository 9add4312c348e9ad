"""Align `scf.while`: its arrays become the first arguments of both of its regions, in the same order.

Before:
    %r:2 = scf.while (%i = %c0, %stop = %false, %x = %init) : (i64, i1, tensor<8xf32>) -> (i64, tensor<8xf32>) {
      ...
      scf.condition(%go) %i, %x : i64, tensor<8xf32>
    } do {
    ^bb0(%i: i64, %x: tensor<8xf32>):
      ...
      scf.yield %j, %found, %y : i64, i1, tensor<8xf32>
    }
After:
    %r:2 = scf.while (%x = %init, %i = %c0, %stop = %false) : (tensor<8xf32>, i64, i1) -> (tensor<8xf32>, i64) {
      ...
      scf.condition(%go) %x, %i : tensor<8xf32>, i64
    } do {
    ^bb0(%x: tensor<8xf32>, %i: i64):
      ...
      scf.yield %y, %j, %found : tensor<8xf32>, i64, i1
    }

Bufferization compares each operand of `scf.condition` with the argument at the same position. An array that only the
condition reads is passed to the body too: otherwise it could not be stored into the buffer of its argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.pipelines.bufferize.destinations import is_grown_from


@register(when=("scf.while",), optional=True)
class AlignWhilePass(Pass):
    """Move the arrays of each scf.while before its scalars, in one order for both regions."""

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, ("scf.while",))[::-1]:
            align(op)


def align(op: mlir.Operation) -> None:
    """Reorder the loop-carried values of one loop, if its arrays are at different positions in the two regions."""
    before = op.regions[0].blocks[0]
    passed = list(block_ops(before)[-1].operands)[1:]
    arrays = [i for i, value in enumerate(passed) if isinstance(value.type, mlir.RankedTensorType)]
    sources = [source_of(passed[i], before) for i in arrays]
    if None in sources or len(set(sources)) < len(sources):
        return
    carried = [i for i, value in enumerate(before.arguments) if isinstance(value.type, mlir.RankedTensorType)]
    if len(carried) > len(sources):
        align(pass_to_body(op, [i for i in carried if i not in sources]))
        return
    if arrays == sources:
        return
    entering = [i for i in sources if i is not None]
    entering += [i for i in range(len(before.arguments)) if i not in entering]
    leaving = arrays + [i for i in range(len(passed)) if i not in arrays]
    rebuild(op, entering, leaving)


def pass_to_body(op: mlir.Operation, positions: Sequence[int]) -> mlir.Operation:
    """The loop with more arguments of its condition region passed to its body, which does not read them."""
    types = [op.operands[i].type for i in positions]
    with op.location, mlir.InsertionPoint(op):
        new = emit.create("scf.while", list(op.operands), [*(r.type for r in op.results), *types], regions=2)
    for name in list(op.attributes):
        new.attributes[name] = op.attributes[name]
    for old, region in zip(op.regions, new.regions):
        old.blocks[0].append_to(region)
    before, after = (region.blocks[0] for region in new.regions)
    for i in positions:
        after.add_argument(before.arguments[i].type, before.arguments[i].location)
    condition = block_ops(before)[-1]
    with condition.location, mlir.InsertionPoint(condition):
        emit.create("scf.condition", [*condition.operands, *(before.arguments[i] for i in positions)])
    condition.erase()
    for old_result, result in zip(op.results, new.results):
        old_result.replace_all_uses_with(result)
    op.erase()
    return new


def source_of(value: mlir.Value, block: mlir.Block) -> int | None:
    """The index of the block argument that a value is, or is after stores into it; None for other values."""
    return next(
        (
            i
            for i, argument in enumerate(block.arguments)
            if argument.type == value.type and is_grown_from(value, argument)
        ),
        None,
    )


def rebuild(op: mlir.Operation, entering: Sequence[int], leaving: Sequence[int]) -> None:
    """The loop with permuted arguments and permuted results."""
    results = list(op.results)
    with op.location, mlir.InsertionPoint(op):
        new = emit.create(
            "scf.while", [op.operands[i] for i in entering], [results[i].type for i in leaving], regions=2
        )
    for name in list(op.attributes):
        new.attributes[name] = op.attributes[name]
    for old, region, order in zip(op.regions, new.regions, (entering, leaving)):
        move_body(old.blocks[0], region, order)
    condition, final = (block_ops(region.blocks[0])[-1] for region in new.regions)
    passed, carried = list(condition.operands), list(final.operands)
    for position, i in enumerate(leaving):
        condition.operands[1 + position] = passed[1 + i]
    for position, i in enumerate(entering):
        final.operands[position] = carried[i]
    for position, i in enumerate(leaving):
        results[i].replace_all_uses_with(new.results[position])
    op.erase()


def move_body(block: mlir.Block, region: mlir.Region, order: Sequence[int]) -> None:
    """Move the operations of a block to a new one with permuted arguments."""
    old = list(block.arguments)
    new = mlir.Block.create_at_start(region, [old[i].type for i in order], [old[i].location for i in order])
    for inner in block_ops(block):
        new.append(inner)
    for position, i in enumerate(order):
        old[i].replace_all_uses_with(new.arguments[position])
