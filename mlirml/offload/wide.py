"""Elementwise operations with more results than one kernel binds: several operations with some of the results each.

Before:
    %r:2 = linalg.generic {...} ins(%a, %b, %c) outs(%e, %e) { yield %a + %b, %b + %c }     // at most 4 `buffers`
After:
    %r0 = linalg.generic {...} ins(%a, %b) outs(%e) { yield %a + %b }
    %r1 = linalg.generic {...} ins(%b, %c) outs(%e) { yield %b + %c }

Fusion counts the operands that an operation reads, but not the results that are stored later, nor the numbers that its
body takes from outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.constants import is_constant
from mlirml.analysis.structured import is_parallel
from mlirml.analysis.values import captured_values
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations


def split_wide(block: mlir.Block, most: int, *, numbers: bool = False) -> None:
    """Split the elementwise operations of a block that access more than `most` buffers, as far as they have results.

    With `numbers` a number from outside takes a buffer, too.
    """
    for op in block_ops(block):
        if op.name == "linalg.generic" and len(op.results) > 1 and is_parallel(op):
            split(op, most, numbers)


def split(op: mlir.Operation, most: int, numbers: bool) -> None:
    """Partition the results of an operation into runs whose computation accesses at most `most` buffers each."""
    groups: list[list[int]] = []
    for number in range(len(op.results)):
        if groups and touched(op, [*groups[-1], number], numbers) <= most:
            groups[-1].append(number)
        else:
            groups.append([number])
    if len(groups) == 1:
        return
    for group in groups:
        for number, result in zip(group, part(op, group).results, strict=True):
            op.results[number].replace_all_uses_with(result)
    op.erase()


def touched(op: mlir.Operation, results: Sequence[int], numbers: bool) -> int:
    """The number of buffers that computing these results accesses."""
    seen = values_of(op, results)
    captured = sum(1 for value in captured_values(op) if value in seen and is_bound(value, numbers))
    return len(inputs_of(op, results)) + captured + len(results)


def is_bound(value: mlir.Value, numbers: bool) -> bool:
    """True if a value from outside of a kernel takes a buffer: a tensor, and with `numbers` one that is no constant."""
    if isinstance(value.type, mlir.RankedTensorType):
        return True
    return numbers and not is_constant(value)


def values_of(op: mlir.Operation, results: Sequence[int]) -> set[mlir.Value]:
    """The values of the body that some of the results are computed from."""
    block = op.regions[0].blocks[0]
    yields = block_ops(block)[-1].operands
    todo, seen = [yields[n] for n in results], set[mlir.Value]()
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = defining_op(value)
        if owner is not None and owner.block == block:
            todo += [operand for inner in operations(owner) for operand in inner.operands]
    return seen


def inputs_of(op: mlir.Operation, results: Sequence[int]) -> list[int]:
    """The operands that some of the results are computed from."""
    seen = values_of(op, results)
    return [n for n, argument in enumerate(op.regions[0].blocks[0].arguments) if argument in seen]


def part(op: mlir.Operation, results: Sequence[int]) -> mlir.Operation:
    """An operation that computes some of the results of `op`, inserted before it."""
    body = op.regions[0].blocks[0]
    first_out = len(op.operands) - len(op.results)
    init_positions = [first_out + n for n in results]
    inputs = [n for n in inputs_of(op, results) if n not in init_positions]
    maps = [m.value for m in op.attributes["indexing_maps"]]
    kept = [*inputs, *init_positions]
    needed = values_of(op, results)

    def again(arguments: list[mlir.Value]) -> list[mlir.Value]:
        environment = dict(zip([body.arguments[n] for n in kept], arguments, strict=True))
        *inner, end = block_ops(body)
        for each in inner:
            if any(result in needed for result in each.results):
                emit.body_op(each, environment)
        return [environment.get(end.operands[n], end.operands[n]) for n in results]

    with op.location, mlir.InsertionPoint(op):
        return emit.generic(
            [op.operands[n] for n in inputs],
            [op.operands[n] for n in init_positions],
            [maps[n] for n in kept],
            ["parallel"] * maps[0].n_dims,
            again,
        )
