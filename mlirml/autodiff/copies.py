"""Clones of operations with mapped operands."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.autodiff.reverse import MARKS, group_of
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, operations


def copied(block: mlir.Block, environment: dict[mlir.Value, mlir.Value]) -> list[mlir.Operation]:
    """Clone the operations of a block; `environment` is extended by their results, those in regions too."""
    return copied_ops(block_ops(block)[:-1], environment)


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
