"""Let the arrays of `scf.while` stand at the same places in front of both of its regions.

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

Bufferization compares what a place of `scf.condition` passes on with what came in at the same place. An array that only
the condition reads is passed on too: it could not be stored into the buffer that it came in otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.pipelines.bufferize.destinations import is_grown_from


@register(when=ANY_LOOP)
@dataclass(frozen=True)
class AlignWhilePass(Pass):
    """Put the arrays of each scf.while in front of its numbers, in one order for both regions."""

    name = "mlirml-align-while"

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, ("scf.while",))[::-1]:
            align(op)


def align(op: mlir.Operation) -> None:
    """Reorder what one loop carries, if its arrays do not stand at the same places."""
    before = op.regions[0].blocks[0]
    passed = list(block_ops(before)[-1].operands)[1:]
    arrays = [i for i, value in enumerate(passed) if isinstance(value.type, mlir.RankedTensorType)]
    sources = [source_of(passed[i], before) for i in arrays]
    if None in sources or len(set(sources)) < len(sources):
        return
    carried = [i for i, value in enumerate(before.arguments) if isinstance(value.type, mlir.RankedTensorType)]
    if len(carried) > len(sources):
        align(passing_on(op, [i for i in carried if i not in sources]))
        return
    if arrays == sources:
        return
    entering = [i for i in sources if i is not None]
    entering += [i for i in range(len(before.arguments)) if i not in entering]
    leaving = arrays + [i for i in range(len(passed)) if i not in arrays]
    rebuild(op, entering, leaving)


def passing_on(op: mlir.Operation, places: Sequence[int]) -> mlir.Operation:
    """The loop with more of what its condition gets passed on, to a body that does not read it."""
    kinds = [op.operands[i].type for i in places]
    with op.location, mlir.InsertionPoint(op):
        new = emit.create("scf.while", list(op.operands), [*(r.type for r in op.results), *kinds], regions=2)
    for name in [named.name for named in op.attributes]:
        new.attributes[name] = op.attributes[name]
    for old, region in zip(op.regions, new.regions):
        old.blocks[0].append_to(region)
    before, after = (region.blocks[0] for region in new.regions)
    for i in places:
        after.add_argument(before.arguments[i].type, before.arguments[i].location)
    condition = block_ops(before)[-1]
    with condition.location, mlir.InsertionPoint(condition):
        emit.create("scf.condition", [*condition.operands, *(before.arguments[i] for i in places)])
    condition.erase()
    for old_result, result in zip(op.results, new.results):
        old_result.replace_all_uses_with(result)
    op.erase()
    return new


def source_of(value: mlir.Value, block: mlir.Block) -> int | None:
    """The number of the block's argument that a value is, stores into it included."""
    return next(
        (
            i
            for i, argument in enumerate(block.arguments)
            if argument.type == value.type and is_grown_from(value, argument)
        ),
        None,
    )


def rebuild(op: mlir.Operation, entering: Sequence[int], leaving: Sequence[int]) -> None:
    """The loop with what enters it and what it gives in another order."""
    results = list(op.results)
    with op.location, mlir.InsertionPoint(op):
        new = emit.create(
            "scf.while", [op.operands[i] for i in entering], [results[i].type for i in leaving], regions=2
        )
    for name in [named.name for named in op.attributes]:
        new.attributes[name] = op.attributes[name]
    for old, region, order in zip(op.regions, new.regions, (entering, leaving)):
        move_body(old.blocks[0], region, order)
    condition, final = (block_ops(region.blocks[0])[-1] for region in new.regions)
    passed, carried = list(condition.operands), list(final.operands)
    for place, i in enumerate(leaving):
        condition.operands[1 + place] = passed[1 + i]
    for place, i in enumerate(entering):
        final.operands[place] = carried[i]
    for place, i in enumerate(leaving):
        results[i].replace_all_uses_with(new.results[place])
    op.erase()


def move_body(block: mlir.Block, region: mlir.Region, order: Sequence[int]) -> None:
    """Move the operations of a block to a new one with its arguments in another order."""
    old = list(block.arguments)
    new = mlir.Block.create_at_start(region, [old[i].type for i in order], [old[i].location for i in order])
    for inner in block_ops(block):
        new.append(inner)
    for place, i in enumerate(order):
        old[i].replace_all_uses_with(new.arguments[place])
