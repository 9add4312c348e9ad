"""Clones of operations with mapped operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlirml.autodiff.reverse import MARKS, group_of
from mlirml.dialects.mlirml import HOST_CALLS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, has_op, mlir, operations


def copied(block: mlir.Block, environment: dict[mlir.Value, mlir.Value]) -> list[mlir.Operation]:
    """Clone the operations of a block; `environment` is extended by their results, those in regions too."""
    return copied_ops(block_ops(block)[:-1], environment)


def recomputed(block: mlir.Block, environment: dict[mlir.Value, mlir.Value]) -> list[mlir.Operation]:
    """`copied` of operations that are executed once already: what they print is not printed again."""
    return recomputed_ops(block_ops(block)[:-1], environment)


def recomputed_ops(ops: Sequence[mlir.Operation], environment: dict[mlir.Value, mlir.Value]) -> list[mlir.Operation]:
    """`copied_ops` of operations that are executed once already: what they print is not printed again."""
    copies = copied_ops(ops, environment)
    if not any(copy.name in HOST_CALLS or has_op(copy, HOST_CALLS) for copy in copies):
        return copies
    inner = [block for copy in copies for op in operations(copy) for region in op.regions for block in region.blocks]
    printing = {op for ops in (copies, *map(block_ops, inner)) for op in prints(ops)}
    kept = [copy for copy in copies if copy not in printing]
    for op in printing:
        op.erase()
    return kept


def prints(ops: Iterable[mlir.Operation]) -> list[mlir.Operation]:
    """The calls of Python among the operations of a block that return nothing, with their arguments."""
    found: list[mlir.Operation] = []
    call = None
    for op in ops:
        if op.name == "mlirml.host_call":
            call = op
        if op.name == "mlirml.host_result" and call is not None:
            found.remove(call)
            call = None
        elif op.name == "mlirml.host_call" or (op.name == "mlirml.host_value" and "returns" not in op.attributes):
            found.append(op)
    return found


def copied_ops(ops: Sequence[mlir.Operation], environment: dict[mlir.Value, mlir.Value]) -> list[mlir.Operation]:
    """Clone operations; `environment` is extended by their results, those in regions too."""
    copies = []
    for op in ops:
        before = list(operations(op))
        copy = clone_with(op, environment)
        for old, new in zip(before, operations(copy)):
            environment.update(zip(old.results, new.results))
            for region, other in zip(old.regions, new.regions):
                for one, two in zip(region.blocks, other.blocks):
                    environment.update(zip(one.arguments, two.arguments))
        copies.append(copy)
    _renumber(copies)
    return copies


def _renumber(copies: Sequence[mlir.Operation]) -> None:
    """Assign the clones of markers around functions with custom derivatives to new groups."""
    marks = [x for copy in copies for x in operations(copy) if x.name.startswith(MARKS)]
    if not marks:
        return
    function = marks[0].parent
    while function.name != "func.func":
        function = function.parent
    free = 1 + max(group_of(x) for x in operations(function) if x.name.startswith(MARKS))
    numbers = {old: free + position for position, old in enumerate(dict.fromkeys(group_of(x) for x in marks))}
    for x in marks:
        x.attributes["group"] = emit.i64(numbers[group_of(x)])
